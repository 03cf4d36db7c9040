/* SPDX-License-Identifier: MIT
 *
 * Memory for one instant: given out piece by piece, taken back all at once. What was given out never moves.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* the newest first */
	size_t peak_bytes;          /* in use at most, since the last look at it */
	unsigned resets;
};

/* Takes everything back, and sees to it that the next @bytes come without an allocation. Sized by what was
 * needed lately, so that in steady state nothing is allocated, and shrinks some time after a peak. 0 or
 * -ENOMEM. */
int arena_reset(struct arena *arena, size_t bytes);

/* @bytes (a multiple of 8), aligned to 8; consecutive pieces touch each other where they can. NULL: no
 * memory. */
void *arena_take(struct arena *arena, size_t bytes);

void arena_deinit(struct arena *arena);
