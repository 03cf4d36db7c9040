/* SPDX-License-Identifier: MIT
 *
 * Standing orders: a rate, or a suspension, that was ordered for a pool or for all holds also for targets
 * that come later; a pool's workers are replaced all the time. The later order is the one that counts: one
 * for all ends those for single pools.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Pools with orders of their own. */
#define STANDING_MAX_POOLS 64

struct standing_order {
	char pool[64];
	uint64_t period_ns; /* 0: not ordered */
	enum { STANDING_UNSAID, STANDING_SUSPENDED, STANDING_RESUMED } suspension;
};

struct standing {
	struct standing_order for_all;
	struct standing_order of_pool[STANDING_MAX_POOLS];
	size_t count;
};

/* @pool "": all. -ENOSPC: too many pools have orders of their own. */
int standing_order_period(struct standing *standing, const char *pool, uint64_t period_ns);
int standing_order_suspension(struct standing *standing, const char *pool, bool suspended);

/* Periods go back to what is configured. */
void standing_forget_periods(struct standing *standing);

/* For a target of @pool. 0: not ordered. */
uint64_t standing_period_ns(const struct standing *standing, const char *pool);
bool standing_is_suspended(const struct standing *standing, const char *pool);
