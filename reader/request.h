/* SPDX-License-Identifier: MIT
 *
 * Which request a PHP process serves right now: its generation, start, method and path, and the trace context in
 * force.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
	uint64_t generation;	/* rises by one with each request seen on this process; 0: none seen yet */
	double start_time_s;	/* SG(global_request_time), seconds since the epoch; 0: not known */
	char method[REQUEST_MAX_METHOD_BYTES + 1]; /* "" when not known (CLI) */
	char path[REQUEST_MAX_PATH_BYTES + 1];
	bool has_traceparent;
	struct trace_context traceparent; /* the incoming header's */
	enum context_state context_state;
	struct trace_context context; /* the well-known global's */
};

struct request_reader;

int request_reader_new(const struct php_binary *binary, struct request_reader **ret_reader);
void request_reader_free(struct request_reader *reader);
DEFINE_CLEANUP(struct request_reader, request_reader_free)

/* What request_read() will look at, to be part of the view's single call: nothing has to be prefetched by the caller. Fills @ret_request;
 * *ret_new_request says that the generation rose. Fields that can't be read are left empty; only VIEW_E_TORN, REMOTE_E_GONE
 * and negative errno are errors. */
int request_read(struct request_reader *reader, struct view *view, struct request *ret_request, bool *ret_new_request);

/* To be called when the process was seen idle (no request): the next one is new whatever its start time. */
void request_reader_idle(struct request_reader *reader);
