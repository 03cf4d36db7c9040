/* SPDX-License-Identifier: MIT
 *
 * Division with no remainder lost: each node gets its share rounded down, and what is left over goes to the
 * heaviest of its class. Nodes stay where they are, so nothing has to be looked up, and only <unread> may be
 * new. ledger.h (daemon/sampling) says why time is divided by weight.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "daemon/profile/weighed_tree.h"

void weighed_tree_deinit(struct weighed_tree *tree)
{
	free(tree->nodes);
	if (tree->frames)
		frame_table_free(tree->frames);
	*tree = (struct weighed_tree){0};
}

/* @whole * @part / @parts, which is at most @whole. */
static uint64_t share(uint64_t whole, uint64_t part, uint64_t parts)
{
	return part ? (uint64_t)((unsigned __int128)whole * part / parts) : 0;
}

static void add_time(struct calltree_node *node, const struct weighed_times *times)
{
	node->cpu_ns += times->cpu_ns + times->unseen_cpu_ns;
	node->queue_ns += times->queue_ns + times->unseen_queue_ns;
	node->wall_ns += times->cpu_ns + times->queue_ns + times->off_ns + times->unseen_ns;
}

/* The root's <unread>, CALLTREE_NONE when it has none. */
static uint32_t find_unread(const struct weighed_tree *tree)
{
	for (uint32_t i = CALLTREE_ROOT + 1; i < tree->count; i++)
		if (tree->nodes[i].frame == FRAME_UNREAD && tree->nodes[i].parent == CALLTREE_ROOT &&
			tree->nodes[i].line == 0)
			return i;
	return CALLTREE_NONE;
}

static int reserve_one(struct weighed_tree *tree)
{
	struct calltree_node *nodes;

	if (tree->count < tree->room)
		return 0;
	nodes = realloc(tree->nodes, (tree->count + 1) * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	tree->nodes = nodes;
	tree->room = tree->count + 1;
	return 0;
}

static bool is_nothing(const struct weighed_times *times)
{
	return !times->cpu_ns && !times->queue_ns && !times->off_ns && !times->unseen_ns;
}

/* There is room for one node more. */
static void add_unread(struct weighed_tree *tree, const struct weighed_times *times)
{
	uint32_t unread = find_unread(tree);

	if (unread == CALLTREE_NONE) {
		unread = tree->count++;
		tree->nodes[unread] = (struct calltree_node){.parent = CALLTREE_ROOT, .frame = FRAME_UNREAD};
	}
	add_time(&tree->nodes[unread], times);
}

/* Of the nodes of a tree. */
struct weights {
	uint64_t running_ns, waiting_ns;
	struct calltree_node *most_running, *most_waiting; /* NULL: none */
};

static struct weights weigh(const struct weighed_tree *tree)
{
	struct weights weights = {0};

	for (uint32_t i = 0; i < tree->count; i++) {
		struct calltree_node *node = &tree->nodes[i];

		weights.running_ns += node->cpu_ns;
		weights.waiting_ns += node->wall_ns;
		if (node->cpu_ns > (weights.most_running ? weights.most_running->cpu_ns : 0))
			weights.most_running = node;
		if (node->wall_ns > (weights.most_waiting ? weights.most_waiting->wall_ns : 0))
			weights.most_waiting = node;
	}
	return weights;
}

int weighed_tree_settle(struct weighed_tree *tree)
{
	const struct weighed_times *times = &tree->times;
	struct weighed_times left = *times, unread;
	struct weights weights;
	int r;

	if (tree->settled)
		return 0;
	r = reserve_one(tree);
	if (r < 0)
		return r;
	weights = weigh(tree);
	for (uint32_t i = 0; i < tree->count; i++) {
		struct calltree_node *node = &tree->nodes[i];
		struct weighed_times own = {
			.cpu_ns = share(times->cpu_ns, node->cpu_ns, weights.running_ns),
			.queue_ns = share(times->queue_ns, node->cpu_ns, weights.running_ns),
			.off_ns = share(times->off_ns, node->wall_ns, weights.waiting_ns),
		};

		node->cpu_ns = node->wall_ns = 0;
		add_time(node, &own);
		left.cpu_ns -= own.cpu_ns;
		left.queue_ns -= own.queue_ns;
		left.off_ns -= own.off_ns;
	}
	unread = left;
	if (weights.most_running) {
		add_time(weights.most_running,
			&(struct weighed_times){.cpu_ns = left.cpu_ns, .queue_ns = left.queue_ns});
		unread.cpu_ns = unread.queue_ns = 0;
	}
	if (weights.most_waiting) {
		add_time(weights.most_waiting, &(struct weighed_times){.off_ns = left.off_ns});
		unread.off_ns = 0;
	}
	if (!is_nothing(&unread))
		add_unread(tree, &unread);
	tree->settled = true;
	return 0;
}

int weighed_tree_profile(const struct weighed_tree *tree, struct profile **ret_profile)
{
	return profile_from_nodes(tree->nodes, tree->count, tree->frames, ret_profile);
}

size_t weighed_tree_bytes(const struct weighed_tree *tree)
{
	return tree->room * sizeof(*tree->nodes);
}
