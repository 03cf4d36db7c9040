/* SPDX-License-Identifier: MIT
 *
 * Without opcache PHP frees functions at the end of each request, and closures, eval()'d and included code
 * even within one; their addresses are used again at once. So an address alone says nothing. What does: the
 * pointers to name, file, class and opcodes, the line, and hash and length of the strings behind those
 * pointers.
 *
 * When this is looked at: for functions that live as long as their request, once a request, and whenever a
 * frame shows a word that does not fit (its opline outside of the opcodes, another run_time_cache), which
 * costs nothing to see. The same for what opcache calls immutable: it is until opcache_reset(), which takes
 * effect when a request begins, and with which every deployment gives its memory to other functions of the
 * same shape. For those that don't live as long, in every sample: the words are few, and ride in the view's
 * single call. PHP's own functions are never freed.
 *
 * Of these words most are strings' behind pointers. An interned string, as the compiler makes them, and a
 * class are freed when the request ends and not before (zend_interned_strings_deactivate() in
 * Zend/zend_string.c, shutdown_executor()): once seen in a request, the pointer alone says which it is. Names
 * that are made at run time, of trampolines for __call(), are not interned.
 */
#include "reader/function_proof.h"

#include "reader/function.h"
#include "reader/function_text.h"
#include "reader/load.h"

/* GC_TYPE_INFO() of a zend_string, and IS_STR_INTERNED in it (Zend/zend_types.h, 7.4 to 8.6). */
#define GC_TYPE_INFO_OFFSET 4
#define GC_IMMUTABLE (UINT32_C(1) << 6)

/* The words of a zend_function that users and internal functions have in common end behind `scope`. */
static size_t common_bytes(const struct layout *layout)
{
	return layout->op_array_scope + sizeof(uint64_t);
}

static size_t header_bytes(const struct layout *layout)
{
	return layout->op_array_line_start + sizeof(uint32_t);
}

bool function_has_opline(const struct layout *layout, const struct function_entry *entry, remote_addr opline)
{
	remote_addr offset = opline - entry->opcodes; /* huge if it lies before them */

	/* Three times a frame: no division by a variable is spent on it but one of 32 bits. */
	return offset < (uint64_t)entry->last * layout->op_sizeof && offset <= UINT32_MAX &&
	       (uint32_t)offset % layout->op_sizeof == 0;
}

bool function_proof_needed(const struct layout *layout, const struct function_entry *entry,
	const struct raw_frame *frame, remote_addr opline, bool caller, uint32_t request)
{
	if (!(entry->flags & FUNCTION_IS_NAMED) ||
		(entry->flags & (FUNCTION_IS_VOLATILE | FUNCTION_TO_PROVE)))
		return true;
	if (entry->flags & FUNCTION_IS_INTERNAL)
		return (frame->call_info & (layout->ZEND_CALL_CODE | layout->ZEND_CALL_CLOSURE)) != 0;
	/* What the frame says about itself. */
	if (frame->call_info & (layout->ZEND_CALL_CODE | layout->ZEND_CALL_CLOSURE))
		return true;
	if (caller && !function_has_opline(layout, entry, opline))
		return true;
	return entry->proved_in != request || entry->run_time_cache != frame->run_time_cache;
}

/* Is it enough to look at the pointers to its strings? */
static bool has_known_strings(const struct function_entry *entry, uint32_t request)
{
	return (entry->flags & FUNCTION_IS_NAMED) && (entry->flags & FUNCTION_HAS_LASTING_STRINGS) &&
	       entry->proved_in == request;
}

size_t function_proof_spans(const struct layout *layout, const struct function_entry *entry, uint32_t request,
	struct remote_span spans[static FUNCTION_PROOF_SPANS])
{
	remote_addr strings[] = {entry->function_name, entry->filename, entry->class_name};
	bool internal = entry->flags & FUNCTION_IS_INTERNAL;
	size_t count = 0;

	spans[count++] = (struct remote_span){
		.addr = entry->func, .bytes = internal ? common_bytes(layout) : header_bytes(layout)};
	if (!(entry->flags & FUNCTION_IS_NAMED) || has_known_strings(entry, request))
		return count;
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (strings[i] != 0)
			spans[count++] = (struct remote_span){.addr = strings[i], .bytes = layout->str_val};
	if (entry->scope != 0)
		spans[count++] = (struct remote_span){
			.addr = entry->scope + layout->ce_name, .bytes = sizeof(uint64_t)};
	return count;
}

/* The mark of the string at @string; 0 if there is none. *lasts stays as it is if the string is interned. */
static int mark_of(
	const struct layout *layout, struct view *view, remote_addr string, uint32_t *ret_mark, bool *lasts)
{
	const uint8_t *header;

	if (string == 0) {
		*ret_mark = 0;
		return 0;
	}
	if (!plausible_address(string))
		return REMOTE_E_FAULT;
	header = view_at(view, string, layout->str_val);
	if (!header)
		return view_error(view);
	*ret_mark = function_text_mark(layout, header);
	*lasts &= (load_u32(header + GC_TYPE_INFO_OFFSET) & GC_IMMUTABLE) != 0;
	return 0;
}

static int class_name_of(
	const struct layout *layout, struct view *view, remote_addr scope, remote_addr *ret_name)
{
	const uint8_t *name;

	if (scope == 0) {
		*ret_name = 0;
		return 0;
	}
	if (!plausible_address(scope))
		return REMOTE_E_FAULT;
	name = view_at(view, scope + layout->ce_name, sizeof(uint64_t));
	if (!name)
		return view_error(view);
	*ret_name = load_u64(name);
	return 0;
}

/* Fowler-Noll-Vo (FNV-1a) over words. */
static uint64_t mix(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * UINT64_C(0x100000001b3);
}

int function_proof_seal(const struct layout *layout, struct view *view, struct function_entry *entry)
{
	uint64_t content = UINT64_C(0xcbf29ce484222325);
	bool lasts = true;
	int r = class_name_of(layout, view, entry->scope, &entry->class_name);

	if (r == 0)
		r = mark_of(layout, view, entry->function_name, &entry->function_name_mark, &lasts);
	if (r == 0)
		r = mark_of(layout, view, entry->filename, &entry->filename_mark, &lasts);
	if (r == 0)
		r = mark_of(layout, view, entry->class_name, &entry->class_name_mark, &lasts);
	entry->flags &= ~(unsigned)FUNCTION_HAS_LASTING_STRINGS;
	if (r == 0 && lasts)
		entry->flags |= FUNCTION_HAS_LASTING_STRINGS;
	content = mix(content, entry->opcodes);
	content = mix(content, (uint64_t)entry->last << 32 | entry->line_start);
	content = mix(content, (uint64_t)entry->function_name_mark << 32 | entry->filename_mark);
	entry->content = (uint32_t)(content ^ content >> 32);
	return r;
}

bool function_proof_try_seal(const struct layout *layout, struct view *view, struct function_entry *entry)
{
	remote_addr strings[] = {entry->function_name, entry->filename, 0};
	remote_addr class_name = entry->scope + layout->ce_name;

	if (entry->scope != 0) {
		if (!view_has(view, class_name, sizeof(uint64_t)) ||
			class_name_of(layout, view, entry->scope, &strings[2]) != 0)
			return false;
	}
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		if (strings[i] != 0 && !view_has(view, strings[i], layout->str_val))
			return false;
	return function_proof_seal(layout, view, entry) == 0;
}

/* How long a function of this kind lives. */
static uint16_t lifetime(const struct layout *layout, uint32_t fn_flags, bool internal, bool nameless)
{
	if (fn_flags & (layout->ZEND_ACC_CLOSURE | layout->ZEND_ACC_CALL_VIA_TRAMPOLINE))
		return FUNCTION_IS_VOLATILE;
	if (internal)
		return FUNCTION_IS_IMMUTABLE;
	if (nameless) /* a script's top level: also opcache copies it to the heap */
		return FUNCTION_IS_VOLATILE;
	return fn_flags & layout->ZEND_ACC_IMMUTABLE ? FUNCTION_IS_IMMUTABLE : 0;
}

/* Fills a fresh entry from the function's header. */
static int read_header(
	const struct layout *layout, struct view *view, remote_addr func, struct function_entry *ret_entry)
{
	size_t bytes = header_bytes(layout);
	const uint8_t *header = view_at_unpredicted(view, func, bytes);
	struct function_entry fresh = {.func = func, .flags = FUNCTION_IS_FRESH};
	uint32_t fn_flags;
	uint8_t type;

	/* An internal function is shorter, and may lie at the end of what is mapped. */
	if (!header && view_error(view) == REMOTE_E_FAULT) {
		bytes = common_bytes(layout);
		header = view_at_unpredicted(view, func, bytes);
	}
	if (!header)
		return view_error(view);

	type = load_u8(header + layout->op_array_type);
	fresh.function_name = load_u64(header + layout->op_array_function_name);
	fresh.scope = load_u64(header + layout->op_array_scope);
	if (type == layout->ZEND_INTERNAL_FUNCTION) {
		fresh.flags |= FUNCTION_IS_INTERNAL;
	} else if (type == layout->ZEND_USER_FUNCTION || type == layout->ZEND_EVAL_CODE) {
		bytes = header_bytes(layout);
		header = view_at_unpredicted(view, func, bytes);
		if (!header)
			return view_error(view);
		fresh.opcodes = load_u64(header + layout->op_array_opcodes);
		fresh.last = load_u32(header + layout->op_array_last);
		fresh.filename = load_u64(header + layout->op_array_filename);
		fresh.line_start = load_u32(header + layout->op_array_line_start);
		if (type == layout->ZEND_EVAL_CODE)
			fresh.flags |= FUNCTION_IS_EVAL | FUNCTION_HAS_VOLATILE_LINES;
	} else {
		return REMOTE_E_FAULT; /* no function at all */
	}
	fn_flags = load_u32(header + layout->op_array_fn_flags);
	if (type == layout->ZEND_INTERNAL_FUNCTION)
		fresh.kind = FUNCTION_INTERNAL;
	else if ((fn_flags & layout->ZEND_ACC_CLOSURE) && !(fn_flags & layout->ZEND_ACC_FAKE_CLOSURE))
		fresh.kind = FUNCTION_CLOSURE;
	else
		fresh.kind = FUNCTION_USER;
	fresh.flags |=
		lifetime(layout, fn_flags, type == layout->ZEND_INTERNAL_FUNCTION, fresh.function_name == 0);
	/* Until the next sample, or the next request's first. */
	if (fresh.flags & FUNCTION_IS_VOLATILE)
		view_expect_lasting(view, func, bytes);
	else
		view_at(view, func, bytes);
	*ret_entry = fresh;
	return 0;
}

int function_proof_check(const struct layout *layout, struct view *view, struct function_entry *entry,
	uint32_t request, bool *ret_same)
{
	struct function_entry now = {0};
	int r = read_header(layout, view, entry->func, &now);

	if (r != 0)
		return r;
	if ((entry->flags & FUNCTION_IS_NAMED) && now.function_name == entry->function_name &&
		now.filename == entry->filename && now.scope == entry->scope &&
		now.opcodes == entry->opcodes && now.last == entry->last &&
		now.line_start == entry->line_start) {
		if (has_known_strings(entry, request)) {
			*ret_same = true;
			return 0;
		}
		r = function_proof_seal(layout, view, &now);
		if (r != 0 && r != REMOTE_E_FAULT)
			return r;
		if (r == 0 && now.class_name == entry->class_name &&
			now.function_name_mark == entry->function_name_mark &&
			now.filename_mark == entry->filename_mark &&
			now.class_name_mark == entry->class_name_mark) {
			entry->flags = (entry->flags & ~(unsigned)FUNCTION_HAS_LASTING_STRINGS) |
				       (now.flags & FUNCTION_HAS_LASTING_STRINGS);
			*ret_same = true;
			return 0;
		}
	}
	*entry = now;
	*ret_same = false;
	return 0;
}
