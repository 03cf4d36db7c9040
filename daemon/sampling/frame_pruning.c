/* SPDX-License-Identifier: MIT
 *
 * Which frames are in use is for the trees to say: windows, open units, and what departed targets left. So
 * the trees are walked, the table keeps what they use, and they are told the new numbers. The readers' caches
 * hold numbers too; they drop them when they see another epoch. That costs as much as a few milliseconds of
 * look-ups, which is why it is done only when the table was full, and seldom (sampler.c).
 */
#include "daemon/sampling/frame_pruning.h"

#include <errno.h>
#include <stdlib.h>

static void mark_used(struct calltree *tree, uint32_t *numbers)
{
	const struct calltree_node *nodes = calltree_nodes(tree);

	for (uint32_t i = 0; i < calltree_count(tree); i++)
		numbers[nodes[i].frame] = 1;
}

static void renumber(struct calltree *tree, uint32_t *numbers)
{
	calltree_renumber_frames(tree, numbers);
}

static void for_each_tree(
	struct sampler *sampler, void (*visit)(struct calltree *tree, uint32_t *numbers), uint32_t *numbers)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		visit(sampler->targets[i]->window.tree, numbers);
		if (sampler->targets[i]->unit.open)
			visit(sampler->targets[i]->unit.tree, numbers);
	}
	for (size_t i = 0; i < sampler->departed.count; i++)
		visit(sampler->departed.groups[i].tree, numbers);
}

int frame_pruning_run(struct sampler *sampler)
{
	struct sampling *sampling = &sampler->sampling;
	_cleanup_free_ uint32_t *numbers = calloc(frame_table_count(sampling->frames), sizeof(*numbers));
	int r;

	if (!numbers)
		return -ENOMEM;
	for_each_tree(sampler, mark_used, numbers);
	r = frame_table_prune(sampling->frames, numbers);
	if (r < 0)
		return r;
	for_each_tree(sampler, renumber, numbers);
	sampling->names.epoch++;
	return 0;
}
