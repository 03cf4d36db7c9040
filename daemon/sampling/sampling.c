/* SPDX-License-Identifier: MIT
 *
 * See sampling.h.
 */
#include "daemon/sampling/sampling.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/php_process.h"

/* Text of all frames of a sampler thread. At an average of 80 bytes a frame, max_frames is reached first. */
#define MAX_FRAME_BYTES_EACH 160

static uint32_t intern(void *context, const struct function_name *name)
{
	return frame_table_intern(context, name);
}

int sampling_new_frame_table(const struct engine_options *options, struct frame_table **ret_frames)
{
	return frame_table_new(
		options->max_frames, (size_t)options->max_frames * MAX_FRAME_BYTES_EACH, ret_frames);
}

int sampling_init(struct sampling *sampling, const struct engine_options *options)
{
	int r;

	*sampling = (struct sampling){.options = *options, .next_unit_id = 1};
	budget_start(&sampling->budget, options->cpu_budget_ppm, monotonic_now_ns(), 0);
	sampling->sample = malloc(sizeof(*sampling->sample));
	if (!sampling->sample)
		return -ENOMEM;
	r = sampling_new_frame_table(options, &sampling->frames);
	if (r < 0)
		return r;
	sampling->names = (struct frame_names){.intern = intern, .context = sampling->frames};
	return retention_new(&sampling->retention);
}

void sampling_set_place(struct sampling *sampling, unsigned place)
{
	sampling->place = place;
	sampling->next_unit_id = place + 1;
}

void sampling_deinit(struct sampling *sampling)
{
	while (sampling->spare_tree_count)
		calltree_free(sampling->spare_trees[--sampling->spare_tree_count]);
	presence_observer_deinit(&sampling->observer);
	if (sampling->retention)
		retention_free(sampling->retention);
	if (sampling->frames)
		frame_table_free(sampling->frames);
	free(sampling->sample);
	*sampling = (struct sampling){0};
}

uint64_t sampling_number_unit(struct sampling *sampling)
{
	uint64_t number = sampling->next_unit_id;

	sampling->next_unit_id += sampling->options.threads;
	return number;
}

uint64_t sampling_period_ns(const struct sampling *sampling, uint64_t asked_ns)
{
	return asked_ns * sampling->budget.stretch_ppm / BUDGET_PPM;
}

struct calltree *sampling_take_tree(struct sampling *sampling)
{
	struct calltree *tree = NULL;

	if (sampling->spare_tree_count)
		return sampling->spare_trees[--sampling->spare_tree_count];
	return calltree_new(sampling->options.max_nodes, &tree) < 0 ? NULL : tree;
}

void sampling_give_tree(struct sampling *sampling, struct calltree *tree)
{
	if (sampling->spare_tree_count == SAMPLING_SPARE_TREES) {
		calltree_free(tree);
		return;
	}
	calltree_clear(tree);
	sampling->spare_trees[sampling->spare_tree_count++] = tree;
}

int sampling_prune_frames(struct sampling *sampling, struct calltree *const *trees, size_t count)
{
	int r = frame_pruning_run(&sampling->frames, trees, count);

	if (r < 0)
		return r;
	sampling->names.context = sampling->frames;
	/* Their caches hold numbers, and are dropped in another epoch. */
	sampling->names.epoch++;
	return 0;
}

static struct retention_limits retention_limits(const struct sampling *sampling)
{
	return (struct retention_limits){
		.units = sampling->options.retained_units,
		.bytes = sampling->options.retained_bytes,
		.age_ns = sampling->options.retained_ns,
	};
}

void sampling_retain(struct sampling *sampling, struct unit_result *unit, uint64_t now_ns)
{
	struct retention_limits limits = retention_limits(sampling);

	retention_keep(sampling->retention, unit, now_ns, &limits);
}

void sampling_expire(struct sampling *sampling, uint64_t now_ns)
{
	struct retention_limits limits = retention_limits(sampling);

	retention_expire(sampling->retention, now_ns, &limits);
}
