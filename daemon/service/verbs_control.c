/* SPDX-License-Identifier: MIT
 *
 * The verbs that change what is sampled, and how. Their orders are not filtered by uid: who may use them sees
 * all.
 */
#include <string.h>

#include "daemon/export/json.h"
#include "daemon/service/verb.h"

#define MAX_RATE_HZ 1000000
#define MAX_PERIOD_US 60000000 /* what the engine allows is narrower; this keeps the arithmetic right */

/* Of a pool's name: those that the configuration allows there. */
#define POOL_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

static void require_pid(struct exchange *exchange, struct order *order)
{
	if (!protocol_request_has(&exchange->request, "pid"))
		protocol_request_fail(&exchange->request, PROTOCOL_E_BAD_REQUEST, "pid: missing");
	verb_take_pid(exchange, order);
}

void verb_ask_attach(struct exchange *exchange, const struct verb_host *host)
{
	struct order *order = verb_add_order(exchange, ORDER_ATTACH);

	if (order) {
		require_pid(exchange, order);
		verb_take_pool(exchange, order);
		if (order->pool[strspn(order->pool, POOL_CHARACTERS)])
			protocol_request_fail(&exchange->request, PROTOCOL_E_BAD_REQUEST,
				"pool: a name has up to %zu of the characters a-z A-Z 0-9 _ . -",
				sizeof(order->pool) - 1);
	}
}

void verb_ask_detach(struct exchange *exchange, const struct verb_host *host)
{
	struct order *order = verb_add_order(exchange, ORDER_DETACH);

	if (order)
		require_pid(exchange, order);
}

void verb_ask_rate(struct exchange *exchange, const struct verb_host *host)
{
	struct protocol_request *request = &exchange->request;
	struct order *order = verb_add_order(exchange, ORDER_RATE);
	uint64_t period_us, rate_hz;

	if (!order)
		return;
	verb_take_pool(exchange, order);
	period_us = protocol_request_number(request, "period_us", 1, MAX_PERIOD_US, 0);
	rate_hz = protocol_request_number(request, "rate_hz", 1, MAX_RATE_HZ, 0);
	if (!period_us == !rate_hz)
		protocol_request_fail(
			request, PROTOCOL_E_BAD_REQUEST, "one of period_us and rate_hz has to be given");
	order->period_ns = period_us ? period_us * 1000 : rate_hz ? 1000000000 / rate_hz : 0;
}

cJSON *verb_answer_affected(struct exchange *exchange, const struct verb_host *host)
{
	_cleanup_(cJSON_Deletep) cJSON *result = cJSON_CreateObject();
	const struct order *order = exchange->orders[0];
	bool ok = json_add_count(result, "affected", order->affected);

	if (order->why[0])
		ok &= json_add_string(result, "note", order->why);
	return ok ? TAKE(result) : NULL;
}

cJSON *verb_answer_rate(struct exchange *exchange, const struct verb_host *host)
{
	const struct order *order = exchange->orders[0];

	/* For `status`: without a pool it is the rate of all that ask for none of their own. */
	if (!*order->pool)
		host->options->sampling.period_ns = order->period_ns;
	return verb_answer_affected(exchange, host);
}

void verb_ask_reset(struct exchange *exchange, const struct verb_host *host)
{
	struct order *order = verb_add_order(exchange, ORDER_RESET);

	if (order)
		verb_take_pool(exchange, order);
}

void verb_ask_suspend(struct exchange *exchange, const struct verb_host *host)
{
	verb_add_filtered_order(exchange, ORDER_SUSPEND);
}

void verb_ask_resume(struct exchange *exchange, const struct verb_host *host)
{
	verb_add_filtered_order(exchange, ORDER_RESUME);
}

void verb_ask_reload(struct exchange *exchange, const struct verb_host *host)
{
	char why[200] = "";

	if (host->hooks->reload(host->hooks->context, why, sizeof(why)) < 0)
		protocol_request_fail(&exchange->request, PROTOCOL_E_REFUSED,
			"the old configuration stays: %s", *why ? why : "the new one can't be read");
}

cJSON *verb_answer_reload(struct exchange *exchange, const struct verb_host *host)
{
	return cJSON_CreateObject();
}
