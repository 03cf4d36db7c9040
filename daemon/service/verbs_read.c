/* SPDX-License-Identifier: MIT
 *
 * The verbs that read: `finish`, by which a worker ends its own unit and takes the result with it, and those
 * of people and their tools. Arguments that shape only the answer (rows, order, stacks) are checked when the
 * request is asked, so that nothing is collected for an answer that can't be given, and read again when it is
 * written.
 */
#include "daemon/service/verb.h"

#include <string.h>

#include "daemon/export/json.h"

#define MAX_TOP_ROWS 1000
#define DEFAULT_TOP_ROWS 20
#define MAX_UNITS 1000
#define DEFAULT_UNITS 50

void verb_ask_finish(struct exchange *exchange, const struct verb_host *host)
{
	struct protocol_request *request = &exchange->request;
	struct order *order = verb_add_order(exchange, ORDER_FINISH);
	const char *context;

	if (!order)
		return;
	/* Also for root: the process that asks ends its own unit. */
	order->uid = exchange->peer.uid;
	order->pid = exchange->peer.pid;
	if (order->pid == 0)
		protocol_request_fail(request, PROTOCOL_E_NOT_A_TARGET,
			"the process that asks can't be seen from here: it is in another pid namespace than "
			"the daemon's; "
			"run the daemon in the parent of both");
	order->handle = protocol_request_number(request, "handle", 0, UINT64_MAX, 0);
	order->want_profile = protocol_request_flag(request, "profile", false);
	protocol_request_flag(request, "stacks", false);
	context = protocol_request_text(request, "context", TRACE_CONTEXT_MAX_BYTES);
	if (!context)
		return;
	if (trace_context_parse(context, strlen(context), &order->context) < 0)
		protocol_request_fail(request, PROTOCOL_E_BAD_REQUEST,
			"context: not of the grammar 00-<trace>-<span>-<flags>[;…]; see docs/PROTOCOL.md");
	order->has_context = true;
}

cJSON *verb_answer_unit(struct exchange *exchange, const struct verb_host *host)
{
	struct unit_result *unit = exchange->orders[0]->unit;

	if (!unit) {
		protocol_request_fail(&exchange->request, PROTOCOL_E_NO_UNIT, "no such unit is open");
		return NULL;
	}
	if (unit_result_settle(unit) < 0)
		return NULL;
	return export_unit_json(unit, protocol_request_flag(&exchange->request, "profile", false),
		protocol_request_flag(&exchange->request, "stacks", false));
}

void verb_ask_targets(struct exchange *exchange, const struct verb_host *host)
{
	verb_add_filtered_order(exchange, ORDER_TARGETS);
}

cJSON *verb_answer_targets(struct exchange *exchange, const struct verb_host *host)
{
	const struct order *order = exchange->orders[0];
	_cleanup_(cJSON_Deletep) cJSON *list = cJSON_CreateArray();
	bool ok = list != NULL;

	for (size_t i = 0; i < order->target_count; i++)
		ok &= json_append_item(list, export_target_json(&order->targets[i]));
	return ok ? verb_wrap("targets", TAKE(list)) : NULL;
}

static enum profile_order top_order(struct protocol_request *request)
{
	const char *name = protocol_request_text(request, "order", 32);
	enum profile_order order = PROFILE_BY_SELF_WALL;

	if (name && profile_order_parse(name, &order) < 0)
		protocol_request_fail(request, PROTOCOL_E_BAD_REQUEST,
			"order: none of self_wall, total_wall, self_cpu, total_cpu, self_samples");
	return order;
}

static size_t top_rows(struct protocol_request *request)
{
	return protocol_request_number(request, "n", 1, MAX_TOP_ROWS, DEFAULT_TOP_ROWS);
}

void verb_ask_top(struct exchange *exchange, const struct verb_host *host)
{
	verb_add_filtered_order(exchange, ORDER_PROFILE);
	top_order(&exchange->request);
	top_rows(&exchange->request);
}

static const struct profile *window(struct exchange *exchange)
{
	const struct profile *profile = exchange->orders[0]->profile;

	if (!profile)
		protocol_request_fail(&exchange->request, PROTOCOL_E_NOT_FOUND, "no such target or pool");
	return profile;
}

cJSON *verb_answer_top(struct exchange *exchange, const struct verb_host *host)
{
	const struct profile *profile = window(exchange);

	return profile ? export_top_json(profile, top_order(&exchange->request), top_rows(&exchange->request))
		       : NULL;
}

void verb_ask_profile(struct exchange *exchange, const struct verb_host *host)
{
	verb_add_filtered_order(exchange, ORDER_PROFILE);
}

cJSON *verb_answer_profile(struct exchange *exchange, const struct verb_host *host)
{
	const struct profile *profile = window(exchange);

	return profile ? export_profile_json(profile) : NULL;
}

void verb_ask_unit(struct exchange *exchange, const struct verb_host *host)
{
	struct protocol_request *request = &exchange->request;
	struct order *order = verb_add_order(exchange, ORDER_UNIT);
	const char *trace_id;

	if (!order)
		return;
	order->unit_id = protocol_request_number(request, "unit_id", 1, UINT64_MAX, 0);
	order->want_profile = protocol_request_flag(request, "profile", false);
	protocol_request_flag(request, "stacks", false);
	trace_id = protocol_request_text(request, "trace_id", sizeof(order->trace_id) - 1);
	if (!trace_id == !order->unit_id)
		protocol_request_fail(
			request, PROTOCOL_E_BAD_REQUEST, "one of unit_id and trace_id has to be given");
	if (!trace_id)
		return;
	if (strlen(trace_id) != 32 || strspn(trace_id, "0123456789abcdefABCDEF") != 32)
		protocol_request_fail(request, PROTOCOL_E_BAD_REQUEST, "trace_id: not 32 hexadecimal digits");
	/* The engine keeps ids in lower case; digits have the bit that makes letters so already. */
	for (size_t i = 0; trace_id[i]; i++)
		order->trace_id[i] = (char)(trace_id[i] | 0x20);
}

void verb_ask_units(struct exchange *exchange, const struct verb_host *host)
{
	struct order *order = verb_add_filtered_order(exchange, ORDER_UNITS);

	if (order)
		order->limit = (uint32_t)protocol_request_number(
			&exchange->request, "limit", 1, MAX_UNITS, DEFAULT_UNITS);
}

cJSON *verb_answer_units(struct exchange *exchange, const struct verb_host *host)
{
	const struct order *order = exchange->orders[0];
	_cleanup_(cJSON_Deletep) cJSON *list = cJSON_CreateArray();
	bool ok = list != NULL;

	for (size_t i = 0; i < order->unit_count && ok; i++) {
		if (unit_result_settle(order->units[i]) < 0)
			return NULL;
		ok &= json_append_item(list, export_unit_json(order->units[i], false, false));
	}
	return ok ? verb_wrap("units", TAKE(list)) : NULL;
}

void verb_ask_metrics(struct exchange *exchange, const struct verb_host *host)
{
	verb_add_order(exchange, ORDER_METRICS);
}

cJSON *verb_answer_metrics(struct exchange *exchange, const struct verb_host *host)
{
	const struct metrics *metrics = exchange->orders[0]->metrics;

	return metrics ? export_metrics_json(metrics) : NULL;
}
