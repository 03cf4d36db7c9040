/* SPDX-License-Identifier: MIT
 *
 * Names and lines for the frames of one stack, as zend_fetch_debug_backtrace()
 * (Zend/zend_builtin_functions.c) would give them:
 *
 * - a method is called after the class that declares it (func->common.scope), not after the object's;
 * - code without a name of its own is what the INCLUDE_OR_EVAL opcode of its caller says: include,
 * require_once, eval; nobody's callee is {main};
 * - an internal function without a name (a fiber's base) is no frame;
 * - a caller's line is that of its opline. The innermost user frame's opline is only a hint: the VM keeps the
 *   running one in a register and writes it back now and then.
 *
 * All that must be read is collected first and then fetched together: headers of functions to be proved, then
 * names and opcodes, then class names. In steady state nothing is left to read: names come from the cache,
 * and what proves them came with the view's single call.
 */
#include "reader/function.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/function_proof.h"
#include "reader/function_table.h"
#include "reader/function_text.h"
#include "reader/load.h"

/* Closures and the like that are remembered, dead or alive. A program that makes new ones all the time finds
 * each but a few times. */
#define MAX_VOLATILE 512
#define UNREAD_NAME "<unread>"
/* Room for "::", a cut mark and the end, after a class name. */
#define METHOD_ROOM_BYTES 8
/* EG(opline_before_exception) and EG(exception_op)[3] follow EG(exception) and EG(prev_exception) in every
 * version (Zend/zend_globals.h, 7.4 to 8.6). */
#define OPLINE_BEFORE_EXCEPTION_AFTER_EXCEPTION 16
#define EXCEPTION_OP_AFTER_EXCEPTION 24
#define EXCEPTION_OPS 3
/* The end of an eval()'d file's name (zend_make_compiled_string_description() in Zend/zend.c). */
#define EVAL_SUFFIX " : eval()'d code"

struct function_cache {
	const struct layout *layout;
	remote_addr executor_globals;
	struct function_table table;
	uint32_t request;
	uint32_t new_volatile; /* since they were last forgotten */
	uint32_t names_epoch;
};

#define BATCH_SPANS 256

/* Spans that are wanted, fetched together. */
struct batch {
	struct view *view;
	struct remote_span spans[BATCH_SPANS];
	size_t count;
	int result;
};

/* One call of function_cache_name(). */
struct naming {
	struct function_cache *cache;
	const struct layout *layout;
	struct view *view;
	const struct raw_stack *stack;
	const struct frame_names *names;
	uint32_t numbers[STACK_MAX_FRAMES]; /* of the frames' entries */
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

static struct function_entry *entry_of(struct naming *naming, size_t frame)
{
	const struct function_table *table = &naming->cache->table;

	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): look_up() wrote all numbers */
	return &table->entries[naming->numbers[frame]];
}

/* The opline of a frame. While it is unwound for an exception PHP points it at EG(exception_op), and keeps
 * where it was in EG(opline_before_exception). */
static remote_addr opline_of(struct naming *naming, const struct raw_frame *frame)
{
	remote_addr exception = naming->cache->executor_globals + naming->layout->eg_exception;
	remote_addr exception_op = exception + EXCEPTION_OP_AFTER_EXCEPTION;
	const uint8_t *before;

	if (frame->opline < exception_op ||
		frame->opline >= exception_op + (uint64_t)EXCEPTION_OPS * naming->layout->op_sizeof)
		return frame->opline;
	before = view_at(naming->view, exception + OPLINE_BEFORE_EXCEPTION_AFTER_EXCEPTION, sizeof(uint64_t));
	return before ? load_u64(before) : 0;
}

/* Does the frame's opline say exactly where it is? It does if the frame called another one. */
static bool is_caller(const struct naming *naming, size_t frame)
{
	return frame > 0;
}

/* Finds or makes the entries of all frames, and wants what proves those that need it. */
static int look_up(struct naming *naming)
{
	struct function_table *table = &naming->cache->table;

	for (size_t i = 0; i < naming->stack->count; i++) {
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
		if (!function_proof_needed(naming->layout, entry, frame, opline_of(naming, frame),
			    is_caller(naming, i), naming->cache->request))
			continue;
		entry->flags |= FUNCTION_TO_PROVE;
		if (i > 0 && frame->func == frame[-1].func)
			continue; /* recursion: wanted already */
		count = function_proof_spans(naming->layout, entry, spans);
		for (size_t s = 0; s < count; s++)
			batch_want(&naming->batch, spans[s]);
	}
	return batch_fetch(&naming->batch);
}

/* What is known of an opcode holds for one request: the next one's function may look the same, be it freed
 * and compiled anew or in what opcache_reset() emptied, and have a line more in its middle. */
static uint32_t content_now(const struct naming *naming, const struct function_entry *entry)
{
	return entry->content ^ (naming->cache->request * UINT32_C(0x9e3779b1));
}

/* The words of an opcode that are of interest: extended_value, lineno, opcode. */
static struct remote_span op_span(const struct layout *layout, remote_addr opline)
{
	return (struct remote_span){.addr = opline + layout->op_extended_value,
		.bytes = layout->op_sizeof - layout->op_extended_value};
}

/* Wants the frame's opcode unless it is known. That of a closure made a moment ago is if others of its
 * expression were seen. */
static void want_op(struct naming *naming, size_t frame)
{
	struct function_entry *entry = entry_of(naming, frame);
	remote_addr opline = opline_of(naming, &naming->stack->frames[frame]);

	if ((entry->flags & FUNCTION_IS_INTERNAL) || !function_has_opline(naming->layout, entry, opline))
		return;
	if (!(entry->flags & FUNCTION_HAS_VOLATILE_LINES) &&
		(!(entry->flags & FUNCTION_IS_FRESH) ||
			function_proof_try_seal(naming->layout, naming->view, entry)) &&
		function_table_op(&naming->cache->table, opline, content_now(naming, entry)))
		return;
	batch_want(&naming->batch, op_span(naming->layout, opline));
}

/* Proves what was wanted, and wants names and opcodes. */
static int prove(struct naming *naming)
{
	const struct layout *layout = naming->layout;

	for (size_t i = 0; i < naming->stack->count; i++) {
		struct function_entry *entry = entry_of(naming, i);
		bool same = false;
		int r;

		if (entry->flags & FUNCTION_TO_PROVE) {
			r = function_proof_check(layout, naming->view, entry, &same);
			if (r == REMOTE_E_FAULT) {
				*entry = (struct function_entry){.func = entry->func};
				continue;
			}
			if (r != 0)
				return r;
			entry->flags &= ~FUNCTION_TO_PROVE;
			entry->proved_in = naming->cache->request;
			entry->run_time_cache = naming->stack->frames[i].run_time_cache;
			if (!same) {
				if (entry->flags & FUNCTION_IS_VOLATILE)
					naming->cache->new_volatile++;
				batch_want(&naming->batch, function_text_span(layout, entry->function_name));
				batch_want(&naming->batch, function_text_span(layout, entry->filename));
				if (entry->scope != 0)
					batch_want(&naming->batch,
						(struct remote_span){.addr = entry->scope + layout->ce_name,
							.bytes = sizeof(uint64_t)});
			}
		}
		want_op(naming, i);
	}
	return batch_fetch(&naming->batch);
}

/* The target moved on while functions were read. Are they nevertheless those of the snapshot's frames? */
static bool outlived(struct naming *naming)
{
	for (size_t i = 0; i < naming->stack->count; i++) {
		const struct function_entry *entry = entry_of(naming, i);

		if (!(entry->flags & (FUNCTION_IS_VOLATILE | FUNCTION_IS_FRESH)) ||
			((entry->flags & FUNCTION_IS_INTERNAL) && !(entry->flags & FUNCTION_IS_VOLATILE)))
			continue;
		if (!(entry->flags & FUNCTION_IS_VOLATILE) && !is_caller(naming, i))
			continue; /* its opline says nothing, but it lives as long as the request */
		if (!function_has_opline(naming->layout, entry, opline_of(naming, &naming->stack->frames[i])))
			return false;
	}
	return true;
}

/* Wants the class names of what is new. */
static int fetch_class_names(struct naming *naming)
{
	for (size_t i = 0; i < naming->stack->count; i++) {
		const struct function_entry *entry = entry_of(naming, i);
		const uint8_t *name;

		if (!(entry->flags & FUNCTION_IS_FRESH) || !plausible_address(entry->scope))
			continue;
		name = view_at(naming->view, entry->scope + naming->layout->ce_name, sizeof(uint64_t));
		if (name)
			batch_want(&naming->batch, function_text_span(naming->layout, load_u64(name)));
	}
	return batch_fetch(&naming->batch);
}

/* What is known of the frame's opcode; false if it has none that can be had. */
static bool get_op(struct naming *naming, size_t frame, struct op_entry *ret_op)
{
	const struct layout *layout = naming->layout;
	const struct function_entry *entry = entry_of(naming, frame);
	remote_addr opline = opline_of(naming, &naming->stack->frames[frame]);
	bool remembered = !(entry->flags & FUNCTION_HAS_VOLATILE_LINES);
	const struct op_entry *known;
	const uint8_t *words;
	struct remote_span span;

	if ((entry->flags & FUNCTION_IS_INTERNAL) || !function_has_opline(layout, entry, opline))
		return false;
	known = remembered ? function_table_op(&naming->cache->table, opline, content_now(naming, entry))
			   : NULL;
	if (known) {
		*ret_op = *known;
		return true;
	}
	span = op_span(layout, opline);
	words = view_at(naming->view, span.addr, span.bytes);
	if (!words)
		return false;
	*ret_op = (struct op_entry){
		.opline = opline,
		.content = content_now(naming, entry),
		.line = load_u32(words + layout->op_lineno - layout->op_extended_value),
	};
	if (load_u8(words + layout->op_opcode - layout->op_extended_value) == layout->ZEND_INCLUDE_OR_EVAL)
		ret_op->include_kind = (uint8_t)load_u32(words);
	if (remembered)
		function_table_add_op(&naming->cache->table, ret_op); /* if not, it is read again */
	return true;
}

/* What code without a name of its own is called, and what that makes it. */
static const char *pseudo_name(const struct naming *naming, const struct function_entry *entry,
	bool outermost, uint8_t include_kind, enum function_kind *ret_kind)
{
	const struct layout *layout = naming->layout;

	*ret_kind = outermost ? FUNCTION_MAIN : FUNCTION_INCLUDE;
	if (outermost)
		return "{main}";
	if (include_kind == layout->ZEND_EVAL || (include_kind == 0 && (entry->flags & FUNCTION_IS_EVAL))) {
		*ret_kind = FUNCTION_EVAL;
		return "eval";
	}
	if (include_kind == layout->ZEND_INCLUDE_ONCE)
		return "include_once";
	if (include_kind == layout->ZEND_REQUIRE)
		return "require";
	if (include_kind == layout->ZEND_REQUIRE_ONCE)
		return "require_once";
	return "include";
}

static bool ends_with(const char *text, const char *end)
{
	size_t text_bytes = strlen(text), end_bytes = strlen(end);

	return text_bytes >= end_bytes && strcmp(text + text_bytes - end_bytes, end) == 0;
}

/* Reads a function's names and has them interned. 0, REMOTE_E_FAULT, other view_error(). */
static int name_entry(
	struct naming *naming, struct function_entry *entry, bool outermost, uint8_t include_kind)
{
	const struct layout *layout = naming->layout;
	char name[FUNCTION_MAX_NAME_BYTES + 1] = "", file[FUNCTION_MAX_FILE_BYTES + 1] = "";
	struct function_name full = {.name = name, .file = file, .line = entry->line_start};
	enum function_kind kind = entry->kind;
	int r = function_proof_seal(layout, naming->view, entry);

	if (r == 0 && entry->class_name != 0)
		r = function_text_append(
			naming->view, layout, entry->class_name, name, sizeof(name) - METHOD_ROOM_BYTES);
	if (r == 0 && entry->class_name != 0)
		snprintf(name + strlen(name), sizeof(name) - strlen(name), "::");
	if (r == 0 && entry->function_name != 0)
		r = function_text_append(naming->view, layout, entry->function_name, name, sizeof(name));
	if (r == 0 && entry->filename != 0)
		r = function_text_tail(naming->view, layout, entry->filename, file, sizeof(file));
	if (r != 0)
		return r;

	if (entry->function_name == 0)
		full.name = pseudo_name(naming, entry, outermost, include_kind, &kind);
	if (ends_with(file, EVAL_SUFFIX))
		entry->flags |= FUNCTION_HAS_VOLATILE_LINES;
	full.kind = kind;
	entry->kind = (uint8_t)kind;
	entry->op_kind = include_kind;
	entry->name_id = naming->names->intern(naming->names->context, &full);
	entry->flags = (entry->flags & ~FUNCTION_IS_FRESH) | FUNCTION_IS_NAMED;
	return 0;
}

/* How the code of frame @frame was included: by the opcode of the frame outside of it. */
static uint8_t include_kind_of(struct naming *naming, size_t frame)
{
	const struct raw_stack *stack = naming->stack;
	struct op_entry op;

	if (frame + 1 >= stack->count || (stack->omitted > 0 && frame == stack->omitted_after))
		return entry_of(naming, frame)->op_kind; /* not to be seen; what was known holds */
	return get_op(naming, frame + 1, &op) ? op.include_kind : 0;
}

static int name_frame(struct naming *naming, size_t index, struct frame *ret_frame)
{
	struct function_entry *entry = entry_of(naming, index);
	struct op_entry op;

	if (!(entry->flags & FUNCTION_IS_INTERNAL) && entry->function_name == 0 && entry->opcodes != 0) {
		bool outermost = naming->stack->whole && index + 1 == naming->stack->count;
		uint8_t include_kind = include_kind_of(naming, index);

		if (!(entry->flags & FUNCTION_IS_NAMED) || entry->op_kind != include_kind ||
			(entry->kind == FUNCTION_MAIN) != outermost) {
			int r = name_entry(naming, entry, outermost, include_kind);
			if (r != 0)
				return r;
		}
	} else if (!(entry->flags & FUNCTION_IS_NAMED)) {
		if (!(entry->flags & FUNCTION_IS_FRESH))
			return REMOTE_E_FAULT;
		int r = name_entry(naming, entry, false, 0);
		if (r != 0)
			return r;
	}

	*ret_frame = (struct frame){.name_id = entry->name_id, .kind = entry->kind};
	if (entry->flags & FUNCTION_IS_INTERNAL)
		return 0;
	if (get_op(naming, index, &op)) {
		ret_frame->line = op.line;
		ret_frame->line_approximate = !is_caller(naming, index);
	} else {
		ret_frame->line = entry->line_start;
		ret_frame->line_approximate = true;
	}
	return 0;
}

static int name_all(struct naming *naming, struct named_stack *ret_named)
{
	const struct raw_stack *stack = naming->stack;

	ret_named->count = 0;
	ret_named->omitted = stack->omitted;
	ret_named->omitted_after = stack->omitted_after;
	for (size_t i = 0; i < stack->count; i++) {
		struct frame *frame = &ret_named->frames[ret_named->count];
		const struct function_entry *entry = entry_of(naming, i);
		int r = name_frame(naming, i, frame);

		if (r == REMOTE_E_FAULT) {
			const struct function_name unread = {.name = UNREAD_NAME, .file = ""};

			*frame = (struct frame){
				.name_id = naming->names->intern(naming->names->context, &unread),
				.line_approximate = true};
			r = 0;
		}
		if (r != 0)
			return r;
		if ((entry->flags & FUNCTION_IS_INTERNAL) && entry->function_name == 0) {
			/* A fiber's base (zend_fiber_execute() in Zend/zend_fibers.c). */
			if (i <= stack->omitted_after && ret_named->omitted_after > 0)
				ret_named->omitted_after--;
			continue;
		}
		ret_named->count++;
	}
	return 0;
}

int function_cache_name(struct function_cache *cache, struct view *view, const struct raw_stack *stack,
	const struct frame_names *names, struct named_stack *ret_named)
{
	struct naming naming;
	int r;

	naming.cache = cache;
	naming.layout = cache->layout;
	naming.view = view;
	naming.stack = stack;
	naming.names = names;
	naming.batch.view = view;
	naming.batch.count = 0;
	naming.batch.result = 0;

	if (cache->names_epoch != names->epoch) {
		function_table_clear(&cache->table);
		cache->names_epoch = names->epoch;
	}
	if (cache->new_volatile > MAX_VOLATILE) {
		function_table_forget(&cache->table, FUNCTION_IS_VOLATILE);
		cache->new_volatile = 0;
	}
	view_allow_lasting(view);
	r = look_up(&naming);
	if (r == -ENOSPC) {
		function_table_forget(&cache->table, FUNCTION_IS_VOLATILE);
		if (cache->table.count + stack->count > FUNCTION_CACHE_MAX_ENTRIES)
			function_table_clear(&cache->table);
		naming.batch.count = 0;
		r = look_up(&naming);
	}
	if (r == 0)
		r = prove(&naming);
	if (r == 0 && view_moved(view) && !outlived(&naming))
		r = VIEW_E_TORN;
	if (r == 0)
		r = fetch_class_names(&naming);
	if (r == 0)
		r = name_all(&naming, ret_named);
	return r;
}
