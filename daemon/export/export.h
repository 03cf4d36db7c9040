/* SPDX-License-Identifier: MIT
 *
 * Profile -> bytes, one file a format. Pure: no file descriptor, no clock. Text outputs are appended to a
 * buffer the caller owns; JSON ones are cJSON trees the caller owns (cJSON_Delete).
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "symbols/cleanup.h"
#include "daemon/profile/unit.h"

struct text {
	char *bytes; /* 0-terminated; NULL until something was appended */
	size_t length, room;
	int error; /* first failure (-ENOMEM); later appends do nothing */
};

void text_append(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_append_bytes(struct text *text, const char *bytes, size_t length);
void text_free(struct text *text);
#define _cleanup_text_ _cleanup_(text_free)

/* export_top.c: the table for people: self and total side by side, and a line that says what the two mean;
 * then the accounting. @rows functions at most; @order also picks which columns lead. */
int export_top_text(const struct profile *profile, enum profile_order order, size_t rows, struct text *text);
/* "function_count" is how many there are in all. */
cJSON *export_top_json(const struct profile *profile, enum profile_order order, size_t rows);

/* The same table from what was read of export_top_json(). */
struct top_table {
	uint64_t period_ns;
	uint64_t samples, wall_ns, cpu_ns; /* of all functions, also those without a row */
	struct accounting accounting;
	const struct function_name *frames; /* what the functions' frame is an index into */
	const struct profile_function *functions;
	size_t row_count;
	size_t function_count; /* with those that have no row */
};
int export_top_table(const struct top_table *table, enum profile_order order, struct text *text);

/* export_folded.c: flamegraph.pl's input, one line a distinct stack: "{main};A::b;C::d 123"; the number is
 * samples. With @lines, frames are "name:line". */
int export_folded(const struct profile *profile, bool lines, struct text *text);

/* export_json.c: everything: frames, nodes with lines, accounting. The form of the `profile` verb and of
 * `attach --format json`. */
cJSON *export_profile_json(const struct profile *profile);
cJSON *export_accounting_json(const struct accounting *accounting);
/* When nothing was sampled: a line that says why. */
int export_why_empty_text(const struct accounting *accounting, struct text *text);
/* One line for people: "1,000 ticks expected: 640 taken, 351 unchanged, …". */
int export_accounting_text(const struct accounting *accounting, struct text *text);

/* export_unit.c: the result of a unit, which is settled (unit_result_settle()), in the shape of
 * docs/PROTOCOL.md: the shape that consumers of the cbox_telemetry extension know. */
cJSON *export_unit_json(const struct unit_result *unit, bool include_profile, bool include_stacks);

/* export_status.c */
cJSON *export_target_json(const struct target_report *target);
cJSON *export_metrics_json(const struct metrics *metrics);
cJSON *export_samplers_json(const struct metrics *metrics);
