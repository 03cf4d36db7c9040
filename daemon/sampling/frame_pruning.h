/* SPDX-License-Identifier: MIT
 *
 * What to do about a full frame table: names of code that nobody runs any more (last month's releases) make
 * room for those that run now.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/profile/calltree.h"
#include "daemon/profile/frame_table.h"

/* When it was done last; all 0 at first. */
struct frame_pruning {
	uint64_t at_ns;
	uint64_t overflows; /* what the table counted then */
};

/* Has the table been full since, and is it long enough ago? Then this is noted as the last time. */
bool frame_pruning_is_due(struct frame_pruning *pruning, const struct frame_table *frames, uint64_t now_ns);

/* Replaces *@frames by a table without the frames that none of @trees has a node of, and renumbers these.
 * What was handed over has a reference to the table of before. -ENOMEM: all is as it was. */
int frame_pruning_run(struct frame_table **frames, struct calltree *const *trees, size_t count);
