/* SPDX-License-Identifier: MIT
 *
 * Where samples and time go: a tree with a node for each (parent, frame, running line). A node's numbers are
 * its own ("self"); totals are computed when a profile is made of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "reader/function.h"

#define CALLTREE_ROOT 0u
#define CALLTREE_NONE UINT32_MAX

/* Bounds of a tree's max_nodes, and how many of them are kept back for FRAME_OTHER nodes. */
#define CALLTREE_MIN_NODES 64u
#define CALLTREE_MAX_NODES (1u << 24)
#define CALLTREE_RESERVE(max_nodes) ((max_nodes) / 32 < 512 ? (max_nodes) / 32 : 512)

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

/* Grows up to @max_nodes nodes, the root and the reserve among them. -EINVAL: @max_nodes is out of bounds. */
int calltree_new(uint32_t max_nodes, struct calltree **ret_tree);
void calltree_free(struct calltree *tree);
DEFINE_CLEANUP(struct calltree, calltree_free)
void calltree_clear(struct calltree *tree); /* keeps its memory */

/* A stack as the reader gives it, of which the innermost and the outermost frames are shown. */
struct calltree_stack {
	const struct frame *frames; /* leaf first */
	size_t count;
	size_t inner, outer; /* so many at either end; together not more than there are */
	bool truncated;      /* a FRAME_TRUNCATED node stands between the two */
	/* The outermost @same_outer frames are those of the stack that was numbered @since. @serial: this
	 * one's number. Between two calls of calltree_clear() a tree is given numbers of one source only; 0:
	 * none. */
	size_t same_outer;
	uint64_t since, serial;
};

/* The node of a stack, made if need be. When the tree is full the answer is a FRAME_OTHER child of the
 * deepest node that exists (of an ancestor of it, once the reserve is used up too), and *ret_overflow is set.
 */
uint32_t calltree_descend(struct calltree *tree, const struct calltree_stack *stack, bool *ret_overflow);

/* The child of @parent for one frame (FRAME_TORN and the like). When the tree is full: as above. */
uint32_t calltree_child(
	struct calltree *tree, uint32_t parent, uint32_t frame, uint32_t line, bool *ret_overflow);

/* The frames have other numbers now: @numbers[frame]. Different ones stay different. */
void calltree_renumber_frames(struct calltree *tree, const uint32_t *numbers);

/* Adds @count nodes as calltree_nodes() gives them, of the same frame table. Returns how many found no room,
 * or -ENOMEM. */
int calltree_add(struct calltree *into, const struct calltree_node *nodes, uint32_t count);

/* Empties the tree; its nodes are the caller's (free()). Takes a moment however many there are. -ENOMEM: it
 * is as it was. */
int calltree_take_nodes(struct calltree *tree, struct calltree_node **ret_nodes, uint32_t *ret_count);

/* Valid until a node is added. */
struct calltree_node *calltree_node(struct calltree *tree, uint32_t node);
/* All calltree_count() of them, parents before children, the root first. */
const struct calltree_node *calltree_nodes(const struct calltree *tree);
uint32_t calltree_count(const struct calltree *tree);
size_t calltree_bytes(const struct calltree *tree);

/* The sum over all nodes. */
struct calltree_node calltree_sum(const struct calltree *tree);
