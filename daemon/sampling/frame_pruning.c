/* SPDX-License-Identifier: MIT
 *
 * Which frames are in use is for the trees to say, so they are walked, the table keeps what they use, and
 * they are told the new numbers. That costs as much as a few milliseconds of look-ups, which is why it is
 * done only when the table was full, and seldom.
 */
#include "daemon/sampling/frame_pruning.h"

#include <errno.h>
#include <stdlib.h>

/* At most this often. */
#define PRUNING_NS 60000000000ull

bool frame_pruning_is_due(struct frame_pruning *pruning, const struct frame_table *frames, uint64_t now_ns)
{
	uint64_t overflows = frame_table_overflows(frames);

	if (overflows == pruning->overflows || (pruning->at_ns && now_ns - pruning->at_ns < PRUNING_NS))
		return false;
	*pruning = (struct frame_pruning){.at_ns = now_ns, .overflows = overflows};
	return true;
}

static void mark_used(const struct calltree *tree, uint32_t *numbers)
{
	const struct calltree_node *nodes = calltree_nodes(tree);

	for (uint32_t i = 0; i < calltree_count(tree); i++)
		numbers[nodes[i].frame] = 1;
}

int frame_pruning_run(struct frame_table **frames, struct calltree *const *trees, size_t count)
{
	_cleanup_free_ uint32_t *numbers = calloc(frame_table_count(*frames), sizeof(*numbers));
	struct frame_table *pruned = NULL;
	int r;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		mark_used(trees[i], numbers);
	r = frame_table_prune(*frames, numbers, &pruned);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		calltree_renumber_frames(trees[i], numbers);
	frame_table_free(*frames);
	*frames = pruned;
	return 0;
}
