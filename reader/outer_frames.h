/* SPDX-License-Identifier: MIT
 *
 * The outer part of a process's last stack, with names: what the next sample need not decode, look up and
 * name again where it finds the same words in the same place.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/layout.h"
#include "reader/stack.h"
#include "reader/view.h"

struct frame;

/* For how long a name and a line hold, as long as the words of their frame and of those outside of it do. */
enum frame_hold {
	FRAME_HOLDS,      /* for the rest of the request */
	FRAME_NEEDS_LOOK, /* its function may be replaced by one that looks the same: until the next sample */
	FRAME_NEEDS_CALLER, /* the same, and what it is called is said by its caller's opcode */
	FRAME_PASSES,       /* not at all */
};

struct outer_frame {
	remote_addr func, opline, run_time_cache, called_object_or_class;
	uint32_t offset; /* of the execute_data, from the page's start */
	uint32_t call_info;
};

/* All zero at first. */
struct outer_frames {
	remote_addr page;           /* the VM stack page that they lie on */
	struct outer_frame *frames; /* outermost first, so that they stay in place when the inner end changes;
				     * the first has no predecessor, every other one was called by the one
				     * before it, and each has called another one */
	size_t count, room;
	uint16_t *looks; /* which of them need a look, outermost first */
	size_t look_count;
	size_t verified; /* so many are still the same, see outer_frames_verify() */

	struct frame *names; /* of the last stack, all of it, leaf first, at the end of this room */
	size_t names_room;
};

void outer_frames_deinit(struct outer_frames *outer);

/* Nothing is remembered any more. The names stay readable. */
void outer_frames_forget(struct outer_frames *outer);

/* Finds out how many of them lie unchanged, without a gap from the outer end, in the main span of @view. */
void outer_frames_verify(struct outer_frames *outer, const struct view *view, const struct layout *layout);

static inline remote_addr outer_frame_addr(const struct outer_frames *outer, size_t index)
{
	return outer->page + outer->frames[index].offset;
}

/* @stack, which came to the address of the innermost of @count verified frames, is complete with them: puts
 * those that need a look behind the frames it has. */
void outer_frames_join(const struct outer_frames *outer, size_t count, struct raw_stack *stack);

/* Replaces what @stack only refers to by the frames themselves. */
void outer_frames_unjoin(const struct outer_frames *outer, struct raw_stack *stack);

/* Where the names of a stack with @count frames more than those it has joined go: behind the outermost one.
 * NULL: no memory. */
struct frame *outer_frames_names_end(struct outer_frames *outer, size_t count);

/* Remembers what there is of @stack, which has been named, from the outer end inwards. @holds says of each of
 * stack->frames how long its name holds. Without memory less is remembered. */
void outer_frames_remember(struct outer_frames *outer, const struct raw_stack *stack, const uint8_t *holds);
