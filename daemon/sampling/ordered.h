/* SPDX-License-Identifier: MIT
 *
 * What was attached by order: selectors that each name one process, and end with it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/sampling/selector.h"

#define ORDERED_MAX 256

struct ordered {
	struct selector selector; /* SELECT_PID */
	uint64_t start_time_ticks;
};

struct ordered_list {
	struct ordered items[ORDERED_MAX];
	size_t count;
};

/* The one for @pid, valid until the list changes; or NULL. */
struct ordered *ordered_find(struct ordered_list *list, pid_t pid);

/* Adds @ordered, or puts it in the place of the one for the same pid. -E2BIG. */
int ordered_put(struct ordered_list *list, const struct ordered *ordered);

/* false: there was none for @pid. */
bool ordered_remove(struct ordered_list *list, pid_t pid);

/* Drops those whose process has ended: a number may be another process's by now. Were there any? */
bool ordered_drop_ended(struct ordered_list *list);
