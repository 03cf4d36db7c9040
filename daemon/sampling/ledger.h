/* SPDX-License-Identifier: MIT
 *
 * Time, conserved: what the kernel's exact clocks say of a process, laid on the nodes of a calltree.
 *
 * A process is always in one of three states: on a CPU, ready with no CPU (queue), or off the CPU, waiting.
 * How long it was in each the kernel knows exactly (schedstat and the wall clock), but for a running process
 * only up to its last scheduler tick or switch. Samples know where it was: each finds it running (or ready
 * to), or waiting. So the clocks say how much time of each class there is, and the samples divide it within
 * the class: CPU and queue time among the functions that were found running, by the time each of those
 * samples stands for; the rest among those found waiting. The sums are exact, the division is unbiased, and a
 * function that sleeps 9 ms of 10 is not charged with the CPU that its neighbour used in between, as it would
 * be if the clock's advance went to whichever stack ended an interval (docs/DECISIONS.md has the figures of
 * both and of others).
 *
 * While samples come in, a node's cpu_ns and wall_ns are weights: the time its running and its waiting
 * samples stand for. ledger_add_to() turns them into time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "reader/activity.h"
#include "daemon/profile/calltree.h"

struct ledger_times {
	uint64_t cpu_ns, queue_ns, off_ns;
	/* Nobody watched: goes to <unread>. Of unseen_ns, so much on a CPU, and so much ready for one. */
	uint64_t unseen_ns, unseen_cpu_ns, unseen_queue_ns;
};

struct ledger {
	struct calltree *tree;     /* borrowed: holds weights */
	struct ledger_times times; /* of the stretches that are closed */
	bool open;                 /* a stretch is */
	uint64_t since_ns;         /* CLOCK_MONOTONIC: the open stretch's beginning, or the last one's end */
	struct activity_clocks since;
	uint64_t last_ns;                              /* the last sample, or the stretch's beginning */
	uint64_t running_weight_ns, waiting_weight_ns; /* sums of the nodes' */
};

/* An empty ledger over an empty tree. */
void ledger_init(struct ledger *ledger, struct calltree *tree);

/* Forgets everything; a stretch that is open goes on from @now_ns, when the clocks stood at @clocks. */
void ledger_clear(struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks);

/* A stretch of time that is watched begins at @now_ns, when the process's clocks stood at @clocks. */
void ledger_open(struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks);

/* It ends. @clocks should be exact (the process is off the CPU); where they are not, they are what is
 * believed. */
void ledger_close(struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks);

/* Nobody watched since the stretch that is open began, or, where none is, since the last one ended: up to
 * @now_ns that time is <unread>'s. An open stretch begins anew. */
void ledger_skip(struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks);

/* A sample found the process in @node: running (or ready to), or waiting. */
void ledger_sample(struct ledger *ledger, uint32_t node, bool running, uint64_t now_ns);

/* The times so far, an open stretch's as of @now_ns and @clocks. */
struct ledger_times ledger_times(
	const struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks);

/* Adds the tree to @into, weights turned into @times: what is added sums up to them exactly. Time of a class
 * in which no sample was found goes to <unread>. Returns the number of nodes for which @into had no room, or
 * -ENOMEM. */
int ledger_add_to(const struct ledger *ledger, const struct ledger_times *times, struct calltree *into);
