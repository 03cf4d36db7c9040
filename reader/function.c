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
 * Of a stack whose outer part is known (reader/outer_frames.h) only the inner frames are named, and those of
 * the outer ones that need a look: the loops below run over these.
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
	size_t count;                       /* frames of the stack that are looked at */
	uint32_t numbers[STACK_MAX_FRAMES]; /* of the frames' entries */
	bool stale;                         /* see FUNCTION_E_STALE */
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

/* Where EG(exception) is. */
static remote_addr exception_of(const struct naming *naming)
{
	return naming->cache->executor_globals + naming->layout->eg_exception;
}

static bool is_unwound(const struct naming *naming, const struct raw_frame *frame)
{
	remote_addr exception_op = exception_of(naming) + EXCEPTION_OP_AFTER_EXCEPTION;

	return frame->opline >= exception_op &&
	       frame->opline < exception_op + (uint64_t)EXCEPTION_OPS * naming->layout->op_sizeof;
}

/* The opline of a frame. While it is unwound for an exception PHP points it at EG(exception_op), and keeps
 * where it was in EG(opline_before_exception). */
static remote_addr opline_of(struct naming *naming, const struct raw_frame *frame)
{
	remote_addr exception = exception_of(naming);
	const uint8_t *before;

	if (!is_unwound(naming, frame))
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
		if (!function_proof_needed(naming->layout, entry, frame, opline_of(naming, frame),
			    is_caller(naming, i), naming->cache->request))
			continue;
		entry->flags |= FUNCTION_TO_PROVE;
		if (i > 0 && frame->func == frame[-1].func)
			continue; /* recursion: wanted already */
		count = function_proof_spans(naming->layout, entry, naming->cache->request, spans);
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

/* Was this function proved in this request, and is it of those that live as long? */
static bool is_lasting(const struct naming *naming, const struct function_entry *entry)
{
	return (entry->flags & FUNCTION_IS_NAMED) && !(entry->flags & FUNCTION_IS_VOLATILE) &&
	       ((entry->flags & FUNCTION_IS_INTERNAL) || entry->proved_in == naming->cache->request);
}

/* Proves what was wanted, and wants names and opcodes. */
static int prove(struct naming *naming)
{
	const struct layout *layout = naming->layout;

	for (size_t i = 0; i < naming->count; i++) {
		struct function_entry *entry = entry_of(naming, i);
		bool same = false, was_lasting = is_lasting(naming, entry);
		int r;

		if (entry->flags & FUNCTION_TO_PROVE) {
			r = function_proof_check(layout, naming->view, entry, naming->cache->request, &same);
			if (r == REMOTE_E_FAULT) {
				*entry = (struct function_entry){.func = entry->func};
				naming->stale |= was_lasting;
				continue;
			}
			if (r != 0)
				return r;
			entry->flags &= ~FUNCTION_TO_PROVE;
			entry->proved_in = naming->cache->request;
			entry->run_time_cache = naming->stack->frames[i].run_time_cache;
			if (!same) {
				naming->stale |= was_lasting;
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
	for (size_t i = 0; i < naming->count; i++) {
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
	for (size_t i = 0; i < naming->count; i++) {
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

/* Where the frame stands, counted from the outer end of those that were joined; for these only. */
static size_t joined_at(const struct naming *naming, size_t frame)
{
	return naming->stack->look_at[frame - naming->stack->count];
}

static bool is_joined(const struct naming *naming, size_t frame)
{
	return frame >= naming->stack->count;
}

static bool is_outermost(const struct naming *naming, size_t frame)
{
	const struct raw_stack *stack = naming->stack;

	if (is_joined(naming, frame))
		return joined_at(naming, frame) == 0;
	return stack->whole && stack->joined == 0 && frame + 1 == stack->count;
}

/* Is the frame that called @frame the next one that is looked at? */
static bool has_caller(const struct naming *naming, size_t frame)
{
	const struct raw_stack *stack = naming->stack;

	if (frame + 1 >= naming->count || (stack->omitted > 0 && frame == stack->omitted_after))
		return false;
	return !is_joined(naming, frame) || joined_at(naming, frame + 1) + 1 == joined_at(naming, frame);
}

/* How the code of frame @frame was included: by the opcode of the frame outside of it. */
static uint8_t include_kind_of(struct naming *naming, size_t frame)
{
	struct op_entry op;

	if (!has_caller(naming, frame))
		return entry_of(naming, frame)->op_kind; /* not to be seen; what was known holds */
	return get_op(naming, frame + 1, &op) ? op.include_kind : 0;
}

/* A script's top level, included and eval()'d code. */
static bool is_pseudo(const struct function_entry *entry)
{
	return !(entry->flags & FUNCTION_IS_INTERNAL) && entry->function_name == 0 && entry->opcodes != 0;
}

/* A fiber's base (zend_fiber_execute() in Zend/zend_fibers.c). */
static bool is_fiber_base(const struct function_entry *entry)
{
	return (entry->flags & FUNCTION_IS_INTERNAL) && entry->function_name == 0;
}

static int name_frame(struct naming *naming, size_t index, struct frame *ret_frame)
{
	struct function_entry *entry = entry_of(naming, index);
	struct op_entry op;

	if (is_pseudo(entry)) {
		bool outermost = is_outermost(naming, index);
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

/* The same, "<unread>" if need be. */
static int name_frame_anyhow(struct naming *naming, size_t index, struct frame *ret_frame)
{
	const struct function_name unread = {.name = UNREAD_NAME, .file = ""};
	int r = name_frame(naming, index, ret_frame);

	if (r != REMOTE_E_FAULT)
		return r;
	*ret_frame = (struct frame){
		.name_id = naming->names->intern(naming->names->context, &unread), .line_approximate = true};
	return 0;
}

/* How long does @named, the frame's name and line, hold? */
static enum frame_hold hold_of(struct naming *naming, size_t index, const struct frame *named)
{
	const struct raw_frame *frame = &naming->stack->frames[index];
	const struct function_entry *entry = entry_of(naming, index);

	if (!(entry->flags & FUNCTION_IS_NAMED) || is_fiber_base(entry) || is_unwound(naming, frame))
		return FRAME_PASSES;
	if (is_pseudo(entry))
		return FRAME_NEEDS_CALLER;
	if ((entry->flags & FUNCTION_HAS_VOLATILE_LINES) || named->line_approximate ||
		function_proof_needed(
			naming->layout, entry, frame, frame->opline, true, naming->cache->request))
		return FRAME_NEEDS_LOOK;
	return FRAME_HOLDS;
}

/* Names those of the joined frames that got a look, in place. */
static int name_joined(struct naming *naming, struct named_stack *ret_named)
{
	for (size_t i = naming->stack->count; i < naming->count; i++) {
		size_t at = joined_at(naming, i);
		struct frame *frame = ret_named->end - 1 - at, now;
		int r = name_frame_anyhow(naming, i, &now);

		if (r != 0)
			return r;
		if (now.name_id == frame->name_id && now.line == frame->line && now.kind == frame->kind &&
			now.line_approximate == frame->line_approximate)
			continue;
		*frame = now;
		if (at < ret_named->same_outer)
			ret_named->same_outer = at;
	}
	return 0;
}

static int name_all(struct naming *naming, struct named_stack *ret_named)
{
	const struct raw_stack *stack = naming->stack;
	struct frame *frame = ret_named->end - stack->joined;
	int r;

	ret_named->omitted = stack->omitted;
	ret_named->omitted_after = stack->omitted_after;
	ret_named->same_outer = stack->joined;
	r = name_joined(naming, ret_named);
	for (size_t i = stack->count; r == 0 && i-- > 0;) {
		r = name_frame_anyhow(naming, i, --frame);
		ret_named->holds[i] = (uint8_t)hold_of(naming, i, frame);
		if (is_fiber_base(entry_of(naming, i))) {
			if (i <= stack->omitted_after && ret_named->omitted_after > 0)
				ret_named->omitted_after--;
			frame++;
		}
	}
	ret_named->frames = frame;
	ret_named->count = (size_t)(ret_named->end - frame);
	return r;
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
	naming.count = stack->count + stack->look_count;
	naming.stale = false;
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
		if (cache->table.count + naming.count > FUNCTION_CACHE_MAX_ENTRIES)
			function_table_clear(&cache->table);
		naming.batch.count = 0;
		r = look_up(&naming);
	}
	if (r == 0)
		r = prove(&naming);
	if (r == 0 && naming.stale && stack->joined > 0)
		r = FUNCTION_E_STALE;
	if (r == 0 && view_moved(view) && !outlived(&naming))
		r = VIEW_E_TORN;
	if (r == 0)
		r = fetch_class_names(&naming);
	if (r == 0)
		r = name_all(&naming, ret_named);
	return r;
}
