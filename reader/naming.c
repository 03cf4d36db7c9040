/* SPDX-License-Identifier: MIT
 *
 * Names and lines for the frames of one stack, as zend_fetch_debug_backtrace()
 * (Zend/zend_builtin_functions.c) would give them:
 *
 * - a method is called after the class that declares it (func->common.scope), not after the object's;
 * - code without a name of its own is what the INCLUDE_OR_EVAL opcode of its caller says: include,
 *   require_once, eval; nobody's callee is {main};
 * - an internal function without a name (a fiber's base) is no frame;
 * - a caller's line is that of its opline. The innermost user frame's opline is only a hint: the VM keeps the
 *   running one in a register and writes it back now and then.
 */
#include "reader/naming.h"

#include <stdio.h>
#include <string.h>

#include "reader/function_proof.h"
#include "reader/function_text.h"
#include "reader/load.h"

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

remote_addr naming_opline(struct naming *naming, const struct raw_frame *frame)
{
	remote_addr exception = exception_of(naming);
	const uint8_t *before;

	if (!is_unwound(naming, frame))
		return frame->opline;
	before = view_at(naming->view, exception + OPLINE_BEFORE_EXCEPTION_AFTER_EXCEPTION, sizeof(uint64_t));
	return before ? load_u64(before) : 0;
}

uint32_t naming_content(const struct naming *naming, const struct function_entry *entry)
{
	return entry->content ^ (naming->cache->request * UINT32_C(0x9e3779b1));
}

struct remote_span naming_op_span(const struct layout *layout, remote_addr opline)
{
	return (struct remote_span){.addr = opline + layout->op_extended_value,
		.bytes = layout->op_sizeof - layout->op_extended_value};
}

/* What is known of the frame's opcode; false if it has none that can be had. */
static bool get_op(struct naming *naming, size_t frame, struct op_entry *ret_op)
{
	const struct layout *layout = naming->layout;
	const struct function_entry *entry = naming_entry(naming, frame);
	remote_addr opline = naming_opline(naming, &naming->stack->frames[frame]);
	bool remembered = !(entry->flags & FUNCTION_HAS_VOLATILE_LINES);
	const struct op_entry *known;
	const uint8_t *words;
	struct remote_span span;

	if ((entry->flags & FUNCTION_IS_INTERNAL) || !function_has_opline(layout, entry, opline))
		return false;
	known = remembered ? function_table_op(&naming->cache->table, opline, naming_content(naming, entry))
			   : NULL;
	if (known) {
		*ret_op = *known;
		return true;
	}
	span = naming_op_span(layout, opline);
	words = view_at(naming->view, span.addr, span.bytes);
	if (!words)
		return false;
	*ret_op = (struct op_entry){
		.opline = opline,
		.content = naming_content(naming, entry),
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
		return naming_entry(naming, frame)->op_kind; /* not to be seen; what was known holds */
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
	struct function_entry *entry = naming_entry(naming, index);
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
		ret_frame->line_approximate = !naming_is_caller(index);
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
	const struct function_entry *entry = naming_entry(naming, index);

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

int naming_name(struct naming *naming, struct named_stack *ret_named)
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
		if (is_fiber_base(naming_entry(naming, i))) {
			if (i <= stack->omitted_after && ret_named->omitted_after > 0)
				ret_named->omitted_after--;
			frame++;
		}
	}
	ret_named->frames = frame;
	ret_named->count = (size_t)(ret_named->end - frame);
	return r;
}
