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

/* Which of a node's weights. */
enum weight {
	WEIGHT_RUNNING,
	WEIGHT_QUEUED,
	WEIGHT_WAITING,
};

static uint64_t weight_of(const struct calltree_node *node, enum weight weight)
{
	switch (weight) {
	case WEIGHT_RUNNING:
		return node->cpu_ns;
	case WEIGHT_QUEUED:
		return node->queue_ns;
	case WEIGHT_WAITING:
		return node->wall_ns;
	}
	return 0;
}

/* One class of time, divided by a weight. */
struct division {
	uint64_t whole_ns, left_ns;
	enum weight by;
	uint64_t weights_ns;
	uint32_t heaviest; /* CALLTREE_NONE: no node weighs anything */
};

static struct division divide(const struct weighed_tree *tree, uint64_t whole_ns, enum weight by)
{
	struct division division = {
		.whole_ns = whole_ns, .left_ns = whole_ns, .by = by, .heaviest = CALLTREE_NONE};
	uint64_t most_ns = 0;

	for (uint32_t i = 0; i < tree->count; i++) {
		uint64_t weight_ns = weight_of(&tree->nodes[i], by);

		division.weights_ns += weight_ns;
		if (weight_ns > most_ns) {
			most_ns = weight_ns;
			division.heaviest = i;
		}
	}
	return division;
}

/* By @second, where no node has a @first one. */
static struct division divide_by_either(
	const struct weighed_tree *tree, uint64_t whole_ns, enum weight first, enum weight second)
{
	struct division division = divide(tree, whole_ns, first);

	return division.heaviest == CALLTREE_NONE ? divide(tree, whole_ns, second) : division;
}

static uint64_t take_share(struct division *division, const struct calltree_node *node)
{
	uint64_t taken_ns = share(division->whole_ns, weight_of(node, division->by), division->weights_ns);

	division->left_ns -= taken_ns;
	return taken_ns;
}

/* What rounding has left over is the heaviest node's; where there is none, all is still left. */
static uint64_t take_rest(struct division *division, uint32_t node)
{
	uint64_t taken_ns = node == division->heaviest ? division->left_ns : 0;

	division->left_ns -= taken_ns;
	return taken_ns;
}

int weighed_tree_settle(struct weighed_tree *tree)
{
	const struct weighed_times *times = &tree->times;
	struct division cpu, queue, off;
	struct weighed_times unread;
	uint32_t count = tree->count;
	int r;

	if (tree->settled)
		return 0;
	r = reserve_one(tree);
	if (r < 0)
		return r;
	cpu = divide_by_either(tree, times->cpu_ns, WEIGHT_RUNNING, WEIGHT_QUEUED);
	queue = divide_by_either(tree, times->queue_ns, WEIGHT_QUEUED, WEIGHT_RUNNING);
	off = divide(tree, times->off_ns, WEIGHT_WAITING);
	for (uint32_t i = 0; i < count; i++) {
		struct calltree_node *node = &tree->nodes[i];
		struct weighed_times own = {
			.cpu_ns = take_share(&cpu, node),
			.queue_ns = take_share(&queue, node),
			.off_ns = take_share(&off, node),
		};

		node->cpu_ns = node->queue_ns = node->wall_ns = 0;
		add_time(node, &own);
	}
	for (uint32_t i = 0; i < count; i++)
		add_time(&tree->nodes[i], &(struct weighed_times){
						  .cpu_ns = take_rest(&cpu, i),
						  .queue_ns = take_rest(&queue, i),
						  .off_ns = take_rest(&off, i),
					  });
	unread = *times;
	unread.cpu_ns = cpu.left_ns;
	unread.queue_ns = queue.left_ns;
	unread.off_ns = off.left_ns;
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
