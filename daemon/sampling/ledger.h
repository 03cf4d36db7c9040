/* SPDX-License-Identifier: MIT
 *
 * Time, conserved: what the kernel's exact clocks say of a process, laid on the nodes of a calltree.
 *
 * A process is always in one of three states: on a CPU, ready with no CPU (queue), or off the CPU waiting.
 * The kernel knows exactly how long it was in each (schedstat and the wall clock). Samples say where it was:
 * a sample finds it either running (or ready) or waiting. So time on the CPU and in the queue goes to the
 * function last seen running, and time off the CPU to the function last seen waiting. Each class of time is
 * divided by samples, its sum is exact, and a function that sleeps 9 ms and is found asleep 9 times of 10 is
 * never charged with the CPU its neighbour used in between, as it would be if an interval went whole to the
 * stack that ended it.
 *
 * The kernel brings the clock of a running process up to date only at its scheduler tick or at a switch.
 * Between two samples that both found it running with no switch-in in between, the wall clock stands in; what
 * that overstates (it was preempted) is moved from CPU to queue when the exact numbers are known, which is
 * whenever the process is off the CPU.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "reader/activity.h"
#include "daemon/profile/calltree.h"

struct ledger {
	struct calltree *tree; /* borrowed */
	uint64_t opened_ns;    /* CLOCK_MONOTONIC */
	int64_t opened_run_ns,
		opened_queue_ns; /* what the clocks stood at, less what was skipped: may be negative */
	uint64_t cpu_ns, queue_ns, off_ns; /* charged so far; their sum is the tree's wall_ns */
	uint64_t last_ns;
	uint64_t last_switch_ins;
	bool last_running;
	uint32_t running_node, waiting_node; /* CALLTREE_NONE: none seen yet */
};

/* Begins at @now_ns, when the process's clocks stood at @clocks. */
void ledger_open(
	struct ledger *ledger, struct calltree *tree, uint64_t now_ns, const struct activity_clocks *clocks);

/* The time before @until_ns was not watched: charges what is not charged yet, up to then, to <unread>,
 * without CPU; @clocks are those at @until_ns. */
void ledger_skip(struct ledger *ledger, uint64_t until_ns, const struct activity_clocks *clocks);

/* A sample found the process running (or ready to) in @node. */
void ledger_running(
	struct ledger *ledger, uint32_t node, uint64_t now_ns, const struct activity_clocks *clocks);

/* A sample found it waiting in @node, so that @clocks are exact. */
void ledger_waiting(
	struct ledger *ledger, uint32_t node, uint64_t now_ns, const struct activity_clocks *clocks);

/* Charges all that is left up to @now_ns, so that the tree's sums equal the clocks' advance exactly; time of
 * a class that no sample was found in goes to <unread>. @clocks must be exact (the process is off the CPU),
 * or at least what is to be believed. */
void ledger_settle(struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks);
