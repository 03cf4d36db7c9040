/* SPDX-License-Identifier: MIT
 *
 * Where a tick finds its process: on a CPU, queued for one, or waiting. The ledger divides the time of each
 * of the three among the functions that were found in it, so none may be taken for another. On a machine with
 * more to do than it has CPUs a process that is ready is mostly queued, and in other functions than it works
 * in: those that make system calls and are woken up from them. The kernel does not say it in one place:
 *
 *   - /proc/PID/syscall knows who waits. "Running" it says of both others.
 *   - On a CPU is who was switched in once more than out. The ins are in schedstat, which each tick reads;
 * the outs in the scheduler's page, /proc/PID/sched.
 *   - But not who shares a CPU with the thread that asks: asking has driven it off. Whoever leaves a CPU
 * and whoever comes to it are brought up to date at the same reading of that CPU's clock. Equal times in
 * the page of the process and in that of the thread mean: it ran until the thread came.
 *
 * A preemptible kernel does not count every switch in (sched_info_arrive(), kernel/sched/stats.h, since 5.14:
 * not after a preemption on the way into a sleep), so the outs get ahead, by how many is learned: more outs
 * than there can be while the ins stand still, or CPU used by a process that is off the CPU.
 *
 * The page is dear, so it is read only for a process that its clocks have shown to queue, for a second from
 * then on; any other is taken to be on a CPU whenever it is ready. And not again for one that was on a CPU
 * and has neither been switched in nor used CPU since: those books are brought up to date when it leaves.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "reader/activity.h"

enum presence {
	PRESENCE_RUNNING,
	PRESENCE_QUEUED,
	PRESENCE_WAITING,
};

/* What is known about one process. All 0 at first. */
struct presence_watch {
	enum presence found; /* at the last look */
	bool off_cpu;        /* it was then, or was about to be: */
	enum presence since; /* where it went */
	bool on_cpu;         /* it was, by its page, when its clocks stood at: */
	struct activity_clocks on_clocks;
	bool driven_off;      /* by the look */
	uint64_t kept_off_ns; /* how long it queued when it was driven off last */
	struct activity_clocks off_clocks;
	uint64_t outs_ahead;      /* of the ins while it is off the CPU: at least so many */
	uint64_t queues_until_ns; /* it is taken for one that queues; CLOCK_MONOTONIC */
};

/* The thread that looks, in the kernel's books. All 0: not known. */
struct presence_observer {
	struct activity *thread;
};

/* The calling thread, with all it needs opened. */
void presence_observer_init(struct presence_observer *observer);
void presence_observer_deinit(struct presence_observer *observer);

/* The process's clocks stood at @before at the last look, and stand at @clocks now, @elapsed_ns later: has it
 * queued?
 */
void presence_note_clocks(struct presence_watch *watch, const struct activity_clocks *before,
	const struct activity_clocks *clocks, uint64_t elapsed_ns, uint64_t now_ns);

/* Has it not executed an instruction since the last look began? */
bool presence_is_unmoved(struct presence_watch *watch, const struct activity_clocks *clocks);

/* A look, right after @clocks were read. */
enum presence presence_look(struct presence_watch *watch, const struct presence_observer *observer,
	struct activity *activity, const struct activity_clocks *clocks, uint64_t now_ns);

/* In place of a look, where it is unmoved. */
enum presence presence_look_again(struct presence_watch *watch, struct activity *activity, uint64_t now_ns);
