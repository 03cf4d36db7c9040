/* SPDX-License-Identifier: MIT
 *
 * Orders: questions to the engine that own their answers.
 */
#include "daemon/sampling/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int order_new(enum order_verb verb, struct order **ret_order)
{
	struct order *order = calloc(1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	order->verb = verb;
	order->uid = ORDER_ANY_UID;
	*ret_order = order;
	return 0;
}

bool order_asks_for(const struct order *order, pid_t pid, uid_t uid, const char *pool)
{
	return (!order->pid || order->pid == pid) && (order->uid == ORDER_ANY_UID || order->uid == uid) &&
	       (!order->pool[0] || strcmp(order->pool, pool) == 0);
}

/* For qsort(): the one that ended last first. */
static int compare_units(const void *a, const void *b)
{
	const struct unit_result *one = *(struct unit_result *const *)a,
				 *other = *(struct unit_result *const *)b;

	return one->end_ns < other->end_ns ? 1 : one->end_ns > other->end_ns ? -1 : 0;
}

void order_merge_units(struct order *order)
{
	qsort(order->units, order->unit_count, sizeof(struct unit_result *), compare_units);
	while (order->unit_count > order->limit)
		unit_result_free(order->units[--order->unit_count]);
}

void order_free(struct order *order)
{
	if (order->unit)
		unit_result_free(order->unit);
	for (size_t i = 0; i < order->unit_count; i++)
		unit_result_free(order->units[i]);
	free(order->units);
	free(order->targets);
	if (order->profile)
		profile_free(order->profile);
	free(order->metrics);
	free(order->pools);
	free(order);
}
