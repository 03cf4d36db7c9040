/* SPDX-License-Identifier: MIT
 *
 * What `doctor` found: checks one by one, each with what was seen and, where it is not well, what to do.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define REPORT_MAX_CHECKS 32

enum check_state {
	CHECK_OK,
	CHECK_NOTE, /* works, but less well than it could */
	CHECK_FAIL,
};

struct check {
	const char *name;
	enum check_state state;
	char found[320];
	char remedy[320]; /* "" when there is nothing to do */
};

struct report {
	struct check checks[REPORT_MAX_CHECKS];
	size_t count;
	int exit_status; /* of the first failure; EXIT_OK */
};

/* @exit_status counts for CHECK_FAIL alone. The text is "found" or "found; remedy". */
void report_add(struct report *report, const char *name, enum check_state state, int exit_status,
	const char *remedy, const char *found_format, ...) __attribute__((format(printf, 6, 7)));

/* doctor_machine.c: what holds for every target. */
void doctor_check_machine(struct report *report, const char *socket_path);

/* doctor_target.c: what holds for this one. */
void doctor_check_target(struct report *report, pid_t pid);
