/* SPDX-License-Identifier: MIT
 *
 * Names are copied: they are found on the sampler's thread, and told on the bookkeeper's, which knows those
 * of targets that are gone.
 */
#include "daemon/sampling/pool_names.h"

#include <stdio.h>
#include <string.h>

void pool_names_add(struct pool_names *names, const char *pool)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], pool) == 0)
			return;
	if (names->count < POOL_NAMES_MAX)
		snprintf(names->items[names->count++], sizeof(names->items[0]), "%s", pool);
}

void pool_names_refuse(const struct pool_names *names, struct order *order)
{
	size_t count = names ? names->count : 0;
	int length;

	order->error = ORDER_E_NOT_FOUND;
	if (order->pid) {
		snprintf(order->why, sizeof(order->why),
			"process %d is not sampled%s%s; `cbox-profd targets` lists "
			"those that are",
			order->pid, order->pool[0] ? " in pool " : "", order->pool);
		return;
	}
	length = snprintf(order->why, sizeof(order->why), "no pool \"%s\"; ", order->pool);
	if (count == 0)
		snprintf(order->why + length, sizeof(order->why) - (size_t)length,
			"nothing is sampled at present");
	for (size_t i = 0; i < count && (size_t)length < sizeof(order->why); i++)
		length += snprintf(order->why + length, sizeof(order->why) - (size_t)length, "%s%s",
			i == 0 ? "there are: " : ", ", names->items[i]);
}
