/* SPDX-License-Identifier: MIT
 *
 * Which pools there are, for who has asked for one there isn't.
 */
#pragma once

#include <stddef.h>

#include "daemon/sampling/engine.h"

/* More would not fit into an order's answer. */
#define POOL_NAMES_MAX 32

struct pool_names {
	char items[POOL_NAMES_MAX][64];
	size_t count;
};

/* Each once, as long as there is room. */
void pool_names_add(struct pool_names *names, const char *pool);

/* The process or the pool that was asked for is not there: says which, and what there is. @names may be NULL:
 * not known. */
void pool_names_refuse(const struct pool_names *names, struct order *order);
