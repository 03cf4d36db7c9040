/* SPDX-License-Identifier: MIT
 *
 * All samplers must come to the same end, whatever else is ordered meanwhile: a pool that is suspended on one
 * thread and sampled on the other is in no state that anybody asked for. So such orders pass the samplers in
 * turn, none overtakes another (rounds.c), and an order is only begun when it is known not to be refused by a
 * later one. A reload ends the rates that were ordered. It comes to all samplers at once, to the first one
 * last, so a rate order that set out before it may meet it on the way: the number of reloads tells.
 */
#include "daemon/sampling/control.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/sampling/pool_names.h"
#include "daemon/sampling/sampler.h"

bool control_is_meant(const struct order *order)
{
	return order->verb == ORDER_RATE || order->verb == ORDER_SUSPEND || order->verb == ORDER_RESUME;
}

void control_name_pools(const struct sampler *sampler, struct order *order)
{
	if (!order->pools)
		order->pools = calloc(1, sizeof(*order->pools));
	if (!order->pools)
		return;
	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct discovered *identity = &sampler->targets[i]->identity;

		if (order->uid == ORDER_ANY_UID || order->uid == identity->uid)
			pool_names_add(order->pools, identity->pool);
	}
}

static bool has_what_is_asked_for(const struct sampler *sampler, const struct order *order)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct discovered *identity = &sampler->targets[i]->identity;

		if (order_asks_for(order, identity->pid, identity->uid, identity->pool))
			return true;
	}
	return false;
}

bool control_consult(struct sampler *sampler, struct order *order)
{
	if (order->is_approved)
		return true;
	/* What is for all needs nobody to be there. */
	order->has_found |= (!order->pid && !order->pool[0]) || has_what_is_asked_for(sampler, order);
	if (!order->has_found)
		control_name_pools(sampler, order);
	if (!sampler->next && !order->has_found)
		pool_names_refuse(order->pools, order);
	if (sampler->next || !order->has_found) {
		sampler_send_on(sampler, order);
		return false;
	}
	order->is_approved = true;
	mailbox_post(sampler->first, &order->message);
	return false;
}

static bool is_rate_allowed(const struct engine_options *options, struct order *order)
{
	if (order->period_ns >= options->min_period_ns && order->period_ns <= options->max_period_ns)
		return true;
	order->error = ORDER_E_RANGE;
	snprintf(order->why, sizeof(order->why),
		"a period of %.1f us: it may be %.0f us (sampling.max_rate, %.0f Hz) to %.0f us",
		(double)order->period_ns / 1e3, (double)options->min_period_ns / 1e3,
		1e9 / (double)options->min_period_ns, (double)options->max_period_ns / 1e3);
	return false;
}

/* What is ordered of a pool or of all holds for later targets too. */
static bool let_stand(struct sampler *sampler, struct order *order)
{
	struct standing *standing = &sampler->standing;
	int r;

	if (order->verb == ORDER_RATE)
		r = standing_order_period(standing, order->pool, order->period_ns);
	else
		r = standing_order_suspension(standing, order->pool, order->verb == ORDER_SUSPEND);
	if (r == 0)
		return true;
	order->error = ORDER_E_LIMIT;
	snprintf(order->why, sizeof(order->why),
		"%d pools have a rate or suspension of their own already; order it for all, which ends those",
		STANDING_MAX_POOLS);
	return false;
}

bool control_begin(struct sampler *sampler, struct order *order)
{
	if (!order->has_begun) {
		order->reloads = sampler->reloads;
		if (order->verb == ORDER_RATE && !is_rate_allowed(&sampler->sampling.options, order))
			return false;
	}
	return order->pid || control_is_overtaken(sampler, order) || let_stand(sampler, order);
}

bool control_is_overtaken(const struct sampler *sampler, const struct order *order)
{
	return order->verb == ORDER_RATE && order->reloads != sampler->reloads;
}
