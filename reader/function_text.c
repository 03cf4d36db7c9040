/* SPDX-License-Identifier: MIT
 *
 * PHP's names are byte strings of any encoding and may hold NULs: an anonymous class is called
 * "class@anonymous", NUL, and where it was declared; PHP prints up to the NUL, and so does this. Everything
 * that leaves here is valid UTF-8, so that no export has to wonder.
 *
 * Of a long string no more is read than is kept: a thousand names of 60,000 bytes must not use up what one
 * look may read.
 */
#include "reader/function_text.h"

#include <stdio.h>
#include <string.h>

#include "reader/load.h"
#include "reader/utf8.h"
#include "reader/zval.h"

#define PAGE_BYTES 4096
#define GUESS_BYTES 128 /* header included: most names, classes and paths */
#define ELLIPSIS "\xe2\x80\xa6"
#define ELLIPSIS_BYTES 3
#define ESCAPE_BYTES 4 /* \xNN */

struct remote_span function_text_span(const struct layout *layout, remote_addr string)
{
	size_t to_page_end = PAGE_BYTES - string % PAGE_BYTES;
	size_t bytes = to_page_end < GUESS_BYTES ? to_page_end : GUESS_BYTES;

	if (bytes < layout->str_val)
		bytes = layout->str_val;
	return (struct remote_span){.addr = string, .bytes = bytes};
}

uint32_t function_text_mark(const struct layout *layout, const uint8_t *header)
{
	uint64_t mixed = load_u64(header + layout->str_h) ^
			 (load_u64(header + layout->str_len) * UINT64_C(0x9e3779b97f4a7c15));

	return (uint32_t)(mixed ^ mixed >> 32);
}

static size_t character_bytes(const uint8_t *bytes, size_t count)
{
	return utf8_character_bytes((const char *)bytes, count);
}

/* Appends as much as fits, with room for an ellipsis left unless all fits. */
static void append(const uint8_t *bytes, size_t count, char *text, size_t size)
{
	size_t used = strlen(text), cut_at = used;

	for (size_t i = 0; i < count;) {
		size_t length = character_bytes(bytes + i, count - i);
		size_t needed = length > 0 ? length : ESCAPE_BYTES;

		if (used + needed >= size) {
			if (cut_at + ELLIPSIS_BYTES < size)
				memcpy(text + cut_at, ELLIPSIS, ELLIPSIS_BYTES + 1);
			return;
		}
		if (length > 0)
			memcpy(text + used, bytes + i, length);
		else
			snprintf(text + used, size - used, "\\x%02X", bytes[i]);
		used += needed;
		text[used] = '\0';
		if (used + ELLIPSIS_BYTES < size)
			cut_at = used;
		i += length > 0 ? length : 1;
	}
}

/* Which part of a string is wanted where it is longer than that. */
enum part { ITS_BEGINNING, ITS_END };

/* The bytes of a zend_string, at most @max of them, up to their first NUL. */
static int string_bytes(struct view *view, const struct layout *layout, remote_addr string, enum part part,
	size_t max, const uint8_t **ret_bytes, size_t *ret_count)
{
	struct remote_span span = function_text_span(layout, string);
	const uint8_t *found = plausible_address(string) ? view_at(view, span.addr, span.bytes) : NULL;
	size_t first = 0, count;
	uint64_t length, hash;

	if (!found)
		return plausible_address(string) ? view_error(view) : REMOTE_E_FAULT;
	length = load_u64(found + layout->str_len);
	hash = load_u64(found + layout->str_h);
	if (length > FUNCTION_TEXT_MAX_REMOTE_BYTES)
		return REMOTE_E_FAULT;
	count = length < max ? length : max;
	if (part == ITS_END)
		first = length - count;
	found += layout->str_val + first;
	if (layout->str_val + first + count > span.bytes) {
		found = view_at(view, string + layout->str_val + first, count);
		if (!found)
			return view_error(view);
	}
	/* Freed, and something else in its place? A string that is cut off has to be believed. */
	if (hash != 0 && count == length && hash != zval_hash((const char *)found, count))
		return REMOTE_E_FAULT;
	*ret_bytes = found;
	*ret_count = strnlen((const char *)found, count);
	/* A path has no NUL in it, and is not empty. */
	return part == ITS_END && (count == 0 || *ret_count < count) ? REMOTE_E_FAULT : 0;
}

int function_text_append(
	struct view *view, const struct layout *layout, remote_addr string, char *text, size_t size)
{
	const uint8_t *bytes = NULL;
	size_t count = 0;
	int r = string_bytes(view, layout, string, ITS_BEGINNING, size, &bytes, &count);

	if (r != 0)
		return r;
	append(bytes, count, text, size);
	return 0;
}

int function_text_tail(
	struct view *view, const struct layout *layout, remote_addr string, char *text, size_t size)
{
	const uint8_t *bytes = NULL;
	size_t count = 0, needed = 0;
	/* Behind a beginning that is cut off anyway, be it in the middle of a character. */
	int r = string_bytes(view, layout, string, ITS_END, size + UTF8_MAX_CHARACTER_BYTES, &bytes, &count);

	if (r != 0)
		return r;
	text[0] = '\0';
	for (size_t i = 0; i < count;) {
		size_t length = character_bytes(bytes + i, count - i);

		needed += length > 0 ? length : ESCAPE_BYTES;
		i += length > 0 ? length : 1;
	}
	if (needed >= size) {
		/* Leave out characters in front until the rest and the ellipsis fit. */
		memcpy(text, ELLIPSIS, ELLIPSIS_BYTES + 1);
		while (count > 0 && needed + ELLIPSIS_BYTES >= size) {
			size_t length = character_bytes(bytes, count);

			needed -= length > 0 ? length : ESCAPE_BYTES;
			bytes += length > 0 ? length : 1;
			count -= length > 0 ? length : 1;
		}
	}
	append(bytes, count, text, size);
	return 0;
}
