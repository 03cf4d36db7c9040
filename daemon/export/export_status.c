/* SPDX-License-Identifier: MIT
 *
 * Targets and the program's own numbers as JSON.
 */
#include "daemon/export/export.h"
#include "daemon/export/json.h"

cJSON *export_target_json(const struct target_report *target)
{
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	bool ok = true;

	ok &= json_add_signed(json, "pid", target->pid);
	ok &= json_add_count(json, "uid", target->uid);
	ok &= json_add_string(json, "pool", target->pool);
	ok &= json_add_string(json, "php_version", target->php_version);
	ok &= json_add_string(json, "sapi", target->sapi);
	ok &= json_add_string(json, "state", target->state);
	ok &= json_add_bool(json, "suspended", target->suspended);
	ok &= json_add_count(json, "period_ns", target->period_ns);
	ok &= json_add_count(json, "asked_period_ns", target->asked_period_ns);
	ok &= json_add_count(json, "requests_seen", target->requests_seen);
	ok &= json_add_string(json, "method", target->method);
	ok &= json_add_string(json, "path", target->path);
	ok &= json_add_string_or_null(json, "trace_id", target->trace_id);
	ok &= json_add_count(json, "request_age_ns", target->request_age_ns);
	cJSON *unit = cJSON_AddObjectToObject(json, "unit");
	ok &= json_add_bool(unit, "open", target->unit_open);
	ok &= json_add_bool(unit, "automatic", target->unit_automatic);
	ok &= json_add_count(unit, "handle", target->unit_handle);
	ok &= json_add_item(json, "accounting", export_accounting_json(&target->accounting));
	return ok ? TAKE(json) : NULL;
}

cJSON *export_samplers_json(const struct metrics *metrics)
{
	_cleanup_(cJSON_Deletep) cJSON *list = cJSON_CreateArray();
	bool ok = list != NULL;

	for (size_t i = 0; i < metrics->sampler_count; i++) {
		const struct sampler_metrics *sampler = &metrics->samplers[i];
		cJSON *json = cJSON_CreateObject();

		ok &= json_add_count(json, "targets", sampler->targets);
		ok &= json_add_count(json, "ticks_total", sampler->ticks_total);
		ok &= json_add_count(json, "cpu_ns", sampler->cpu_ns);
		ok &= json_add_count(json, "expected", sampler->expected);
		ok &= json_add_count(json, "missed", sampler->missed);
		ok &= json_add_count(json, "late", sampler->late);
		ok &= json_add_count(json, "stretch_ppm", sampler->stretch_ppm);
		ok &= json_append_item(list, json);
	}
	return ok ? TAKE(list) : NULL;
}

cJSON *export_metrics_json(const struct metrics *metrics)
{
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	bool ok = true;

	ok &= json_add_count(json, "uptime_ns", metrics->uptime_ns);
	ok &= json_add_count(json, "targets", metrics->targets);
	ok &= json_add_count(json, "targets_attached_total", metrics->targets_attached_total);
	ok &= json_add_count(json, "targets_refused_total", metrics->targets_refused_total);
	ok &= json_add_count(json, "units_finished_total", metrics->units_finished_total);
	ok &= json_add_count(json, "units_retained", metrics->units_retained);
	ok &= json_add_count(json, "ticks_total", metrics->ticks_total);
	ok &= json_add_count(json, "sampler_cpu_ns", metrics->sampler_cpu_ns);
	ok &= json_add_count(json, "cpu_budget_ppm", metrics->cpu_budget_ppm);
	ok &= json_add_count(json, "cpu_share_ppm", metrics->cpu_share_ppm);
	ok &= json_add_count(json, "cpu_demand_ppm", metrics->cpu_demand_ppm);
	ok &= json_add_count(json, "stretch_ppm", metrics->stretch_ppm);
	ok &= json_add_count(json, "process_vm_readv_total", metrics->process_vm_readv_total);
	ok &= json_add_count(json, "proc_reads_total", metrics->proc_reads_total);
	ok &= json_add_count(json, "frames", metrics->frames);
	ok &= json_add_count(json, "frame_bytes", metrics->frame_bytes);
	ok &= json_add_count(json, "frame_overflow_total", metrics->frame_overflow_total);
	ok &= json_add_count(json, "tree_bytes", metrics->tree_bytes);
	ok &= json_add_count(json, "rss_bytes", metrics->rss_bytes);
	ok &= json_add_bool(json, "realtime", metrics->realtime);
	ok &= json_add_item(json, "samplers", export_samplers_json(metrics));
	ok &= json_add_item(json, "accounting", export_accounting_json(&metrics->accounting));
	return ok ? TAKE(json) : NULL;
}
