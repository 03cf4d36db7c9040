/* SPDX-License-Identifier: MIT
 *
 * Self and total of each function. Self is what its own nodes have. Total is what its nodes have with all
 * below them, where a node counts only if no ancestor is the same function: else recursion would count the
 * same time once for each level. Whether one is, is known by walking the tree depth first and keeping for
 * each function how many of its nodes are above the place one has come to.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/profile/profile.h"

#define NO_NODE UINT32_MAX

struct walk {
	const struct profile *profile;
	struct profile_node *subtree; /* each node with all below it */
	uint32_t *first_child, *next_sibling;
	uint32_t *above; /* by frame: its nodes between the root and here */
};

static void sum_subtrees(struct walk *walk)
{
	const struct profile *profile = walk->profile;

	memcpy(walk->subtree, profile->nodes, profile->node_count * sizeof(*walk->subtree));
	/* Parents come before children: backwards, each node is complete when it is added to its parent. */
	for (size_t i = profile->node_count; i-- > 1;) {
		struct profile_node *parent = &walk->subtree[profile->nodes[i].parent];

		parent->samples += walk->subtree[i].samples;
		parent->wall_ns += walk->subtree[i].wall_ns;
		parent->cpu_ns += walk->subtree[i].cpu_ns;
	}
}

static void link_children(struct walk *walk)
{
	const struct profile *profile = walk->profile;

	for (size_t i = 0; i < profile->node_count; i++)
		walk->first_child[i] = walk->next_sibling[i] = NO_NODE;
	for (size_t i = profile->node_count; i-- > 1;) {
		uint32_t parent = profile->nodes[i].parent;

		walk->next_sibling[i] = walk->first_child[parent];
		walk->first_child[parent] = (uint32_t)i;
	}
}

static void enter_node(struct walk *walk, uint32_t index, struct profile_function *functions)
{
	const struct profile_node *node = &walk->profile->nodes[index];
	struct profile_function *function = &functions[node->frame];

	function->self_samples += node->samples;
	function->self_wall_ns += node->wall_ns;
	function->self_cpu_ns += node->cpu_ns;
	if (walk->above[node->frame]++ == 0) {
		function->total_samples += walk->subtree[index].samples;
		function->total_wall_ns += walk->subtree[index].wall_ns;
		function->total_cpu_ns += walk->subtree[index].cpu_ns;
	}
}

static void walk_tree(struct walk *walk, struct profile_function *functions)
{
	const struct profile_node *nodes = walk->profile->nodes;
	uint32_t index = 0;

	enter_node(walk, index, functions);
	for (;;) {
		uint32_t next = walk->first_child[index];

		while (next == NO_NODE) {
			walk->above[nodes[index].frame]--;
			if (index == 0)
				return;
			next = walk->next_sibling[index];
			index = nodes[index].parent;
		}
		index = next;
		enter_node(walk, index, functions);
	}
}

static uint64_t order_key(const struct profile_function *function, enum profile_order order)
{
	switch (order) {
	case PROFILE_BY_SELF_WALL:
		return function->self_wall_ns;
	case PROFILE_BY_TOTAL_WALL:
		return function->total_wall_ns;
	case PROFILE_BY_SELF_CPU:
		return function->self_cpu_ns;
	case PROFILE_BY_TOTAL_CPU:
		return function->total_cpu_ns;
	case PROFILE_BY_SELF_SAMPLES:
		return function->self_samples;
	}
	return 0;
}

static const char *const order_names[] = {
	[PROFILE_BY_SELF_WALL] = "self_wall",
	[PROFILE_BY_TOTAL_WALL] = "total_wall",
	[PROFILE_BY_SELF_CPU] = "self_cpu",
	[PROFILE_BY_TOTAL_CPU] = "total_cpu",
	[PROFILE_BY_SELF_SAMPLES] = "self_samples",
};

const char *profile_order_name(enum profile_order order)
{
	return order_names[order];
}

int profile_order_parse(const char *name, enum profile_order *ret_order)
{
	for (size_t i = 0; i < sizeof(order_names) / sizeof(order_names[0]); i++) {
		if (strcmp(name, order_names[i]) == 0) {
			*ret_order = (enum profile_order)i;
			return 0;
		}
	}
	return -EINVAL;
}

struct comparison {
	const struct function_name *frames;
	enum profile_order order;
};

static int compare_functions(const void *left, const void *right, void *context)
{
	const struct profile_function *a = left, *b = right;
	const struct comparison *comparison = context;
	uint64_t key_a = order_key(a, comparison->order), key_b = order_key(b, comparison->order);

	if (key_a != key_b)
		return key_a > key_b ? -1 : 1;
	const struct function_name *name_a = &comparison->frames[a->frame],
				   *name_b = &comparison->frames[b->frame];
	int r = strcmp(name_a->name, name_b->name);
	if (r == 0)
		r = strcmp(name_a->file, name_b->file);
	if (r == 0 && name_a->line != name_b->line)
		r = name_a->line < name_b->line ? -1 : 1;
	return r;
}

int profile_functions(const struct profile *profile, enum profile_order order,
	struct profile_function **ret_functions, size_t *ret_count)
{
	_cleanup_free_ struct profile_function *functions = calloc(profile->frame_count, sizeof(*functions));
	_cleanup_free_ struct profile_node *subtree = malloc(profile->node_count * sizeof(*subtree));
	_cleanup_free_ uint32_t *links = malloc(profile->node_count * 2 * sizeof(*links));
	_cleanup_free_ uint32_t *above = calloc(profile->frame_count, sizeof(*above));

	if (!functions || !subtree || !links || !above)
		return -ENOMEM;
	for (size_t i = 0; i < profile->frame_count; i++)
		functions[i].frame = (uint32_t)i;
	struct walk walk = {
		.profile = profile,
		.subtree = subtree,
		.first_child = links,
		.next_sibling = links + profile->node_count,
		.above = above,
	};
	sum_subtrees(&walk);
	link_children(&walk);
	walk_tree(&walk, functions);

	/* The root is no function; it is number 0 and has no other node. */
	size_t count = profile->frame_count - 1;
	memmove(functions, functions + 1, count * sizeof(*functions));
	struct comparison comparison = {.frames = profile->frames, .order = order};
	qsort_r(functions, count, sizeof(*functions), compare_functions, &comparison);
	*ret_functions = TAKE(functions);
	*ret_count = count;
	return 0;
}
