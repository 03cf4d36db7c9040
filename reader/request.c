/* SPDX-License-Identifier: MIT
 *
 * Tells one request from the next on the same worker, and what is known of each.
 *
 * Three witnesses, best first. FPM's own count of requests, exact. SG(global_request_time): it differs for
 * each request, but PHP fills it when it is first asked for, which without opcache may be late or never
 * (measured in docs/INTERNALS.md): so a change from 0 proves nothing, one back to 0 or to another time does.
 * Last, that the process was seen between requests. A process of the cli SAPI serves one request, its life
 * long.
 *
 * Method, path and traceparent are constant for a request and are read once in it, from the FastCGI
 * environment, which is filled before a request's first instruction. Reading them takes a few steps, each of
 * which may find that the target has moved: then the next sample goes on, and by then the view has predicted
 * the steps that are known. They never cost a sample. The query string may hold anything, so the path is cut
 * before it is kept.
 *
 * The trace context is looked up at every sample: PHP code may change it at any instruction.
 */
#include "reader/request.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/fastcgi_env.h"
#include "reader/fpm_scoreboard.h"
#include "reader/load.h"
#include "reader/remote.h"
#include "reader/zval.h"

/* Samples of one request that try to read its method and path. */
#define REQUEST_MAX_DETAIL_ATTEMPTS 16
/* Requests at whose start the slot is looked for, where it was not there yet when the reader was made. */
#define REQUEST_MAX_SLOT_SEARCHES 3
/* Samples in a row in which the symbol table may make no sense (PHP is changing it) before it is taken for
 * broken. */
#define REQUEST_MAX_TABLE_RETRIES 3
#define PAGE_BYTES 4096U

struct request_reader {
	const struct php_binary *binary;
	pid_t pid;
	bool fastcgi, single_request;
	size_t globals_bytes; /* of sapi_globals, up to the last field used */

	struct fpm_scoreboard *scoreboard; /* while the slot is looked for */
	remote_addr slot;                  /* the worker's; 0: not known */
	unsigned slot_searches;

	/* The request seen last. */
	struct request current;
	struct fpm_slot fpm;
	bool has_fpm;
	bool idle_since;       /* seen between requests, for certain */
	bool maybe_idle_since; /* seen without PHP code on its stack */
	bool unreported;       /* no successful request_read() has told of it yet */
	unsigned detail_attempts;
	unsigned table_retries;
};

/* The words of sapi_globals and executor_globals that matter here. */
struct request_state {
	remote_addr server_context, path_translated;
	double start_time_s;
	bool started;   /* SG(sapi_started) */
	bool executing; /* EG(current_execute_data) */
};

/* Is @error one that request_read() hands on, and not just bytes that can't be had? */
static bool is_error(int error)
{
	return error < 0 || error == VIEW_E_TORN || error == REMOTE_E_GONE;
}

/* Looks for the worker's slot. Without it the other witnesses have to do. */
static void find_slot(struct request_reader *reader)
{
	struct memory memory = remote_memory(&reader->pid);

	if (!reader->scoreboard)
		return;
	if (fpm_scoreboard_find_slot(reader->scoreboard, &memory, &reader->slot) != 0 &&
		reader->slot_searches++ < REQUEST_MAX_SLOT_SEARCHES)
		return;
	fpm_scoreboard_close(reader->scoreboard);
	reader->scoreboard = NULL;
}

int request_reader_new(const struct php_binary *binary, pid_t pid, struct request_reader **ret_reader)
{
	const struct layout *layout = binary->layout;
	struct request_reader *reader;
	bool fpm = strcmp(binary->sapi, "fpm-fcgi") == 0;

	reader = calloc(1, sizeof(*reader));
	if (!reader)
		return -ENOMEM;
	reader->binary = binary;
	reader->pid = fpm ? pid : 0;
	reader->fastcgi = fpm || strcmp(binary->sapi, "cgi-fcgi") == 0;
	reader->single_request = strcmp(binary->sapi, "cli") == 0;
	reader->globals_bytes = layout->sg_global_request_time + sizeof(double);
	if (reader->globals_bytes < layout->sg_sapi_started + 1U)
		reader->globals_bytes = layout->sg_sapi_started + 1U;
	if (reader->pid != 0 && fpm_scoreboard_open(pid, &reader->scoreboard) == 0)
		find_slot(reader);
	*ret_reader = reader;
	return 0;
}

void request_reader_free(struct request_reader *reader)
{
	if (!reader)
		return;
	fpm_scoreboard_close(reader->scoreboard);
	free(reader);
}

void request_reader_idle(struct request_reader *reader)
{
	reader->maybe_idle_since = true;
}

static int read_state(const struct request_reader *reader, struct view *view, struct request_state *ret_state)
{
	const struct php_binary *binary = reader->binary;
	const struct layout *layout = binary->layout;
	const unsigned char *globals, *executing;

	globals = view_at(view, binary->sapi_globals, reader->globals_bytes);
	executing = globals ? view_at(view, binary->executor_globals + layout->eg_current_execute_data,
				      sizeof(remote_addr))
			    : NULL;
	if (!executing)
		return view_error(view);
	*ret_state = (struct request_state){
		.server_context = load_u64(globals + layout->sg_server_context),
		.path_translated = load_u64(globals + layout->sg_path_translated),
		.started = globals[layout->sg_sapi_started] != 0,
		.executing = load_u64(executing) != 0,
	};
	memcpy(&ret_state->start_time_s, globals + layout->sg_global_request_time, sizeof(double));
	/* Not a time (NaN too): not known. */
	if (!(ret_state->start_time_s > 0))
		ret_state->start_time_s = 0;
	return 0;
}

/* What FPM's scoreboard says, where it is known. 0 or an error of is_error(). */
static int read_slot(
	struct request_reader *reader, struct view *view, bool *ret_has_slot, struct fpm_slot *ret_slot)
{
	const unsigned char *at;

	*ret_has_slot = false;
	if (reader->slot == 0)
		return 0;
	at = view_at(view, reader->slot, FPM_SLOT_BYTES);
	if (!at)
		return is_error(view_error(view)) ? view_error(view) : 0;
	*ret_has_slot = true;
	*ret_slot = fpm_slot_read(at);
	return 0;
}

static bool is_another_request(
	const struct request_reader *reader, double start_time_s, bool has_slot, const struct fpm_slot *slot)
{
	double last_time_s = reader->current.start_time_s;

	if (reader->current.generation == 0)
		return true;
	if (reader->single_request)
		return false;
	if (reader->idle_since)
		return true;
	if (has_slot && reader->has_fpm)
		return slot->requests != reader->fpm.requests;
	if (last_time_s != 0)
		return start_time_s != last_time_s;
	return reader->maybe_idle_since && start_time_s == 0;
}

static void begin_request(struct request_reader *reader)
{
	uint64_t generation = reader->current.generation + 1;

	reader->current = (struct request){.generation = generation};
	reader->unreported = true;
	reader->idle_since = reader->maybe_idle_since = false;
	reader->detail_attempts = 0;
	reader->table_retries = 0;
	find_slot(reader);
}

static int update_generation(
	struct request_reader *reader, struct view *view, const struct request_state *state)
{
	struct fpm_slot slot = {0};
	bool has_slot;
	int r;

	r = read_slot(reader, view, &has_slot, &slot);
	if (r != 0)
		return r;
	if (is_another_request(reader, state->start_time_s, has_slot, &slot)) {
		begin_request(reader);
		if (!has_slot)
			r = read_slot(reader, view, &has_slot, &slot); /* found just now */
		if (r != 0)
			return r;
		reader->current.script_began_ns = slot.executing_ns;
	}
	reader->current.start_time_s = state->start_time_s;
	reader->has_fpm = has_slot;
	reader->fpm = slot;
	reader->idle_since = reader->maybe_idle_since = false;
	return 0;
}

/* Copies @bytes of @text, up to a '?', as printable ASCII: other bytes as %XX, as in a URL. What doesn't fit
 * is cut off. @size counts the closing 0. */
static void copy_path(char *into, size_t size, const char *text, size_t bytes)
{
	static const char digits[] = "0123456789ABCDEF";
	size_t used = 0;

	for (size_t i = 0; i < bytes && text[i] != '?'; i++) {
		unsigned char c = (unsigned char)text[i];
		bool plain = c > 0x20 && c < 0x7f;

		if (used + (plain ? 1 : 3) >= size)
			break;
		if (plain) {
			into[used++] = (char)c;
		} else {
			into[used++] = '%';
			into[used++] = digits[c >> 4];
			into[used++] = digits[c & 15];
		}
	}
	into[used] = '\0';
}

/* A method is a token of letters (RFC 9110 allows more; no server sends it). Anything else stays "". */
static void copy_method(char *into, const char *text, size_t bytes)
{
	if (bytes > REQUEST_MAX_METHOD_BYTES)
		return;
	for (size_t i = 0; i < bytes; i++)
		if (!isalpha((unsigned char)text[i]) && text[i] != '-' && text[i] != '_')
			return;
	memcpy(into, text, bytes);
	into[bytes] = '\0';
}

/* 0: read, as far as it is there; -EAGAIN: not there yet; or an error of is_error(). */
static int read_fastcgi_details(struct request_reader *reader, struct view *view, remote_addr server_context)
{
	enum { METHOD, URI, TRACEPARENT, COUNT };
	/* One byte more than is kept, so that what is cut is known to be. */
	struct fastcgi_variable variables[COUNT] = {
		[METHOD] = {.name = "REQUEST_METHOD", .max_bytes = REQUEST_MAX_METHOD_BYTES + 1},
		[URI] = {.name = "REQUEST_URI", .max_bytes = REQUEST_MAX_PATH_BYTES},
		[TRACEPARENT] = {.name = "HTTP_TRACEPARENT", .max_bytes = TRACE_CONTEXT_MAX_BYTES},
	};
	struct request *current = &reader->current;
	int r;

	/* cgi-fcgi outside of a web server has 1 here, "to avoid server_context==NULL checks". */
	if (!plausible_address(server_context))
		return -EAGAIN;
	r = fastcgi_env_read(view, reader->binary->layout, server_context, variables, COUNT);
	if (r != 0)
		return r;
	if (variables[URI].found)
		copy_path(current->path, sizeof(current->path), variables[URI].value, variables[URI].bytes);
	if (variables[TRACEPARENT].found && trace_context_parse_traceparent(variables[TRACEPARENT].value,
						    variables[TRACEPARENT].bytes, &current->traceparent) == 0)
		current->has_traceparent = current->traceparent.trace_id[0] != '\0';
	/* Every web server sends a method: without one this was not (yet) the environment. */
	if (!variables[METHOD].found)
		return -EAGAIN;
	copy_method(current->method, variables[METHOD].value, variables[METHOD].bytes);
	return 0;
}

/* The script's file, a C string. Read to the end of the page first: what is behind it need not be mapped. */
static int read_script_path(struct request_reader *reader, struct view *view, remote_addr path)
{
	size_t max_bytes = REQUEST_MAX_PATH_BYTES + 1;
	size_t bytes = PAGE_BYTES - path % PAGE_BYTES;
	const char *text, *end = NULL;

	if (path == 0)
		return 0;
	if (bytes > max_bytes)
		bytes = max_bytes;
	text = view_at(view, path, bytes);
	if (text)
		end = memchr(text, '\0', bytes);
	if (text && !end && bytes < max_bytes) {
		bytes = max_bytes;
		text = view_at(view, path, bytes);
		end = text ? memchr(text, '\0', bytes) : NULL;
	}
	if (!text)
		return is_error(view_error(view)) ? view_error(view) : -EAGAIN;
	copy_path(
		reader->current.path, sizeof(reader->current.path), text, end ? (size_t)(end - text) : bytes);
	return 0;
}

/* Reads what is constant in a request, unless that is done. 0 also if that didn't succeed this time. */
static int read_details(struct request_reader *reader, struct view *view, const struct request_state *state)
{
	int r = 0;

	if (reader->detail_attempts >= REQUEST_MAX_DETAIL_ATTEMPTS)
		return 0;
	reader->detail_attempts++;
	if (reader->fastcgi)
		r = read_fastcgi_details(reader, view, state->server_context);
	else if (reader->single_request)
		r = read_script_path(reader, view, state->path_translated);
	if (r == 0)
		reader->detail_attempts = REQUEST_MAX_DETAIL_ATTEMPTS;
	return r == VIEW_E_TORN || r == -EAGAIN ? 0 : r;
}

/* The well-known global. 0 or an error of is_error(). */
static int read_context(struct request_reader *reader, struct view *view, enum context_state *ret_state,
	struct trace_context *ret_context)
{
	const struct layout *layout = reader->binary->layout;
	remote_addr table = reader->binary->executor_globals + layout->eg_symbol_table, string;
	const char *text;
	size_t bytes;
	int r;

	r = zval_symbol_string(view, layout, table, TRACE_CONTEXT_GLOBAL, strlen(TRACE_CONTEXT_GLOBAL),
		TRACE_CONTEXT_MAX_BYTES, &text, &bytes, &string);
	if (is_error(r))
		return r;
	if (r == 0 || r == ZVAL_E_ABSENT || r == ZVAL_E_NOT_STRING || r == ZVAL_E_TOO_LONG) {
		reader->table_retries = 0;
	} else if (reader->table_retries < REQUEST_MAX_TABLE_RETRIES) {
		/* PHP may be in the middle of changing the table, which the view's guard can't tell: again.
		 */
		reader->table_retries++;
		return VIEW_E_TORN;
	}
	if (r == ZVAL_E_ABSENT)
		*ret_state = CONTEXT_ABSENT;
	else if (r == 0 && trace_context_parse(text, bytes, ret_context) == 0)
		*ret_state = CONTEXT_VALID;
	else
		*ret_state = CONTEXT_INVALID;
	return 0;
}

int request_read(
	struct request_reader *reader, struct view *view, struct request *ret_request, bool *ret_new_request)
{
	struct trace_context context = {0};
	enum context_state context_state = CONTEXT_ABSENT;
	struct request_state state = {0};
	int r;

	r = read_state(reader, view, &state);
	if (is_error(r))
		return r;
	if (r == 0 && state.executing) {
		r = update_generation(reader, view, &state);
		if (r == 0)
			r = read_context(reader, view, &context_state, &context);
		if (r == 0)
			r = read_details(reader, view, &state);
		if (r != 0)
			return r;
	} else if (r == 0) {
		/* Compiling the script and shutting down have no PHP code on the stack either. */
		reader->maybe_idle_since = true;
		reader->idle_since |= !state.started;
	}

	*ret_request = reader->current;
	ret_request->active = state.started;
	ret_request->context_state = context_state;
	ret_request->context = context;
	*ret_new_request = reader->unreported;
	reader->unreported = false;
	return 0;
}
