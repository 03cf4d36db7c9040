/* SPDX-License-Identifier: MIT
 *
 * The grammar of the trace context, byte by byte. Any PHP code can write the global, and any client can send
 * the header, so nothing is skipped, trimmed or guessed: a text is of the grammar to its last byte, or it is
 * refused whole. That is also what makes the counter of invalid contexts worth reading: it counts texts that
 * somebody else meant otherwise.
 *
 * Hex digits are lower case only. W3C Trace Context (section 3.2) demands it of the header, and the global
 * follows the same rule, so that one trace has one spelling wherever it is compared. An id of zeros is of the
 * grammar and means "absent". The global's version is 00 and no other; the header's may be a later one, which
 * W3C (section 3.2.2) wants read as far as it is known.
 *
 * Pure: knows no process, allocates nothing, reads no byte past @bytes.
 */
#include "reader/trace_context.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "reader/utf8.h"

#define TRACEPARENT_VERSION "00"
#define TRACE_ID_DIGITS 32
#define SPAN_ID_DIGITS 16
#define FLAGS_DIGITS 2
/* "00-" trace "-" span "-" flags */
#define TRACEPARENT_BYTES (3 + TRACE_ID_DIGITS + 1 + SPAN_ID_DIGITS + 1 + FLAGS_DIGITS)
#define UNIT_NAME_MAX_BYTES 32

static const char *const unit_names[] = {
	[UNIT_HTTP] = "http",
	[UNIT_QUEUE] = "queue",
	[UNIT_COMMAND] = "command",
	[UNIT_SCHEDULE] = "schedule",
	[UNIT_OTHER] = "other",
};

/* The text not yet read. */
struct cursor {
	const char *at, *end;
};

static size_t bytes_left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

static bool take_byte(struct cursor *cursor, char expected)
{
	if (bytes_left(cursor) == 0 || *cursor->at != expected)
		return false;
	cursor->at++;
	return true;
}

static int hex_digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* Takes @digits hex digits into @into, 0-terminated; all zeros become "". */
static bool take_id(struct cursor *cursor, size_t digits, char *into)
{
	bool all_zero = true;

	if (bytes_left(cursor) < digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (hex_digit_value(cursor->at[i]) < 0)
			return false;
		all_zero &= cursor->at[i] == '0';
	}
	if (!all_zero)
		memcpy(into, cursor->at, digits);
	into[all_zero ? 0 : digits] = '\0';
	cursor->at += digits;
	return true;
}

static bool take_hex_byte(struct cursor *cursor, unsigned *ret_value)
{
	int high, low;

	if (bytes_left(cursor) < 2)
		return false;
	high = hex_digit_value(cursor->at[0]);
	low = hex_digit_value(cursor->at[1]);
	if (high < 0 || low < 0)
		return false;
	*ret_value = (unsigned)high << 4 | (unsigned)low;
	cursor->at += 2;
	return true;
}

/* -<trace>-<span>-<flags>, what stands behind the version. */
static bool take_ids_and_flags(struct cursor *cursor, struct trace_context *context)
{
	unsigned flags;

	if (!take_byte(cursor, '-') || !take_id(cursor, TRACE_ID_DIGITS, context->trace_id) ||
		!take_byte(cursor, '-') || !take_id(cursor, SPAN_ID_DIGITS, context->span_id) ||
		!take_byte(cursor, '-') || !take_hex_byte(cursor, &flags))
		return false;
	context->sampled = flags & 1;
	return true;
}

/* All of @value is a decimal number from 1 to @max, without sign, space or leading zero. */
static bool decimal(struct cursor value, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (bytes_left(&value) == 0 || *value.at == '0')
		return false;
	for (; value.at < value.end; value.at++) {
		unsigned digit = (unsigned)(unsigned char)*value.at - '0';

		if (digit > 9 || number > (max - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return true;
}

static bool decimal_u32(struct cursor value, uint32_t *ret_number)
{
	uint64_t number;

	if (!decimal(value, UINT32_MAX, &number))
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

static bool unit_type_value(struct cursor value, struct trace_context *context)
{
	char name[UNIT_NAME_MAX_BYTES + 1];
	size_t bytes = bytes_left(&value);

	if (bytes == 0 || bytes > UNIT_NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < bytes; i++)
		if (value.at[i] != '_' && (value.at[i] < 'a' || value.at[i] > 'z'))
			return false;
	memcpy(name, value.at, bytes);
	name[bytes] = '\0';
	context->unit_type = unit_type_from_name(name);
	context->has_unit_type = true;
	return true;
}

/* A name is shown on terminals and in logs, so C0, DEL and C1 control characters (U+0080 to U+009F, c2 80 to
 * c2 9f in UTF-8) are not of the grammar. */
static bool name_value(struct cursor value, struct trace_context *context)
{
	const unsigned char *at = (const unsigned char *)value.at;
	size_t bytes = bytes_left(&value);

	if (bytes == 0 || bytes > TRACE_CONTEXT_MAX_NAME_BYTES)
		return false;
	for (size_t i = 0, step; i < bytes; i += step) {
		step = utf8_character_bytes(value.at + i, bytes - i);
		if (step == 0 || at[i] < 0x20 || at[i] == 0x7f || (at[i] == 0xc2 && at[i + 1] < 0xa0))
			return false;
	}
	memcpy(context->name, value.at, bytes);
	context->name[bytes] = '\0';
	return true;
}

/* One field, with @value all that stands between its '=' and the next ';'. */
static bool field_value(char letter, struct cursor value, struct trace_context *context)
{
	switch (letter) {
	case 'u':
		return unit_type_value(value, context);
	case 'h':
		return decimal(value, INT64_MAX, &context->handle);
	case 'p':
		if (bytes_left(&value) != 1 || (*value.at != '0' && *value.at != '1'))
			return false;
		context->profile = *value.at == '1';
		return true;
	case 'r':
		return decimal_u32(value, &context->period_us);
	case 'd':
		return decimal_u32(value, &context->max_depth);
	case 'n':
		return name_value(value, context);
	default:
		return false;
	}
}

/* [;letter=value]… to the end of the text, each letter at most once. */
static bool take_fields(struct cursor *cursor, struct trace_context *context)
{
	bool seen[UCHAR_MAX + 1] = {false};

	while (bytes_left(cursor) > 0) {
		struct cursor value;
		const char *separator;
		char letter;

		if (!take_byte(cursor, ';') || bytes_left(cursor) == 0)
			return false;
		letter = *cursor->at++;
		if (seen[(unsigned char)letter] || !take_byte(cursor, '='))
			return false;
		seen[(unsigned char)letter] = true;
		separator = memchr(cursor->at, ';', bytes_left(cursor));
		value = (struct cursor){cursor->at, separator ? separator : cursor->end};
		if (!field_value(letter, value, context))
			return false;
		cursor->at = value.end;
	}
	return true;
}

int trace_context_parse(const char *text, size_t bytes, struct trace_context *ret_context)
{
	struct trace_context context = {.profile = true, .unit_type = UNIT_OTHER};
	struct cursor cursor;

	if (bytes < TRACEPARENT_BYTES || bytes > TRACE_CONTEXT_MAX_BYTES ||
		memcmp(text, TRACEPARENT_VERSION, 2) != 0)
		return -EINVAL;
	cursor = (struct cursor){text + 2, text + bytes};
	if (!take_ids_and_flags(&cursor, &context) || !take_fields(&cursor, &context))
		return -EINVAL;
	*ret_context = context;
	return 0;
}

int trace_context_parse_traceparent(const char *text, size_t bytes, struct trace_context *ret_context)
{
	struct trace_context context = {.profile = true, .unit_type = UNIT_OTHER};
	struct cursor cursor;
	unsigned version;

	if (bytes < TRACEPARENT_BYTES || bytes > TRACE_CONTEXT_MAX_BYTES)
		return -EINVAL;
	cursor = (struct cursor){text, text + bytes};
	if (!take_hex_byte(&cursor, &version) || version == 0xff || !take_ids_and_flags(&cursor, &context))
		return -EINVAL;
	/* Version 00 ends here; what a later one adds is set off by a dash and is not ours to read. */
	if (bytes_left(&cursor) > 0 && (version == 0 || *cursor.at != '-'))
		return -EINVAL;
	*ret_context = context;
	return 0;
}

const char *unit_type_name(enum unit_type type)
{
	return unit_names[type];
}

enum unit_type unit_type_from_name(const char *name)
{
	for (size_t type = 0; type < sizeof(unit_names) / sizeof(unit_names[0]); type++)
		if (strcmp(name, unit_names[type]) == 0)
			return (enum unit_type)type;
	return UNIT_OTHER;
}
