/* SPDX-License-Identifier: MIT
 *
 * A calltree as the sampler gives it away: nodes that hold weights, and beside them what there is to divide.
 * Taking it out of the sampler's hands is a matter of microseconds; turning weights into time, and numbers
 * into names, is left to the thread that wants to know.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "daemon/profile/calltree.h"
#include "daemon/profile/frame_table.h"
#include "daemon/profile/profile.h"

/* How long a process was in each of the states there are, as its clocks have it. */
struct weighed_times {
	uint64_t cpu_ns, queue_ns, off_ns;
	/* Nobody watched: goes to <unread>. Of unseen_ns, so much on a CPU, and so much ready for one. */
	uint64_t unseen_ns, unseen_cpu_ns, unseen_queue_ns;
};

struct weighed_tree {
	/* As calltree_nodes() gives them; until it is settled, cpu_ns, queue_ns and wall_ns are weights: the
	 * time that a node's running, its queued and its waiting samples stand for. */
	struct calltree_node *nodes;
	uint32_t count, room;
	bool settled;
	struct weighed_times times;
	struct frame_table *frames; /* a reference: what the nodes' frames are numbers of */
};

/* Frees what it holds, not itself. */
void weighed_tree_deinit(struct weighed_tree *tree);

/* Turns weights into time: what the nodes hold then sums up to the times exactly. CPU time of which there is
 * no sample is divided like queue time, and the other way round: most often it is the same functions'. Time
 * of a class in which no sample was found goes to <unread>. -ENOMEM: it is as it was. */
int weighed_tree_settle(struct weighed_tree *tree);

/* Once settled. -ENOMEM. */
int weighed_tree_profile(const struct weighed_tree *tree, struct profile **ret_profile);

size_t weighed_tree_bytes(const struct weighed_tree *tree);
