/* SPDX-License-Identifier: MIT
 *
 * The processes that discovery has found, and what became of each: a list ordered by pid, as scans are.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/sampling/discovery.h"

enum known_state { KNOWN_ATTACHED, KNOWN_REFUSED, KNOWN_NOT_STARTED };

struct known {
	struct discovered identity;
	enum known_state state;
	uint64_t retry_ns; /* of what was refused */
};

struct known_list {
	struct known *items;
	size_t count, room;
};

void known_deinit(struct known_list *list);

/* NULL: not known, and *ret_place is where it would stand. Valid until the list changes. */
struct known *known_find(const struct known_list *list, pid_t pid, size_t *ret_place);

/* A new one at the place that known_find() gave. NULL: no memory. */
struct known *known_insert(struct known_list *list, size_t place, const struct discovered *identity);

void known_remove(struct known_list *list, size_t place);

/* The targets that are @pid or workers of it, by what selects them. */
struct coverage {
	size_t total;
	size_t configured; /* by one of the first @configured_count selectors */
	size_t ordered;    /* by the selector @ordered */
	const char *pool;  /* of one of them; valid until the list changes; "" without any */
};
struct coverage known_coverage(
	const struct known_list *list, pid_t pid, size_t configured_count, size_t ordered);
