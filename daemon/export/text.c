/* SPDX-License-Identifier: MIT
 *
 * A growing piece of text. Its first failure sticks and later appends do nothing, so that a writer of many
 * lines checks once, at the end.
 */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "daemon/export/export.h"

#define FIRST_ROOM_BYTES 256

/* Room for @bytes more and a terminator. */
static bool reserve(struct text *text, size_t bytes)
{
	if (text->error < 0)
		return false;
	size_t needed = text->length + bytes + 1;
	if (needed <= text->room)
		return true;
	size_t room = text->room ? text->room * 2 : FIRST_ROOM_BYTES;
	if (room < needed)
		room = needed;
	char *grown = realloc(text->bytes, room);
	if (!grown) {
		text->error = -ENOMEM;
		return false;
	}
	text->bytes = grown;
	text->room = room;
	return true;
}

void text_append_bytes(struct text *text, const char *bytes, size_t length)
{
	if (!reserve(text, length))
		return;
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	text->bytes[text->length] = 0;
}

void text_append(struct text *text, const char *format, ...)
{
	va_list arguments;
	char piece[512];

	va_start(arguments, format);
	int length = vsnprintf(piece, sizeof(piece), format, arguments);
	va_end(arguments);
	if (length < 0) {
		text->error = -EINVAL;
		return;
	}
	if ((size_t)length < sizeof(piece)) {
		text_append_bytes(text, piece, (size_t)length);
		return;
	}
	if (!reserve(text, (size_t)length))
		return;
	va_start(arguments, format);
	vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
	va_end(arguments);
	text->length += (size_t)length;
}

void text_free(struct text *text)
{
	free(text->bytes);
	*text = (struct text){0};
}
