/* SPDX-License-Identifier: MIT
 *
 * Distinct frames (function, file, declaration line) and their numbers. Bounded. One thread adds to a table;
 * who was given numbers and a reference along with them may look these up from any other, at any time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "reader/function.h"

/* Frames that no PHP function has, with fixed numbers. */
enum {
	FRAME_ROOT = 0,
	FRAME_TORN,      /* "<torn>": moved under every try, below the frames that are certain */
	FRAME_UNREAD,    /* "<unread>": time of the unit nobody looked at or could read */
	FRAME_ENGINE,    /* "<engine>": a request is on, but no PHP function: start-up, output, shutdown */
	FRAME_TRUNCATED, /* "<truncated>": frames left out of the middle of a deep stack */
	FRAME_OTHER,     /* "<other>": the frame or node bound was reached */
	FRAME_FIRST_PHP, /* the first number interned frames get */
};

struct frame_table;

/* At most @max_frames frames and @max_bytes of them and their text (64 KiB are always allowed). -ENOMEM. */
int frame_table_new(uint32_t max_frames, size_t max_bytes, struct frame_table **ret_table);
/* One reference more. */
struct frame_table *frame_table_ref(struct frame_table *table);
/* Gives one reference up; the last one frees. */
void frame_table_free(struct frame_table *table);
DEFINE_CLEANUP(struct frame_table, frame_table_free)

/* The number of this frame; FRAME_OTHER when the table is full (counted). A name that equals a fixed frame's,
 * with no file, is that fixed frame. */
uint32_t frame_table_intern(struct frame_table *table, const struct function_name *name);

/* Owned by the table, valid until it is cleared or freed. A number never given is FRAME_OTHER. */
const struct function_name *frame_table_get(const struct frame_table *table, uint32_t id);

/* A table of the fixed frames and those for which @numbers[number] is not 0, which are numbered anew:
 * @numbers[number], of which there are frame_table_count(), becomes the new one. What was counted so far, the
 * new table goes on counting. -ENOMEM: @numbers are as they were. */
int frame_table_prune(const struct frame_table *table, uint32_t *numbers, struct frame_table **ret_pruned);

uint32_t frame_table_count(const struct frame_table *table);
size_t frame_table_bytes(const struct frame_table *table);
uint64_t frame_table_overflows(const struct frame_table *table);
