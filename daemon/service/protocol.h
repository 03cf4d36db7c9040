/* SPDX-License-Identifier: MIT
 *
 * What is said on the socket, as text: a line becomes a request, a result becomes lines. Pure: no descriptor,
 * no clock, no client. docs/PROTOCOL.md is the same for people who write clients.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/export/export.h"

#define PROTOCOL_VERSION 1

/* No line of ours is longer; a longer answer comes in pieces. */
#define PROTOCOL_MAX_ANSWER_LINE_BYTES (1u << 18)
/* Of the answer's text in one piece: written as a JSON string it at most doubles, since JSON text holds no
 * control characters. */
#define PROTOCOL_PIECE_BYTES (PROTOCOL_MAX_ANSWER_LINE_BYTES / 2 - 512)
/* Arrays and objects inside one another in a request. Requests are flat today; cJSON's parser recurses. */
#define PROTOCOL_MAX_DEPTH 16
/* Of an id, as JSON text. */
#define PROTOCOL_MAX_ID_BYTES 128

enum protocol_error {
	PROTOCOL_OK = 0,
	PROTOCOL_E_BAD_JSON,
	PROTOCOL_E_BAD_REQUEST,
	PROTOCOL_E_UNKNOWN_VERB,
	PROTOCOL_E_LINE_TOO_LONG,
	PROTOCOL_E_FORBIDDEN,
	PROTOCOL_E_NOT_A_TARGET,
	PROTOCOL_E_NO_UNIT,
	PROTOCOL_E_NOT_FOUND,
	PROTOCOL_E_OUT_OF_RANGE,
	PROTOCOL_E_RATE_LIMITED,
	PROTOCOL_E_TOO_MANY_CONNECTIONS,
	PROTOCOL_E_LIMIT,
	PROTOCOL_E_REFUSED,
	PROTOCOL_E_STOPPING,
	PROTOCOL_E_INTERNAL,
};

/* The name that goes over the socket: "bad_json". */
const char *protocol_error_name(enum protocol_error error);

/* A request, and what was found wrong with it so far: the first thing stays. */
struct protocol_request {
	cJSON *json;      /* NULL: it was no JSON */
	const char *verb; /* inside json */
	char id[PROTOCOL_MAX_ID_BYTES +
		1]; /* as JSON text, "" when there was none; valid also when the rest was wrong */
	enum protocol_error error;
	char why[256];
};

/* Reads one line (without its end of line). The result is in request->error; whatever happened, @request is
 * filled and is to be given to protocol_request_deinit(). */
void protocol_request_init(struct protocol_request *request, const char *line, size_t bytes);
void protocol_request_deinit(struct protocol_request *request);

/* Notes what is wrong, unless something is noted already. */
void protocol_request_fail(struct protocol_request *request, enum protocol_error error, const char *format,
	...) __attribute__((format(printf, 3, 4)));

/* Arguments. One that is absent or null gives @fallback; one of the wrong type gives it too and notes
 * PROTOCOL_E_BAD_REQUEST, one outside its bounds PROTOCOL_E_OUT_OF_RANGE: ask for all arguments, then look at
 * request->error once. */
bool protocol_request_has(const struct protocol_request *request, const char *name);
bool protocol_request_flag(struct protocol_request *request, const char *name, bool fallback);
/* A whole number, or a string of decimal digits. Exact up to 2^64 - 1 in both forms. */
uint64_t protocol_request_number(
	struct protocol_request *request, const char *name, uint64_t least, uint64_t most, uint64_t fallback);
/* Owned by @request; NULL when absent. */
const char *protocol_request_text(struct protocol_request *request, const char *name, size_t most_bytes);

/* Appends the lines of one answer to @output; @id as in struct protocol_request. 0 or -ENOMEM. Text that is
 * not UTF-8 (a PHP function's name may be any bytes) gets U+FFFD in place of the bytes that are not. */
int protocol_append_result(struct text *output, const char *id, const cJSON *result);
int protocol_append_error(
	struct text *output, const char *id, enum protocol_error error, const char *message);

/* Appends any JSON value as one line: the hello. */
int protocol_append_line(struct text *output, const cJSON *json);
