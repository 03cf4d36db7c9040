/* SPDX-License-Identifier: MIT
 *
 * Which request a PHP process serves right now: its generation, start, method and path, and the trace context
 * in force.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"
#include "symbols/layout.h"
#include "symbols/php_binary.h"
#include "reader/trace_context.h"
#include "reader/view.h"

#define REQUEST_MAX_METHOD_BYTES 16
#define REQUEST_MAX_PATH_BYTES 256 /* the query string is never read into it */

enum context_state {
	CONTEXT_ABSENT,
	CONTEXT_VALID,
	CONTEXT_INVALID, /* there, but not a string of the grammar: counted and ignored */
};

struct request {
	uint64_t generation; /* rises by one with each request seen on this process; 0: none seen yet */
	bool active; /* SG(sapi_started): between start-up and the end of shutdown, PHP code on the stack or
			not */
	uint64_t script_began_ns; /* CLOCK_MONOTONIC, by FPM's scoreboard; 0: not known */
	double start_time_s; /* SG(global_request_time), seconds since the epoch; 0: not known, or not yet */
	char method[REQUEST_MAX_METHOD_BYTES + 1]; /* "" when not known (CLI) */
	char path[REQUEST_MAX_PATH_BYTES +
		  1]; /* REQUEST_URI up to '?'; CLI: the script's file. Printable ASCII, other bytes as %XX */
	bool has_traceparent;
	struct trace_context traceparent; /* the incoming header's */
	enum context_state context_state;
	struct trace_context context; /* the well-known global's */
};

struct request_reader;

/* For process @pid, in which FPM's request counter is looked for (reader/fpm_scoreboard.h) now, and if it is
 * not there yet, when its first requests begin; 0: look for none. @binary must outlive the reader. */
int request_reader_new(const struct php_binary *binary, pid_t pid, struct request_reader **ret_reader);
void request_reader_free(struct request_reader *reader);
DEFINE_CLEANUP(struct request_reader, request_reader_free)

/* What the process serves at the view's instant; nothing has to be prefetched by the caller. Between requests
 * (no PHP code on the stack) @ret_request tells of the last one, without a context. *ret_new_request: the
 * generation rose since the last call that returned 0. Fields that can't be read are left empty; only
 * VIEW_E_TORN (try again), REMOTE_E_GONE and negative errno are errors, and leave both untouched. */
int request_read(
	struct request_reader *reader, struct view *view, struct request *ret_request, bool *ret_new_request);

/* To be called when the process was seen without PHP code on its stack and request_read() was not called for
 * that instant. Where neither FPM's counter nor a start time tells two requests apart, the next one counts as
 * new. */
void request_reader_idle(struct request_reader *reader);
