/* SPDX-License-Identifier: MIT
 *
 * Time, conserved: what the kernel's exact clocks say of a process, laid on the nodes of a calltree.
 *
 * A process is always in one of three states: on a CPU, ready with no CPU (queue), or off the CPU, waiting.
 * How long it was in each the kernel knows exactly (schedstat and the wall clock), but for a running process
 * only up to its last scheduler tick or switch. Samples know where it was, and in which of the three
 * (presence.h). So the clocks say how much time of each there is, and the samples divide it within each, by
 * the time each of them stands for: CPU time among the functions that were found on a CPU, queue time among
 * those found queued, the rest among those found waiting. The sums are exact, the division is unbiased, and a
 * function that sleeps 9 ms of 10 is not charged with the CPU that its neighbour used in between, as it would
 * be if the clock's advance went to whichever stack ended an interval; nor one that is woken up often with
 * CPU for the time it stood in the queue (docs/DECISIONS.md has the figures of both and of others).
 *
 * While samples come in, a node's cpu_ns, queue_ns and wall_ns are weights: the time that its running, its
 * queued and its waiting samples stand for. Whoever is given the tree turns them into time
 * (weighed_tree_settle()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "reader/activity.h"
#include "daemon/profile/weighed_tree.h"
#include "daemon/sampling/presence.h"

struct ledger {
	struct calltree *tree;      /* borrowed: holds weights */
	struct weighed_times times; /* of the stretches that are closed */
	bool open;                  /* a stretch is */
	uint64_t since_ns;          /* CLOCK_MONOTONIC: the open stretch's beginning, or the last one's end */
	struct activity_clocks since;
	uint64_t last_ns; /* the last sample, or the stretch's beginning */
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

/* A sample found the process in @node, and where it was then. */
void ledger_sample(struct ledger *ledger, uint32_t node, enum presence presence, uint64_t now_ns);

/* And then kept it in the queue for @queue_ns: no sample can find it there. */
void ledger_note_kept_off(struct ledger *ledger, uint32_t node, uint64_t queue_ns);

/* The times so far, an open stretch's as of @now_ns and @clocks. */
struct weighed_times ledger_times(
	const struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks);

/* Takes the nodes out of the tree, to be turned into @times by another thread. Takes a moment however many
 * there are. The caller's (weighed_tree_deinit()). -ENOMEM: all is as it was. */
int ledger_take_tree(struct ledger *ledger, const struct weighed_times *times, struct frame_table *frames,
	struct weighed_tree *ret_tree);
