/* SPDX-License-Identifier: MIT
 *
 * A finished profile: self-contained, immutable, free to go to another thread. Made of a calltree and a frame
 * table by copying what is used.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "daemon/profile/accounting.h"
#include "daemon/profile/calltree.h"
#include "daemon/profile/frame_table.h"

struct profile_node {
	uint32_t parent; /* index into nodes; node 0 is the root and its own parent */
	uint32_t frame;  /* index into frames */
	uint32_t line;
	uint64_t samples, wall_ns, cpu_ns, queue_ns;
};

struct profile {
	struct function_name
		*frames; /* strings owned by the profile; frame 0 is the root's, "{root}": never shown */
	size_t frame_count;
	struct profile_node *nodes; /* parents before children */
	size_t node_count;
	uint64_t period_ns;
	uint64_t duration_ns; /* wall time the profile covers */
	struct accounting accounting;
	char *text;
};

/* Period, duration and accounting are the caller's to set. -ENOMEM. */
int profile_from_calltree(
	const struct calltree *tree, const struct frame_table *frames, struct profile **ret_profile);
/* The same of @count nodes as calltree_nodes() gives them. */
int profile_from_nodes(const struct calltree_node *nodes, uint32_t count, const struct frame_table *frames,
	struct profile **ret_profile);

/* One function's share. Total counts a recursive function once for each sample. */
struct profile_function {
	uint32_t frame;
	uint64_t self_samples, total_samples;
	uint64_t self_wall_ns, total_wall_ns;
	uint64_t self_cpu_ns, total_cpu_ns;
};

enum profile_order {
	PROFILE_BY_SELF_WALL,
	PROFILE_BY_TOTAL_WALL,
	PROFILE_BY_SELF_CPU,
	PROFILE_BY_TOTAL_CPU,
	PROFILE_BY_SELF_SAMPLES
};

/* "self_wall" and so on, as the protocol and the command line have it. */
const char *profile_order_name(enum profile_order order);
/* -EINVAL: @name is none of them. */
int profile_order_parse(const char *name, enum profile_order *ret_order);

/* All functions but the root, ordered, largest first; ties by name. Freed with free(). -ENOMEM. */
int profile_functions(const struct profile *profile, enum profile_order order,
	struct profile_function **ret_functions, size_t *ret_count);

/* Sum over all nodes. */
struct profile_node profile_sum(const struct profile *profile);

/* What it holds of memory. */
size_t profile_bytes(const struct profile *profile);

void profile_free(struct profile *profile);
DEFINE_CLEANUP(struct profile, profile_free)
