/* SPDX-License-Identifier: MIT
 *
 * From one sample to the next the outer part of a stack is mostly the same: {main}, the framework, the
 * controller. Decoding a frame, finding its function and its line costs some 50 ns; comparing six words with
 * what they were costs two. So the frames of the last stack are kept, and the first thing a sample does is to
 * look, from the outer end inwards, how far its own copy of the stack has the same words in the same place.
 * The walk then goes from the leaf outwards until it meets the innermost of them, and the rest is known.
 *
 * That the words are the same says what they say, and no more: they are compared with this sample's bytes,
 * as a walk would read them, so no stack comes of it that a walk would not have found. What they don't say is
 * whether the function behind them still is the one that was named. For most that is so until the request
 * ends; those that may be freed before (a script's top level, closures, eval()'d code) need a look in every
 * sample, as ever, and are listed (reader/function.c knows them).
 *
 * Only frames on the innermost VM stack page are remembered, each called directly by the one before it.
 * Where a generator or another stack lies between, the frames inside of it are walked.
 */
#include "reader/outer_frames.h"

#include <stdlib.h>
#include <string.h>

#include "reader/function.h"
#include "reader/load.h"

#define FIRST_ROOM 64

void outer_frames_deinit(struct outer_frames *outer)
{
	free(outer->frames);
	free(outer->looks);
	free(outer->names);
	*outer = (struct outer_frames){0};
}

/* Forgets all but the outermost @count. */
static void cut(struct outer_frames *outer, size_t count)
{
	if (count < outer->count)
		outer->count = count;
	while (outer->look_count > 0 && outer->looks[outer->look_count - 1] >= outer->count)
		outer->look_count--;
}

void outer_frames_forget(struct outer_frames *outer)
{
	cut(outer, 0);
	outer->verified = 0;
}

void outer_frames_verify(struct outer_frames *outer, const struct view *view, const struct layout *layout)
{
	const struct view_main *main = view_main(view);
	remote_addr prev = 0;
	size_t most, i;

	outer->verified = 0;
	if (outer->count == 0 || main->bytes < layout->ex_sizeof || main->addr != outer->page)
		return;
	most = main->bytes - layout->ex_sizeof;
	for (i = 0; i < outer->count; i++) {
		const struct outer_frame *frame = &outer->frames[i];
		const uint8_t *words = main->first + frame->offset;

		if (frame->offset > most || load_u64(words + layout->ex_prev_execute_data) != prev ||
			load_u64(words + layout->ex_func) != frame->func ||
			load_u64(words + layout->ex_opline) != frame->opline ||
			load_u64(words + layout->ex_run_time_cache) != frame->run_time_cache ||
			load_u64(words + layout->ex_This) != frame->called_object_or_class ||
			load_u32(words + layout->ex_type_info) != frame->call_info)
			break;
		prev = outer->page + frame->offset;
	}
	outer->verified = i;
}

static struct raw_frame raw_frame_of(const struct outer_frames *outer, size_t index)
{
	const struct outer_frame *frame = &outer->frames[index];

	return (struct raw_frame){
		.execute_data = outer_frame_addr(outer, index),
		.prev = index > 0 ? outer_frame_addr(outer, index - 1) : 0,
		.func = frame->func,
		.opline = frame->opline,
		.run_time_cache = frame->run_time_cache,
		.called_object_or_class = frame->called_object_or_class,
		.call_info = frame->call_info,
	};
}

static void add_look(const struct outer_frames *outer, size_t index, struct raw_stack *stack)
{
	stack->frames[stack->count + stack->look_count] = raw_frame_of(outer, index);
	stack->look_at[stack->look_count++] = (uint16_t)index;
}

void outer_frames_join(const struct outer_frames *outer, size_t count, struct raw_stack *stack)
{
	stack->joined = count;
	stack->look_count = 0;
	/* What was included just now is called after its caller's opcode. */
	add_look(outer, count - 1, stack);
	for (size_t i = outer->look_count; i-- > 0;)
		if (outer->looks[i] < count - 1)
			add_look(outer, outer->looks[i], stack);
}

void outer_frames_unjoin(const struct outer_frames *outer, struct raw_stack *stack)
{
	for (size_t i = stack->joined; i-- > 0;)
		stack->frames[stack->count++] = raw_frame_of(outer, i);
	stack->joined = stack->look_count = 0;
}

struct frame *outer_frames_names_end(struct outer_frames *outer, size_t count)
{
	if (count > outer->names_room) {
		size_t room = count < FIRST_ROOM ? FIRST_ROOM : 2 * count;
		struct frame *names = malloc(room * sizeof(*names));

		if (!names)
			return NULL;
		/* What was named stays at the end. */
		if (outer->names_room > 0)
			memcpy(names + room - outer->names_room, outer->names,
				outer->names_room * sizeof(*names));
		free(outer->names);
		outer->names = names;
		outer->names_room = room;
	}
	return outer->names + outer->names_room;
}

static bool make_room(struct outer_frames *outer, size_t count)
{
	size_t room = count < FIRST_ROOM ? FIRST_ROOM : 2 * count;
	struct outer_frame *frames;
	uint16_t *looks;

	if (count <= outer->room)
		return true;
	frames = realloc(outer->frames, room * sizeof(*frames));
	if (!frames)
		return false;
	outer->frames = frames;
	looks = realloc(outer->looks, room * sizeof(*looks));
	if (!looks)
		return false;
	outer->looks = looks;
	outer->room = room;
	return true;
}

/* Notes, in order, that the frame at @index needs a look. */
static void note_look(struct outer_frames *outer, size_t index)
{
	if (outer->look_count == 0 || outer->looks[outer->look_count - 1] < index)
		outer->looks[outer->look_count++] = (uint16_t)index;
}

void outer_frames_remember(struct outer_frames *outer, const struct raw_stack *stack, const uint8_t *holds)
{
	remote_addr last;

	cut(outer, stack->joined);
	if (stack->joined == 0)
		outer->page = stack->page;
	if (!stack->whole || stack->omitted > 0 || !make_room(outer, stack->joined + stack->count))
		return;
	last = outer->count > 0 ? outer_frame_addr(outer, outer->count - 1) : 0;
	/* The innermost frame has called nobody: how it is named may be different the next time. */
	for (size_t i = stack->count; i-- > 1;) {
		const struct raw_frame *frame = &stack->frames[i];
		remote_addr offset = frame->execute_data - outer->page;

		if (holds[i] == FRAME_PASSES || frame->prev != last || frame->execute_data <= outer->page ||
			frame->execute_data <= last || offset >= stack->used_bytes || offset > UINT32_MAX)
			return;
		if (holds[i] == FRAME_NEEDS_CALLER && outer->count > 0)
			note_look(outer, outer->count - 1);
		if (holds[i] != FRAME_HOLDS)
			note_look(outer, outer->count);
		outer->frames[outer->count++] = (struct outer_frame){
			.func = frame->func,
			.opline = frame->opline,
			.run_time_cache = frame->run_time_cache,
			.called_object_or_class = frame->called_object_or_class,
			.offset = (uint32_t)offset,
			.call_info = frame->call_info,
		};
		last = frame->execute_data;
	}
}
