/* SPDX-License-Identifier: MIT
 *
 * See standing.h.
 */
#include "daemon/sampling/standing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct standing_order *find(const struct standing *standing, const char *pool)
{
	for (size_t i = 0; i < standing->count; i++)
		if (strcmp(standing->of_pool[i].pool, pool) == 0)
			return &standing->of_pool[i];
	return NULL;
}

/* The order of @pool, made if need be. NULL: no room. */
static struct standing_order *take(struct standing *standing, const char *pool)
{
	const struct standing_order *found = find(standing, pool);
	struct standing_order *order;

	if (found)
		return &standing->of_pool[found - standing->of_pool];
	if (standing->count == STANDING_MAX_POOLS)
		return NULL;
	order = &standing->of_pool[standing->count++];
	*order = (struct standing_order){0};
	snprintf(order->pool, sizeof(order->pool), "%s", pool);
	return order;
}

static void drop_empty(struct standing *standing)
{
	size_t kept = 0;

	for (size_t i = 0; i < standing->count; i++)
		if (standing->of_pool[i].period_ns || standing->of_pool[i].suspension != STANDING_UNSAID)
			standing->of_pool[kept++] = standing->of_pool[i];
	standing->count = kept;
}

void standing_forget_periods(struct standing *standing)
{
	standing->for_all.period_ns = 0;
	for (size_t i = 0; i < standing->count; i++)
		standing->of_pool[i].period_ns = 0;
	drop_empty(standing);
}

int standing_order_period(struct standing *standing, const char *pool, uint64_t period_ns)
{
	struct standing_order *order = &standing->for_all;

	if (pool[0])
		order = take(standing, pool);
	else
		standing_forget_periods(standing);
	if (!order)
		return -ENOSPC;
	order->period_ns = period_ns;
	return 0;
}

int standing_order_suspension(struct standing *standing, const char *pool, bool suspended)
{
	struct standing_order *order = &standing->for_all;

	if (pool[0])
		order = take(standing, pool);
	if (!order)
		return -ENOSPC;
	if (!pool[0]) {
		for (size_t i = 0; i < standing->count; i++)
			standing->of_pool[i].suspension = STANDING_UNSAID;
		drop_empty(standing);
	}
	order->suspension = suspended ? STANDING_SUSPENDED : STANDING_RESUMED;
	return 0;
}

uint64_t standing_period_ns(const struct standing *standing, const char *pool)
{
	const struct standing_order *order = find(standing, pool);

	return order && order->period_ns ? order->period_ns : standing->for_all.period_ns;
}

bool standing_is_suspended(const struct standing *standing, const char *pool)
{
	const struct standing_order *order = find(standing, pool);

	if (!order || order->suspension == STANDING_UNSAID)
		order = &standing->for_all;
	return order->suspension == STANDING_SUSPENDED;
}
