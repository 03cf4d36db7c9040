/* SPDX-License-Identifier: MIT
 *
 * The result of a unit in the shape that consumers of the cbox_telemetry extension know (docs/PROTOCOL.md,
 * "finish"): none of its keys may be missing, more may be added. What has no cause when one looks from
 * outside (deferred samples, breadcrumbs, the operations table) is there and 0.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/export/export.h"
#include "daemon/export/json.h"
#include "daemon/export/regroup.h"

/* Samples whose stack was not seen as a whole: they are in <torn> or <unread>. */
static uint64_t dropped_samples(const struct accounting *accounting)
{
	return accounting->torn_lost + accounting->unreadable;
}

static uint64_t sample_count(const struct unit_result *unit)
{
	return unit->profile
		       ? profile_sum(unit->profile).samples
		       : unit->accounting.taken + unit->accounting.unchanged + unit->accounting.torn_lost;
}

static cJSON *counters_json(const struct unit_result *unit)
{
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	const struct accounting *accounting = &unit->accounting;
	const struct counters *counters = &unit->counters;
	bool ok = true;

	ok &= json_add_count(json, "profiler.samples", sample_count(unit));
	ok &= json_add_count(json, "profiler.dropped", dropped_samples(accounting));
	ok &= json_add_count(json, "profiler.torn", accounting->torn_lost);
	ok &= json_add_count(json, "profiler.deferred_samples", 0);
	ok &= json_add_count(json, "profiler.deferred_events", 0);
	ok &= json_add_count(json, "profiler.max_deferred", 0);
	ok &= json_add_count(json, "profiler.timer_overruns", accounting->missed);
	ok &= json_add_count(json, "profiler.period_ns", unit->period_ns);
	ok &= json_add_count(json, "profiler.frame_capacity_hits", unit->frame_overflows);
	ok &= json_add_count(json, "profiler.node_capacity_hits", accounting->node_overflow);
	ok &= json_add_bool(json, "profiler.capped", unit->capped);
	ok &= json_add_count(json, "profiler.frames", unit->profile ? unit->profile->frame_count - 1 : 0);
	ok &= json_add_count(json, "profiler.nodes", unit->node_count);
	ok &= json_add_count(json, "gc.runs", counters->has_gc ? counters->gc_runs : 0);
	ok &= json_add_count(json, "gc.collected", counters->has_gc ? counters->gc_collected : 0);
	if (counters->has_memory)
		ok &= json_add_count(json, "memory.peak_bytes", counters->memory_peak_bytes);
	ok &= json_add_count(json, "ops.overflow", 0);
	ok &= json_add_count(json, "breadcrumbs.written_total", 0);
	ok &= json_add_count(json, "arena.peak_bytes_total", unit->tree_peak_bytes);
	return ok ? TAKE(json) : NULL;
}

/* Frames without the root's: a frame's id here is its number in the profile less one. */
static cJSON *frames_json(const struct profile *profile)
{
	_cleanup_(cJSON_Deletep) cJSON *frames = cJSON_CreateArray();
	bool ok = frames;

	for (size_t i = 1; i < profile->frame_count && ok; i++) {
		cJSON *frame = cJSON_CreateObject();

		ok &= json_add_string(frame, "function", profile->frames[i].name);
		ok &= json_add_string(frame, "file", profile->frames[i].file);
		ok &= json_add_count(frame, "line", profile->frames[i].line);
		ok &= json_append_item(frames, frame);
	}
	return ok ? TAKE(frames) : NULL;
}

/* *ret_samples is the sum over what is listed. */
static cJSON *top_functions_json(const struct profile *profile, uint64_t *ret_samples)
{
	_cleanup_(cJSON_Deletep) cJSON *list = cJSON_CreateArray();
	_cleanup_free_ struct profile_function *functions = NULL;
	size_t count = 0;
	uint64_t samples = 0;

	bool ok = list && profile_functions(profile, PROFILE_BY_SELF_SAMPLES, &functions, &count) == 0;
	for (size_t i = 0; i < count && ok; i++) {
		const struct profile_function *function = &functions[i];

		if (function->self_samples == 0 && function->self_wall_ns == 0 && function->self_cpu_ns == 0)
			continue;
		cJSON *json = cJSON_CreateObject();
		ok &= json_add_count(json, "frame_id", function->frame - 1);
		ok &= json_add_count(json, "samples", function->self_samples);
		ok &= json_add_count(json, "wall_ns", function->self_wall_ns);
		ok &= json_add_count(json, "cpu_ns", function->self_cpu_ns);
		ok &= json_append_item(list, json);
		samples += function->self_samples;
	}
	if (!ok)
		return NULL;
	*ret_samples = samples;
	return TAKE(list);
}

static cJSON *stacks_json(const struct profile *profile)
{
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	_cleanup_text_ struct text text = {0};

	if (export_regroup(profile, false, &tree) < 0)
		return NULL;
	const struct calltree_node *nodes = calltree_nodes(tree);
	text_append(&text, "[");
	for (uint32_t i = CALLTREE_ROOT + 1; i < calltree_count(tree); i++)
		text_append(&text, "%s[%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]",
			i > 1 ? "," : "", nodes[i].parent, nodes[i].frame - 1, nodes[i].samples,
			nodes[i].wall_ns, nodes[i].cpu_ns);
	text_append(&text, "]");
	return text.error == 0 ? cJSON_CreateRaw(text.bytes) : NULL;
}

static cJSON *profile_json(const struct unit_result *unit, bool include_stacks)
{
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	const struct accounting *accounting = &unit->accounting;
	uint64_t samples = 0;
	cJSON *top = top_functions_json(unit->profile, &samples);
	bool ok = true;

	ok &= json_add_count(json, "sample_count", samples);
	ok &= json_add_count(json, "period_ns", unit->period_ns);
	ok &= json_add_string(json, "clock", "wall");
	ok &= json_add_count(json, "dropped", dropped_samples(accounting));
	ok &= json_add_count(json, "truncated", accounting->truncated);
	ok &= json_add_count(json, "deferred_samples", 0);
	ok &= json_add_count(json, "deferred_events", 0);
	ok &= json_add_count(json, "max_deferred", 0);
	ok &= json_add_count(json, "timer_overruns", accounting->missed);
	ok &= json_add_item(json, "frames", frames_json(unit->profile));
	ok &= json_add_item(json, "top_functions", top);
	if (include_stacks)
		ok &= json_add_item(json, "stacks", stacks_json(unit->profile));
	else
		ok &= json_add_null(json, "stacks");
	return ok ? TAKE(json) : NULL;
}

cJSON *export_unit_json(const struct unit_result *unit, bool include_profile, bool include_stacks)
{
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	bool with_profile = include_profile && unit->profiling && unit->profile && sample_count(unit) > 0;
	bool ok = true;

	ok &= json_add_count(json, "duration_ns", unit->duration_ns);
	ok &= json_add_string(json, "unit", unit_type_name(unit->type));
	ok &= json_add_string_or_null(json, "trace_id", unit->trace_id);
	ok &= json_add_string_or_null(json, "span_id", unit->span_id);
	ok &= json_add_bool(json, "sampled", unit->sampled);
	ok &= json_add_bool(json, "profiling", unit->profiling);
	ok &= json_add_bool(json, "automatic", unit->automatic);
	ok &= json_add_item(json, "operations", cJSON_CreateObject());
	ok &= json_add_item(json, "waits", cJSON_CreateObject());
	ok &= json_add_item(json, "counters", counters_json(unit));
	if (with_profile)
		ok &= json_add_item(json, "profile", profile_json(unit, include_stacks));
	else
		ok &= json_add_null(json, "profile");

	/* What the extension does not have. */
	ok &= json_add_count(json, "unit_id", unit->unit_id);
	ok &= json_add_count(json, "handle", unit->handle);
	ok &= json_add_bool(json, "adopted", unit->adopted);
	ok &= json_add_bool(json, "finished", unit->finished_by_client);
	ok &= json_add_signed(json, "pid", unit->pid);
	ok &= json_add_count(json, "uid", unit->uid);
	ok &= json_add_string(json, "pool", unit->pool);
	ok &= json_add_string(json, "name", unit->name);
	ok &= json_add_string(json, "method", unit->method);
	ok &= json_add_string(json, "path", unit->path);
	ok &= json_add_signed(json, "start_realtime_ns", unit->start_realtime_ns);
	ok &= json_add_count(json, "asked_period_ns", unit->asked_period_ns);
	ok &= json_add_count(json, "cpu_ns", unit->cpu_ns);
	ok &= json_add_count(json, "queue_ns", unit->queue_ns);
	ok &= json_add_item(json, "accounting", export_accounting_json(&unit->accounting));
	return ok ? TAKE(json) : NULL;
}
