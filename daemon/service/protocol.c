/* SPDX-License-Identifier: MIT
 *
 * The protocol's text. Requests come from anybody who may connect, so a line is looked through before cJSON
 * sees it:
 *
 *  - bytes that are not UTF-8, NUL and other control characters: refused. cJSON works on C strings, a NUL
 * would cut one off, and `\u0000` likewise;
 *  - nesting is counted, because cJSON's parser recurses;
 *  - whole numbers of 16 digits and more are put in quotes. cJSON keeps numbers as doubles, which are exact
 * up to 2^53 (16 digits); a handle is nanoseconds of CLOCK_MONOTONIC and passes that after 104 days of
 * uptime. As a string it arrives digit by digit, and the getter of numbers takes strings of digits anyway.
 *
 * Answers go the other way: one JSON object printed, made valid UTF-8, and, if it is too long for a line, cut
 * at character boundaries into pieces that are sent as JSON strings. A client with a bounded line buffer can
 * so read an answer of any size, and one that is not interested can skip it line by line.
 */
#include "daemon/service/protocol.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "reader/utf8.h"

#define EXACT_DIGITS 15               /* any number of so many digits is exact as a double */
#define EXACT_LIMIT 9007199254740992. /* 2^53: the first whole number whose neighbour is not */

const char *protocol_error_name(enum protocol_error error)
{
	switch (error) {
	case PROTOCOL_OK:
		return "ok";
	case PROTOCOL_E_BAD_JSON:
		return "bad_json";
	case PROTOCOL_E_BAD_REQUEST:
		return "bad_request";
	case PROTOCOL_E_UNKNOWN_VERB:
		return "unknown_verb";
	case PROTOCOL_E_LINE_TOO_LONG:
		return "line_too_long";
	case PROTOCOL_E_FORBIDDEN:
		return "forbidden";
	case PROTOCOL_E_NOT_A_TARGET:
		return "not_a_target";
	case PROTOCOL_E_NO_UNIT:
		return "no_unit";
	case PROTOCOL_E_NOT_FOUND:
		return "not_found";
	case PROTOCOL_E_OUT_OF_RANGE:
		return "out_of_range";
	case PROTOCOL_E_RATE_LIMITED:
		return "rate_limited";
	case PROTOCOL_E_TOO_MANY_CONNECTIONS:
		return "too_many_connections";
	case PROTOCOL_E_LIMIT:
		return "limit";
	case PROTOCOL_E_REFUSED:
		return "refused";
	case PROTOCOL_E_STOPPING:
		return "stopping";
	case PROTOCOL_E_INTERNAL:
		break;
	}
	return "internal";
}

/* A line being copied for cJSON. */
struct scan {
	const char *line;
	size_t bytes, at;
	char *copy;
	size_t copied;
	const char *why; /* set: the line is no JSON we take */
};

static void scan_copy(struct scan *scan, size_t bytes)
{
	memcpy(scan->copy + scan->copied, scan->line + scan->at, bytes);
	scan->copied += bytes;
	scan->at += bytes;
}

static void scan_number(struct scan *scan)
{
	size_t end = scan->at, digits = 0;
	bool whole = true;

	for (; end < scan->bytes && strchr("+-.0123456789Ee", scan->line[end]) && scan->line[end]; end++) {
		if (scan->line[end] >= '0' && scan->line[end] <= '9')
			digits++;
		else if (scan->line[end] != '-' || end != scan->at)
			whole = false;
	}
	if (whole && digits > EXACT_DIGITS) {
		scan->copy[scan->copied++] = '"';
		scan_copy(scan, end - scan->at);
		scan->copy[scan->copied++] = '"';
	} else {
		scan_copy(scan, end - scan->at);
	}
}

static void scan_string(struct scan *scan)
{
	scan_copy(scan, 1);
	while (scan->at < scan->bytes) {
		const char *here = scan->line + scan->at;
		size_t left = scan->bytes - scan->at, character = utf8_character_bytes(here, left);

		if (!character) {
			scan->why = "a string holds bytes that are not UTF-8";
			return;
		}
		if ((unsigned char)*here < 0x20) {
			scan->why = "a string holds a control character; write it as \\u00xx";
			return;
		}
		if (*here == '"') {
			scan_copy(scan, 1);
			return;
		}
		if (*here == '\\' && left >= 6 && memcmp(here + 1, "u0000", 5) == 0) {
			scan->why = "a string holds a NUL";
			return;
		}
		/* An escaped character goes along with its backslash, so that \" does not end the string. */
		if (*here == '\\' && left >= 2 && (unsigned char)here[1] >= 0x20 &&
			(unsigned char)here[1] < 0x80)
			character = 2;
		scan_copy(scan, character);
	}
}

/* Copies @line, checked and with large numbers in quotes. NULL with the reason in *ret_why, or for lack of
 * memory. */
static char *scan_line(const char *line, size_t bytes, const char **ret_why)
{
	/* Quotes are two bytes more for every 16 digits and what parts them. */
	_cleanup_free_ char *copy = malloc(bytes + bytes / 8 + 3);
	struct scan scan = {.line = line, .bytes = bytes, .copy = copy};
	unsigned depth = 0;

	if (!copy) {
		*ret_why = "out of memory";
		return NULL;
	}
	while (scan.at < bytes && !scan.why) {
		unsigned char byte = (unsigned char)line[scan.at];

		if (byte == '"') {
			scan_string(&scan);
		} else if (byte == '-' || (byte >= '0' && byte <= '9')) {
			scan_number(&scan);
		} else if (byte >= 0x80 || (byte < 0x20 && byte != '\t' && byte != '\r')) {
			scan.why = "a byte that has no place outside a string";
		} else {
			if ((byte == '{' || byte == '[') && ++depth > PROTOCOL_MAX_DEPTH)
				scan.why = "nested too deeply";
			else if ((byte == '}' || byte == ']') && depth > 0)
				depth--;
			scan_copy(&scan, 1);
		}
	}
	if (scan.why) {
		*ret_why = scan.why;
		return NULL;
	}
	copy[scan.copied] = '\0';
	return TAKE(copy);
}

void protocol_request_fail(
	struct protocol_request *request, enum protocol_error error, const char *format, ...)
{
	va_list arguments;

	if (request->error)
		return;
	request->error = error;
	va_start(arguments, format);
	vsnprintf(request->why, sizeof(request->why), format, arguments);
	va_end(arguments);
}

static void take_id(struct protocol_request *request)
{
	const cJSON *id = cJSON_GetObjectItemCaseSensitive(request->json, "id");
	_cleanup_free_ char *text = NULL;

	if (!id || cJSON_IsNull(id))
		return;
	if (!cJSON_IsString(id) && !(cJSON_IsNumber(id) && isfinite(id->valuedouble))) {
		protocol_request_fail(request, PROTOCOL_E_BAD_REQUEST, "id: neither a number nor a string");
		return;
	}
	text = cJSON_PrintUnformatted(id);
	if (!text) {
		protocol_request_fail(request, PROTOCOL_E_INTERNAL, "out of memory");
		return;
	}
	if (strlen(text) > PROTOCOL_MAX_ID_BYTES) {
		protocol_request_fail(
			request, PROTOCOL_E_BAD_REQUEST, "id: longer than %d bytes", PROTOCOL_MAX_ID_BYTES);
		return;
	}
	memcpy(request->id, text, strlen(text) + 1);
}

void protocol_request_init(struct protocol_request *request, const char *line, size_t bytes)
{
	_cleanup_free_ char *text = NULL;
	const char *why = NULL;
	const cJSON *verb;

	*request = (struct protocol_request){0};
	text = scan_line(line, bytes, &why);
	if (!text) {
		protocol_request_fail(request, PROTOCOL_E_BAD_JSON, "%s", why);
		return;
	}
	request->json = cJSON_ParseWithOpts(text, NULL, true);
	if (!request->json) {
		protocol_request_fail(request, PROTOCOL_E_BAD_JSON, "the line is not one JSON value");
		return;
	}
	if (!cJSON_IsObject(request->json)) {
		protocol_request_fail(
			request, PROTOCOL_E_BAD_REQUEST, "a request is a JSON object: {\"verb\":\"status\"}");
		return;
	}
	take_id(request);
	verb = cJSON_GetObjectItemCaseSensitive(request->json, "verb");
	if (cJSON_IsString(verb))
		request->verb = verb->valuestring;
	else
		protocol_request_fail(
			request, PROTOCOL_E_BAD_REQUEST, "verb: %s", verb ? "not a string" : "missing");
}

void protocol_request_deinit(struct protocol_request *request)
{
	cJSON_Delete(request->json);
	*request = (struct protocol_request){0};
}

static const cJSON *argument(const struct protocol_request *request, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(request->json, name);

	return item && !cJSON_IsNull(item) ? item : NULL;
}

bool protocol_request_has(const struct protocol_request *request, const char *name)
{
	return argument(request, name) != NULL;
}

bool protocol_request_flag(struct protocol_request *request, const char *name, bool fallback)
{
	const cJSON *item = argument(request, name);

	if (!item)
		return fallback;
	if (!cJSON_IsBool(item)) {
		protocol_request_fail(request, PROTOCOL_E_BAD_REQUEST, "%s: neither true nor false", name);
		return fallback;
	}
	return cJSON_IsTrue(item);
}

enum number_kind { NUMBER, NUMBER_BEYOND, NUMBER_NOT };

static enum number_kind parse_digits(const char *text, uint64_t *ret_number)
{
	bool negative = *text == '-';
	const char *digits = text + negative;
	uint64_t number = 0;
	bool overflow = false;

	if (!*digits)
		return NUMBER_NOT;
	for (; *digits; digits++) {
		if (*digits < '0' || *digits > '9')
			return NUMBER_NOT;
		overflow |= __builtin_mul_overflow(number, 10, &number);
		overflow |= __builtin_add_overflow(number, (uint64_t)(*digits - '0'), &number);
	}
	if (overflow || negative)
		return NUMBER_BEYOND;
	*ret_number = number;
	return NUMBER;
}

static enum number_kind parse_number(const cJSON *item, uint64_t *ret_number)
{
	double value = item->valuedouble;

	if (cJSON_IsString(item))
		return parse_digits(item->valuestring, ret_number);
	if (!cJSON_IsNumber(item) || isnan(value))
		return NUMBER_NOT;
	if (value < 0 || value > EXACT_LIMIT)
		return NUMBER_BEYOND;
	if (value != (double)(uint64_t)value)
		return NUMBER_NOT;
	*ret_number = (uint64_t)value;
	return NUMBER;
}

uint64_t protocol_request_number(
	struct protocol_request *request, const char *name, uint64_t least, uint64_t most, uint64_t fallback)
{
	const cJSON *item = argument(request, name);
	uint64_t number = 0;
	enum number_kind kind;

	if (!item)
		return fallback;
	kind = parse_number(item, &number);
	if (kind == NUMBER_NOT) {
		protocol_request_fail(request, PROTOCOL_E_BAD_REQUEST, "%s: not a whole number", name);
		return fallback;
	}
	if (kind == NUMBER_BEYOND || number < least || number > most) {
		protocol_request_fail(request, PROTOCOL_E_OUT_OF_RANGE, "%s: allowed are %llu to %llu", name,
			(unsigned long long)least, (unsigned long long)most);
		return fallback;
	}
	return number;
}

const char *protocol_request_text(struct protocol_request *request, const char *name, size_t most_bytes)
{
	const cJSON *item = argument(request, name);

	if (!item)
		return NULL;
	if (!cJSON_IsString(item)) {
		protocol_request_fail(request, PROTOCOL_E_BAD_REQUEST, "%s: not a string", name);
		return NULL;
	}
	if (strlen(item->valuestring) > most_bytes) {
		protocol_request_fail(
			request, PROTOCOL_E_BAD_REQUEST, "%s: longer than %zu bytes", name, most_bytes);
		return NULL;
	}
	return item->valuestring;
}

/* Appends @json as text that is UTF-8 throughout. */
static void append_json(struct text *output, const cJSON *json)
{
	_cleanup_free_ char *printed = cJSON_PrintUnformatted(json);
	size_t bytes, start = 0;

	if (!printed) {
		output->error = output->error ?: -ENOMEM;
		return;
	}
	bytes = strlen(printed);
	for (size_t at = 0; at < bytes;) {
		size_t character = utf8_character_bytes(printed + at, bytes - at);

		at += character ? character : 1;
		if (character)
			continue;
		text_append_bytes(output, printed + start, at - 1 - start);
		text_append_bytes(output, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT));
		start = at;
	}
	text_append_bytes(output, printed + start, bytes - start);
}

/* How much of @text, at most PROTOCOL_PIECE_BYTES, ends with a whole character. */
static size_t piece_bytes(const char *text, size_t bytes)
{
	size_t piece = PROTOCOL_PIECE_BYTES;

	if (bytes <= piece)
		return bytes;
	while (((unsigned char)text[piece] & 0xC0) == 0x80)
		piece--;
	return piece;
}

/* Inside a JSON string. @bytes are JSON text themselves, so quotes and backslashes are all there is to
 * escape. */
static void append_escaped(struct text *output, const char *text, size_t bytes)
{
	size_t start = 0;

	for (size_t at = 0; at < bytes; at++) {
		if (text[at] != '"' && text[at] != '\\')
			continue;
		text_append_bytes(output, text + start, at - start);
		text_append_bytes(output, "\\", 1);
		start = at;
	}
	text_append_bytes(output, text + start, bytes - start);
}

static void append_pieces(struct text *output, const char *id, const char *text, size_t bytes)
{
	while (bytes > 0) {
		size_t piece = piece_bytes(text, bytes);

		text_append_bytes(output, "{", 1);
		if (*id)
			text_append(output, "\"id\":%s,", id);
		text_append(output, "\"more\":%s,\"chunk\":\"", piece < bytes ? "true" : "false");
		append_escaped(output, text, piece);
		text_append_bytes(output, "\"}\n", 3);
		text += piece;
		bytes -= piece;
	}
}

static void append_head(struct text *output, const char *id, bool ok)
{
	text_append_bytes(output, "{", 1);
	if (*id)
		text_append(output, "\"id\":%s,", id);
	text_append(output, "\"ok\":%s,", ok ? "true" : "false");
}

int protocol_append_result(struct text *output, const char *id, const cJSON *result)
{
	_cleanup_text_ struct text answer = {0};

	append_head(&answer, id, true);
	text_append(&answer, "\"result\":");
	append_json(&answer, result);
	text_append_bytes(&answer, "}", 1);
	if (answer.error)
		return answer.error;
	if (answer.length < PROTOCOL_MAX_ANSWER_LINE_BYTES) {
		text_append_bytes(output, answer.bytes, answer.length);
		text_append_bytes(output, "\n", 1);
	} else {
		append_pieces(output, id, answer.bytes, answer.length);
	}
	return output->error;
}

int protocol_append_error(struct text *output, const char *id, enum protocol_error error, const char *message)
{
	cJSON *text = cJSON_CreateString(message);

	append_head(output, id, false);
	text_append(output, "\"error\":\"%s\",\"message\":", protocol_error_name(error));
	append_json(output, text);
	text_append_bytes(output, "}\n", 2);
	cJSON_Delete(text);
	return output->error;
}

int protocol_append_line(struct text *output, const cJSON *json)
{
	append_json(output, json);
	text_append_bytes(output, "\n", 1);
	return output->error;
}
