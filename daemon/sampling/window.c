/* SPDX-License-Identifier: MIT
 *
 * A tree only ever grows at its end, and a tick changes one node, the one that the last sample was charged
 * to. So a copy that takes several goes stays true: after a tick that one node is copied again if it was
 * before, and new nodes come with the last piece. What changes a tree as a whole (a reset, frames that are
 * numbered anew) makes it begin again.
 */
#include "daemon/sampling/window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for what the tree grows by meanwhile. */
#define SPARE_NODES 256u

struct window *window_new(const struct target *target, const struct sampling *sampling, struct order *order)
{
	struct window *window = calloc(1, sizeof(*window));

	if (!window)
		return NULL;
	window->order = order;
	window->sampler = sampling->place;
	window->serial = target->serial;
	window->pid = target->identity.pid;
	window->uid = target->identity.uid;
	snprintf(window->pool, sizeof(window->pool), "%s", target->identity.pool);
	window->max_nodes = sampling->options.max_nodes;
	return window;
}

void window_free(struct window *window)
{
	weighed_tree_deinit(&window->tree);
	free(window);
}

/* What is beside the tree, as of the target's last tick. */
static void note_figures(struct window *window, const struct target *target, const struct sampling *sampling)
{
	window->accounting = target->window_accounting;
	window->begin_ns = target->window_begin_ns;
	window->period_ns = sampling_period_ns(sampling, target->base_period_ns);
}

static int make_room(struct weighed_tree *copy, uint32_t count)
{
	struct calltree_node *nodes;

	if (count <= copy->room)
		return 0;
	nodes = realloc(copy->nodes, (count + SPARE_NODES) * sizeof(*nodes));
	if (!nodes)
		return -ENOMEM;
	copy->nodes = nodes;
	copy->room = count + SPARE_NODES;
	return 0;
}

static void begin_anew(struct window *window, const struct target *target, struct frame_table *frames)
{
	if (window->tree.frames)
		frame_table_free(window->tree.frames);
	window->tree.frames = frame_table_ref(frames);
	window->tree.count = 0;
	window->begin_ns = target->window_begin_ns;
}

int window_copy(struct window *window, const struct target *target, const struct sampling *sampling,
	uint32_t most, uint32_t *ret_copied)
{
	struct weighed_tree *copy = &window->tree;
	uint32_t count = calltree_count(target->window.tree), more;
	int r = make_room(copy, count);

	if (r < 0)
		return r;
	if (copy->frames != sampling->frames || window->begin_ns != target->window_begin_ns ||
		copy->count > count)
		begin_anew(window, target, sampling->frames);
	more = count - copy->count < most ? count - copy->count : most;
	memcpy(copy->nodes + copy->count, calltree_nodes(target->window.tree) + copy->count,
		more * sizeof(*copy->nodes));
	copy->count += more;
	*ret_copied = more;
	if (copy->count < count)
		return 0;
	copy->times = ledger_times(&target->window, target->last_ns, &target->clocks);
	note_figures(window, target, sampling);
	return 1;
}

void window_follow(struct window *window, const struct target *target)
{
	uint32_t charged = target->window_node;

	if (charged < window->tree.count && charged < calltree_count(target->window.tree))
		window->tree.nodes[charged] = calltree_nodes(target->window.tree)[charged];
}

int window_take(struct target *target, const struct sampling *sampling, struct window **ret_window)
{
	_cleanup_(window_freep) struct window *window = window_new(target, sampling, NULL);
	struct weighed_times times = ledger_times(&target->window, target->last_ns, &target->clocks);
	int r;

	if (!window)
		return -ENOMEM;
	r = ledger_take_tree(&target->window, &times, sampling->frames, &window->tree);
	if (r < 0)
		return r;
	note_figures(window, target, sampling);
	*ret_window = TAKE(window);
	return 0;
}
