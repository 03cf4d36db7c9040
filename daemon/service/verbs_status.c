/* SPDX-License-Identifier: MIT
 *
 * `status`: what the daemon is and does, in one answer that anybody who may connect gets, cut to what they
 * may see. It is put together from three orders; the last asks about the peer's own process, for a client in
 * a worker that wants to know whether it is being sampled.
 */
#include "daemon/service/verb.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/export/json.h"

#define PPM 1000000u
#define STATUS_MAX_REFUSALS 32
#define STATUS_MAX_POOLS 64
#define STATUS_MAX_ENTRIES HARVEST_MAX

enum { STATUS_METRICS, STATUS_TARGETS, STATUS_WORKER };

void verb_ask_status(struct exchange *exchange, const struct verb_host *host)
{
	struct order *worker;

	/* In the order of the enum. */
	verb_add_order(exchange, ORDER_METRICS);
	verb_add_order(exchange, ORDER_TARGETS);
	if (exchange->peer.pid == 0)
		return;
	worker = verb_add_order(exchange, ORDER_WORKER);
	if (worker) {
		worker->uid = exchange->peer.uid;
		worker->pid = exchange->peer.pid;
	}
}

static bool add_sampling(cJSON *status, const struct exchange *exchange, const struct engine_options *options)
{
	const struct order *targets = exchange->orders[STATUS_TARGETS];
	const struct metrics *metrics = exchange->orders[STATUS_METRICS]->metrics;
	cJSON *sampling = cJSON_AddObjectToObject(status, "sampling");
	bool suspended = targets->target_count > 0, ok = true;

	for (size_t i = 0; i < targets->target_count; i++)
		suspended &= targets->targets[i].suspended;
	ok &= json_add_count(sampling, "period_ns", options->period_ns * metrics->stretch_ppm / PPM);
	ok &= json_add_count(sampling, "asked_period_ns", options->period_ns);
	ok &= json_add_count(sampling, "stretch_ppm", metrics->stretch_ppm);
	ok &= json_add_count(sampling, "max_depth", options->max_depth);
	ok &= json_add_bool(sampling, "suspended", suspended);
	return ok;
}

static bool add_limits(cJSON *status, const struct engine_options *options)
{
	cJSON *limits = cJSON_AddObjectToObject(status, "limits");
	bool ok = true;

	ok &= json_add_count(limits, "max_targets", options->max_targets);
	ok &= json_add_count(limits, "max_frames", options->max_frames);
	ok &= json_add_count(limits, "max_nodes", options->max_nodes);
	ok &= json_add_count(limits, "auto_max_ns", options->auto_max_ns);
	return ok;
}

/* The distinct pools among @targets, as they come. */
static bool add_pools(cJSON *status, const struct order *targets)
{
	cJSON *list = cJSON_AddArrayToObject(status, "pools");
	const char *pools[STATUS_MAX_POOLS];
	size_t count = 0, known;
	bool ok = list != NULL;

	for (size_t i = 0; i < targets->target_count && count < STATUS_MAX_POOLS; i++) {
		const char *pool = targets->targets[i].pool;

		for (known = 0; known < count && strcmp(pools[known], pool) != 0; known++)
			;
		if (known < count)
			continue;
		pools[count++] = pool;
		ok &= json_append_item(list, cJSON_CreateString(pool));
	}
	return ok;
}

/* Why processes are not sampled: all of them for who may see all, else only what concerns the peer itself. */
static bool add_refusals(cJSON *status, const struct exchange *exchange, struct engine *engine)
{
	struct refusal refusals[STATUS_MAX_REFUSALS];
	size_t count = engine_refusals(engine, refusals, STATUS_MAX_REFUSALS);
	cJSON *list = cJSON_AddArrayToObject(status, "refusals");
	bool ok = list != NULL;

	for (size_t i = 0; i < count; i++) {
		cJSON *refusal;

		if (exchange->role < ROLE_READER && refusals[i].pid != exchange->peer.pid)
			continue;
		refusal = cJSON_CreateObject();
		ok &= json_add_signed(refusal, "pid", refusals[i].pid);
		ok &= json_add_string(refusal, "why", refusals[i].why);
		ok &= json_append_item(list, refusal);
	}
	return ok;
}

/* What each entry of the configuration finds: for who may see all. */
static bool add_entries(cJSON *status, const struct exchange *exchange, struct engine *engine)
{
	_cleanup_free_ struct selector_report *reports = calloc(STATUS_MAX_ENTRIES, sizeof(*reports));
	cJSON *list = cJSON_AddArrayToObject(status, "entries");
	size_t count = 0;
	bool ok = list && reports;

	if (ok && exchange->role >= ROLE_READER)
		count = engine_selector_reports(engine, reports, STATUS_MAX_ENTRIES);
	for (size_t i = 0; i < count; i++) {
		cJSON *entry = cJSON_CreateObject();

		ok &= json_add_string(entry, "selects", reports[i].selects);
		ok &= json_add_string_or_null(entry, "pool", reports[i].pool);
		ok &= json_add_count(entry, "found", reports[i].found);
		ok &= json_add_string_or_null(entry, "why", reports[i].why);
		ok &= json_append_item(list, entry);
	}
	return ok;
}

/* Of all targets since the start for who may see all; else of the targets that are the peer's. */
static bool add_accounting(cJSON *status, const struct exchange *exchange)
{
	const struct order *targets = exchange->orders[STATUS_TARGETS];
	struct accounting sum = {0};

	if (exchange->role >= ROLE_READER)
		sum = exchange->orders[STATUS_METRICS]->metrics->accounting;
	else
		for (size_t i = 0; i < targets->target_count; i++)
			accounting_add(&sum, &targets->targets[i].accounting);
	return json_add_item(status, "accounting", export_accounting_json(&sum));
}

/* What the program itself costs. */
static bool add_costs(cJSON *status, const struct metrics *metrics)
{
	cJSON *costs = cJSON_AddObjectToObject(status, "metrics");
	bool ok = true;

	ok &= json_add_count(costs, "ticks_total", metrics->ticks_total);
	ok &= json_add_count(costs, "sampler_cpu_ns", metrics->sampler_cpu_ns);
	ok &= json_add_count(costs, "cpu_budget_ppm", metrics->cpu_budget_ppm);
	ok &= json_add_count(costs, "cpu_share_ppm", metrics->cpu_share_ppm);
	ok &= json_add_count(costs, "cpu_demand_ppm", metrics->cpu_demand_ppm);
	ok &= json_add_count(costs, "process_vm_readv_total", metrics->process_vm_readv_total);
	ok &= json_add_count(costs, "proc_reads_total", metrics->proc_reads_total);
	ok &= json_add_count(costs, "rss_bytes", metrics->rss_bytes);
	ok &= json_add_item(costs, "samplers", export_samplers_json(metrics));
	return ok;
}

/* The target that is the peer's own process, or null. */
static bool add_worker(cJSON *status, const struct exchange *exchange)
{
	const struct order *worker =
		exchange->order_count > STATUS_WORKER ? exchange->orders[STATUS_WORKER] : NULL;

	if (!worker || worker->error || worker->target_count == 0)
		return json_add_null(status, "worker");
	return json_add_item(status, "worker", export_target_json(&worker->targets[0]));
}

cJSON *verb_answer_status(struct exchange *exchange, const struct verb_host *host)
{
	const struct metrics *metrics = exchange->orders[STATUS_METRICS]->metrics;
	const struct order *targets = exchange->orders[STATUS_TARGETS];
	const struct engine_options *sampling = &host->options->sampling;
	_cleanup_(cJSON_Deletep) cJSON *status = cJSON_CreateObject();
	cJSON *protocols;
	bool ok = true;

	ok &= json_add_string(status, "version", CBOX_PROFD_VERSION);
	protocols = cJSON_AddArrayToObject(status, "protocols");
	ok &= json_append_item(protocols, cJSON_CreateNumber(PROTOCOL_VERSION));
	ok &= json_add_count(status, "uptime_ns", metrics->uptime_ns);
	ok &= json_add_bool(status, "realtime", metrics->realtime);
	ok &= json_add_string(status, "socket", host->socket_path);
	ok &= add_sampling(status, exchange, sampling);
	ok &= add_limits(status, sampling);
	ok &= json_add_count(status, "targets", targets->target_count);
	ok &= add_pools(status, targets);
	ok &= add_refusals(status, exchange, host->engine);
	ok &= add_entries(status, exchange, host->engine);
	ok &= add_accounting(status, exchange);
	ok &= add_costs(status, metrics);
	ok &= add_worker(status, exchange);
	return ok ? TAKE(status) : NULL;
}
