/* SPDX-License-Identifier: MIT
 *
 * Frames have other numbers in each sampler's table, and others again whenever one was pruned. What came from
 * a sampler is translated into the numbers of the receiver's own table, by what the frames are; the pairs
 * that were met are remembered as long as the sampler's table is the same.
 */
#pragma once

#include <stdint.h>

#include "daemon/profile/frame_table.h"
#include "daemon/profile/weighed_tree.h"

/* Of one sampler's table. All zero: nothing met yet. */
struct renumbering {
	struct frame_table *seen; /* a reference: the table that came last */
	uint32_t *numbers;        /* ours by its; RENUMBERING_UNMET */
	uint32_t count;
};

#define RENUMBERING_UNMET UINT32_MAX

/* Gives the nodes of @tree the numbers of @ours, where frames that are not there yet are interned. -ENOMEM:
 * they have theirs. */
int renumbering_translate(
	struct renumbering *renumbering, struct weighed_tree *tree, struct frame_table *ours);

/* Remembers nothing: to be called when @ours is another, and at the end. */
void renumbering_forget(struct renumbering *renumbering);
