/* SPDX-License-Identifier: MIT
 *
 * What all targets of a sampler thread have in common: the options, the frame table, spare trees, ended
 * units, sums. Belongs to the sampler thread.
 */
#pragma once

#include <stdint.h>

#include "daemon/profile/accounting.h"
#include "daemon/profile/calltree.h"
#include "daemon/profile/frame_table.h"
#include "daemon/sampling/budget.h"
#include "daemon/sampling/clock.h"
#include "daemon/sampling/engine.h"
#include "daemon/sampling/frame_pruning.h"
#include "daemon/sampling/presence.h"
#include "daemon/sampling/retention.h"

/* Trees kept for the next unit. */
#define SAMPLING_SPARE_TREES 32

struct sampling {
	unsigned place; /* of its sampler, among all of them */
	struct engine_options options;
	struct frame_table *frames;
	struct frame_names names; /* for the reader: interns into @frames */
	struct frame_pruning pruning;
	struct retention *retention;
	struct calltree *spare_trees[SAMPLING_SPARE_TREES];
	size_t spare_tree_count;
	uint64_t next_unit_id;
	struct budget budget;
	struct accounting accounting; /* of all targets, also those that are gone */
	uint64_t units_finished_total;
	struct presence_observer observer;
	struct php_sample *sample; /* scratch */
};

/* An empty table as large as @options want it. -ENOMEM. */
int sampling_new_frame_table(const struct engine_options *options, struct frame_table **ret_frames);

int sampling_init(struct sampling *sampling, const struct engine_options *options);
/* It is the @place-th of @options->threads; the first one, unless this says otherwise before it is used. */
void sampling_set_place(struct sampling *sampling, unsigned place);
void sampling_deinit(struct sampling *sampling);

/* A number for a unit. No other sampler gives the same. */
uint64_t sampling_number_unit(struct sampling *sampling);

/* What is in force of a period that was asked for. */
uint64_t sampling_period_ns(const struct sampling *sampling, uint64_t asked_ns);

/* An empty tree, from the spare ones if there is one. NULL: no memory. */
struct calltree *sampling_take_tree(struct sampling *sampling);
void sampling_give_tree(struct sampling *sampling, struct calltree *tree);

/* Keeps an ended unit for a while, within the configured bounds (a reference of its own is taken). */
void sampling_retain(struct sampling *sampling, struct unit_result *unit, uint64_t now_ns);

/* Forgets the frames that none of the sampler's @trees has a node of; readers name all functions anew.
 * -ENOMEM: all is as it was. */
int sampling_prune_frames(struct sampling *sampling, struct calltree *const *trees, size_t count);

/* Lets go of units kept for too long. */
void sampling_expire(struct sampling *sampling, uint64_t now_ns);
