/* SPDX-License-Identifier: MIT
 *
 * Finds the functions of a stack's frames, and has read what is new of them and what proves the rest.
 *
 * Of a stack whose outer part is known (reader/outer_frames.h) only the inner frames are named, and those of
 * the outer ones that need a look: the loops here and in
 * reader/naming.c run over these.
 *
 * All that must be read is collected first and then fetched together: headers of functions to be proved, then
 * names and opcodes, then class names. In steady state nothing is left to read: names come from the cache,
 * and what proves them came with the view's single call.
 */
#include "reader/function.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/function_proof.h"
#include "reader/function_text.h"
#include "reader/load.h"
#include "reader/naming.h"

/* Closures and the like that are remembered, dead or alive. A program that makes new ones all the time finds
 * each but a few times. */
#define MAX_VOLATILE 512
#define BATCH_SPANS 256

/* Spans that are wanted, fetched together. */
struct batch {
	struct view *view;
	struct remote_span spans[BATCH_SPANS];
	size_t count;
	int result;
};

/* The functions of one stack on their way to being known. */
struct proving {
	struct naming naming;
	bool stale; /* see FUNCTION_E_STALE */
	struct batch batch;
};

int function_cache_new(
	const struct layout *layout, remote_addr executor_globals, struct function_cache **ret_cache)
{
	struct function_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return -ENOMEM;
	cache->layout = layout;
	cache->executor_globals = executor_globals;
	*ret_cache = cache;
	return 0;
}

void function_cache_free(struct function_cache *cache)
{
	if (!cache)
		return;
	function_table_deinit(&cache->table);
	free(cache);
}

void function_cache_new_request(struct function_cache *cache)
{
	cache->request++;
}

static int batch_fetch(struct batch *batch)
{
	if (batch->result == 0 && batch->count > 0)
		batch->result = view_prefetch(batch->view, batch->spans, batch->count);
	batch->count = 0;
	return batch->result;
}

static void batch_want(struct batch *batch, struct remote_span span)
{
	if (span.addr < USER_SPACE_FIRST || span.addr >= USER_SPACE_END)
		return;
	if (batch->count == BATCH_SPANS)
		batch_fetch(batch);
	batch->spans[batch->count++] = span;
}

/* Finds or makes the entries of all frames, and wants what proves those that need it. */
static int look_up(struct proving *proving)
{
	struct naming *naming = &proving->naming;
	struct function_table *table = &naming->cache->table;

	for (size_t i = 0; i < naming->count; i++) {
		const struct raw_frame *frame = &naming->stack->frames[i];
		struct remote_span spans[FUNCTION_PROOF_SPANS];
		struct function_entry *entry;
		uint32_t number = function_table_find(table, frame->func);
		size_t count;
		int r;

		if (number == FUNCTION_NONE) {
			r = function_table_add(table, frame->func, FUNCTION_CACHE_MAX_ENTRIES, &number);
			if (r < 0)
				return r;
		}
		naming->numbers[i] = number;
		entry = &table->entries[number];
		if (!function_proof_needed(naming->layout, entry, frame, naming_opline(naming, frame),
			    naming_is_caller(i), naming->cache->request))
			continue;
		entry->flags |= FUNCTION_TO_PROVE;
		if (i > 0 && frame->func == frame[-1].func)
			continue; /* recursion: wanted already */
		count = function_proof_spans(naming->layout, entry, naming->cache->request, spans);
		for (size_t s = 0; s < count; s++)
			batch_want(&proving->batch, spans[s]);
	}
	return batch_fetch(&proving->batch);
}

/* Wants the frame's opcode unless it is known. That of a closure made a moment ago is if others of its
 * expression were seen. */
static void want_op(struct proving *proving, size_t frame)
{
	struct naming *naming = &proving->naming;
	struct function_entry *entry = naming_entry(naming, frame);
	remote_addr opline = naming_opline(naming, &naming->stack->frames[frame]);

	if ((entry->flags & FUNCTION_IS_INTERNAL) || !function_has_opline(naming->layout, entry, opline))
		return;
	if (!(entry->flags & FUNCTION_HAS_VOLATILE_LINES) &&
		(!(entry->flags & FUNCTION_IS_FRESH) ||
			function_proof_try_seal(naming->layout, naming->view, entry)) &&
		function_table_op(&naming->cache->table, opline, naming_content(naming, entry)))
		return;
	batch_want(&proving->batch, naming_op_span(naming->layout, opline));
}

/* Was this function proved in this request, and is it of those that live as long? */
static bool is_lasting(const struct naming *naming, const struct function_entry *entry)
{
	return (entry->flags & FUNCTION_IS_NAMED) && !(entry->flags & FUNCTION_IS_VOLATILE) &&
	       ((entry->flags & FUNCTION_IS_INTERNAL) || entry->proved_in == naming->cache->request);
}

/* Was something else read than the frame's function, which has ended since? A script's top level is no
 * internal function; one without a name is a fiber's base, whose frame is all zero (zend_fiber_execute() in
 * Zend/zend_fibers.c), and would be left out of the stack. */
static bool is_misread(
	const struct layout *layout, const struct function_entry *entry, const struct raw_frame *frame)
{
	return (entry->flags & FUNCTION_IS_INTERNAL) &&
	       ((frame->call_info & layout->ZEND_CALL_CODE) ||
		       (entry->function_name == 0 && frame->call_info != 0));
}

/* Proves what was wanted, and wants names and opcodes. */
static int prove(struct proving *proving)
{
	struct naming *naming = &proving->naming;
	const struct layout *layout = naming->layout;

	for (size_t i = 0; i < naming->count; i++) {
		struct function_entry *entry = naming_entry(naming, i);
		bool same = false, was_lasting = is_lasting(naming, entry);
		int r;

		if (entry->flags & FUNCTION_TO_PROVE) {
			r = function_proof_check(layout, naming->view, entry, naming->cache->request, &same);
			if (r == 0 && is_misread(layout, entry, &naming->stack->frames[i]))
				r = REMOTE_E_FAULT;
			if (r == REMOTE_E_FAULT) {
				*entry = (struct function_entry){.func = entry->func};
				proving->stale |= was_lasting;
				continue;
			}
			if (r != 0)
				return r;
			entry->flags &= ~FUNCTION_TO_PROVE;
			entry->proved_in = naming->cache->request;
			entry->run_time_cache = naming->stack->frames[i].run_time_cache;
			if (!same) {
				proving->stale |= was_lasting;
				if (entry->flags & FUNCTION_IS_VOLATILE)
					naming->cache->new_volatile++;
				batch_want(&proving->batch, function_text_span(layout, entry->function_name));
				batch_want(&proving->batch, function_text_span(layout, entry->filename));
				if (entry->scope != 0)
					batch_want(&proving->batch,
						(struct remote_span){.addr = entry->scope + layout->ce_name,
							.bytes = sizeof(uint64_t)});
			}
		}
		want_op(proving, i);
	}
	return batch_fetch(&proving->batch);
}

/* A closure and what it is after Closure::bind() have their opcodes in common, and live one after the other
 * in the same place: all that a frame tells about which of them it is, is whether there is a class to it. */
static bool is_bound_otherwise(
	const struct naming *naming, const struct function_entry *entry, const struct raw_frame *frame)
{
	return (frame->call_info & naming->layout->ZEND_CALL_CLOSURE) &&
	       (entry->scope != 0) != (frame->called_object_or_class != 0);
}

/* The target moved on while functions were read. Are they nevertheless those of the snapshot's frames? */
static bool outlived(struct naming *naming)
{
	for (size_t i = 0; i < naming->count; i++) {
		const struct function_entry *entry = naming_entry(naming, i);

		if (!(entry->flags & (FUNCTION_IS_VOLATILE | FUNCTION_IS_FRESH)) ||
			((entry->flags & FUNCTION_IS_INTERNAL) && !(entry->flags & FUNCTION_IS_VOLATILE)))
			continue;
		if (!(entry->flags & FUNCTION_IS_VOLATILE) && !naming_is_caller(i))
			continue; /* its opline says nothing, but it lives as long as the request */
		if (!function_has_opline(
			    naming->layout, entry, naming_opline(naming, &naming->stack->frames[i])))
			return false;
		if (is_bound_otherwise(naming, entry, &naming->stack->frames[i]))
			return false;
	}
	return true;
}

/* Wants the class names of what is new. */
static int fetch_class_names(struct proving *proving)
{
	struct naming *naming = &proving->naming;

	for (size_t i = 0; i < naming->count; i++) {
		const struct function_entry *entry = naming_entry(naming, i);
		const uint8_t *name;

		if (!(entry->flags & FUNCTION_IS_FRESH) || !plausible_address(entry->scope))
			continue;
		name = view_at(naming->view, entry->scope + naming->layout->ce_name, sizeof(uint64_t));
		if (name)
			batch_want(&proving->batch, function_text_span(naming->layout, load_u64(name)));
	}
	return batch_fetch(&proving->batch);
}

int function_cache_name(struct function_cache *cache, struct view *view, const struct raw_stack *stack,
	const struct frame_names *names, struct named_stack *ret_named)
{
	struct proving proving;
	struct naming *naming = &proving.naming;
	int r;

	naming->cache = cache;
	naming->layout = cache->layout;
	naming->view = view;
	naming->stack = stack;
	naming->count = stack->count + stack->look_count;
	proving.stale = false;
	naming->names = names;
	proving.batch.view = view;
	proving.batch.count = 0;
	proving.batch.result = 0;

	if (cache->names_epoch != names->epoch) {
		function_table_clear(&cache->table);
		cache->names_epoch = names->epoch;
	}
	if (cache->new_volatile > MAX_VOLATILE) {
		function_table_forget(&cache->table, FUNCTION_IS_VOLATILE);
		cache->new_volatile = 0;
	}
	view_allow_brief(view);
	r = look_up(&proving);
	if (r == -ENOSPC) {
		function_table_forget(&cache->table, FUNCTION_IS_VOLATILE);
		if (cache->table.count + naming->count > FUNCTION_CACHE_MAX_ENTRIES)
			function_table_clear(&cache->table);
		proving.batch.count = 0;
		r = look_up(&proving);
	}
	if (r == 0)
		r = prove(&proving);
	if (r == 0 && proving.stale && stack->joined > 0)
		r = FUNCTION_E_STALE;
	if (r == 0 && view_moved(view) && !outlived(naming))
		r = VIEW_E_TORN;
	if (r == 0)
		r = fetch_class_names(&proving);
	if (r == 0)
		r = naming_name(naming, ret_named);
	return r;
}
