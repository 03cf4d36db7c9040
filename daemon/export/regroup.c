/* SPDX-License-Identifier: MIT
 *
 * Plays a profile into a tree that has line 0 everywhere, so that nodes that differ in the line alone meet.
 */
#include <errno.h>

#include "daemon/export/regroup.h"

int export_regroup(const struct profile *profile, bool lines, struct calltree **ret_tree)
{
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	_cleanup_free_ uint32_t *numbers = calloc(profile->node_count, sizeof(*numbers));
	/* Room for all, and for what the tree keeps back. */
	uint32_t max_nodes = (uint32_t)profile->node_count + CALLTREE_MIN_NODES;

	if (!numbers)
		return -ENOMEM;
	int r = calltree_new(max_nodes + 2 * CALLTREE_RESERVE(max_nodes), &tree);
	if (r < 0)
		return r;
	for (size_t i = 0; i < profile->node_count; i++) {
		const struct profile_node *node = &profile->nodes[i];
		bool overflow = false;

		if (i > 0)
			numbers[i] = calltree_child(
				tree, numbers[node->parent], node->frame, lines ? node->line : 0, &overflow);
		if (overflow)
			return -ENOMEM; /* there is room for all of them: only memory can lack */
		struct calltree_node *into = calltree_node(tree, numbers[i]);
		into->samples += node->samples;
		into->wall_ns += node->wall_ns;
		into->cpu_ns += node->cpu_ns;
		into->queue_ns += node->queue_ns;
	}
	*ret_tree = TAKE(tree);
	return 0;
}
