/* SPDX-License-Identifier: MIT
 *
 * The trace context that PHP code puts in $GLOBALS['__cbox_profd'], and an incoming traceparent header: their
 * grammar, byte by byte. Pure: text in, struct out.
 *
 *	00-<32 hex trace>-<16 hex span>-<2 hex flags>
 *		[;u=http][;h=<handle>][;p=0|1][;r=<period_us>][;d=<max_depth>][;n=<route>]
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_CONTEXT_GLOBAL "__cbox_profd"
#define TRACE_CONTEXT_MAX_BYTES 512
#define TRACE_CONTEXT_MAX_NAME_BYTES 128

enum unit_type { UNIT_HTTP, UNIT_QUEUE, UNIT_COMMAND, UNIT_SCHEDULE, UNIT_OTHER };

struct trace_context {
	char trace_id[33]; /* lower-case hex; "" when absent (all zero) */
	char span_id[17];
	bool sampled; /* bit 0 of the flags */
	bool has_unit_type;
	enum unit_type unit_type;
	uint64_t handle;    /* 0: none. CLOCK_MONOTONIC nanoseconds at which begin() was called, see
			       docs/PROTOCOL.md */
	bool profile;       /* p=; true when not given */
	uint32_t period_us; /* 0: not given */
	uint32_t max_depth; /* 0: not given */
	char name[TRACE_CONTEXT_MAX_NAME_BYTES + 1];
};

/* 0, or -EINVAL: not of the grammar. Fields behind the flags may come in any order, each at most once:
 *
 *	u  unit type, 1 to 32 of [a-z_]; one that isn't known is UNIT_OTHER
 *	h  handle, 1 to 2^63-1
 *	p  0 or 1
 *	r  period in µs, d  depth: 1 to 2^32-1 (the daemon clamps them to its own limits)
 *	n  route name, 1 to 128 bytes of UTF-8 without control characters and without ';'
 *
 * Numbers are decimal without sign and leading zeros. A letter that isn't known is not of the grammar. Hex
 * digits are lower case, as W3C wants them. */
int trace_context_parse(const char *text, size_t bytes, struct trace_context *ret_context);

/* The W3C traceparent header: the first part alone. 0, or -EINVAL. A version later than 00 is read as far as
 * 00 goes, which is what W3C Trace Context section 3.2.2 asks for. */
int trace_context_parse_traceparent(const char *text, size_t bytes, struct trace_context *ret_context);

const char *unit_type_name(enum unit_type type);
/* "http" -> UNIT_HTTP; anything unknown is UNIT_OTHER. */
enum unit_type unit_type_from_name(const char *name);
