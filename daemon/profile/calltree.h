/* SPDX-License-Identifier: MIT
 *
 * Where samples and time go: a tree with a node for each (parent, frame, running line). A node's numbers are its
 * own ("self"); totals are computed when a profile is made of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "reader/function.h"

#define CALLTREE_ROOT 0u
#define CALLTREE_NONE UINT32_MAX

struct calltree_node {
	uint32_t parent; /* a smaller index; the root's is CALLTREE_NONE */
	uint32_t frame;
	uint32_t line;
	uint32_t line_approximate_samples;
	uint64_t samples;
	uint64_t wall_ns, cpu_ns;
	uint64_t queue_ns; /* of wall_ns: ready to run and no CPU to run on */
};

struct calltree;

int calltree_new(uint32_t max_nodes, struct calltree **ret_tree);
void calltree_free(struct calltree *tree);
DEFINE_CLEANUP(struct calltree, calltree_free)
void calltree_clear(struct calltree *tree); /* keeps its memory */

/* The node of a stack, made if need be. @frames are leaf first as the reader gives them; @omitted_after is the index behind which a
 * FRAME_TRUNCATED node stands when @omitted > 0. When the tree is full the deepest node that exists gets a child FRAME_OTHER (there is always
 * room for that one) and *ret_overflow is set. */
uint32_t calltree_descend(struct calltree *tree, const struct frame *frames, size_t count, size_t omitted,
	size_t omitted_after, bool *ret_overflow);

/* The child of @parent for one frame (FRAME_TORN and the like). */
uint32_t calltree_child(struct calltree *tree, uint32_t parent, uint32_t frame, uint32_t line, bool *ret_overflow);

struct calltree_node *calltree_node(struct calltree *tree, uint32_t node);
uint32_t calltree_count(const struct calltree *tree);
size_t calltree_bytes(const struct calltree *tree);

/* The sum over all nodes. */
struct calltree_node calltree_sum(const struct calltree *tree);
