/* SPDX-License-Identifier: MIT
 *
 * See open_unit.h. The semantics (adoption, abandoning, what "sampled" and "profile" do) are those that
 * consumers of the in-process extension rely on; docs/PROTOCOL.md has them.
 */
#include "daemon/sampling/open_unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void copy_label(char *into, size_t bytes, const char *text)
{
	snprintf(into, bytes, "%s", text);
}

int open_unit_begin(struct open_unit *unit, struct sampling *sampling, const struct unit_owner *owner,
	bool automatic, uint64_t begin_ns, const struct activity_clocks *clocks)
{
	struct calltree *tree = sampling_take_tree(sampling);

	if (!tree)
		return -ENOMEM;
	*unit = (struct open_unit){
		.open = true,
		.automatic = automatic,
		.collecting = true,
		.begin_ns = begin_ns,
		.frame_overflows = frame_table_overflows(sampling->frames),
		.tree = tree,
		.labels =
			{
				.unit_id = sampling_number_unit(sampling),
				.pid = owner->pid,
				.uid = owner->uid,
				.type = automatic ? owner->automatic_type : UNIT_OTHER,
				.automatic = automatic,
				.sampled = true,
				.profiling = true,
				.period_ns = sampling_period_ns(sampling, owner->period_ns),
				.asked_period_ns = owner->period_ns,
				.max_depth = sampling->options.max_depth,
				.start_realtime_ns =
					realtime_now_ns() - (int64_t)(monotonic_now_ns() - begin_ns),
			},
	};
	copy_label(unit->labels.pool, sizeof(unit->labels.pool), owner->pool);
	ledger_init(&unit->ledger, tree);
	ledger_open(&unit->ledger, begin_ns, clocks);
	return 0;
}

void open_unit_set_request(struct open_unit *unit, const struct request *request, bool trust_traceparent)
{
	struct unit_result *labels = &unit->labels;

	copy_label(labels->method, sizeof(labels->method), request->method);
	copy_label(labels->path, sizeof(labels->path), request->path);
	/* Who called begin() without a trace wants none. */
	if (unit->adopted && unit->context.handle)
		return;
	if (trust_traceparent && request->has_traceparent && !labels->trace_id[0]) {
		copy_label(labels->trace_id, sizeof(labels->trace_id), request->traceparent.trace_id);
		copy_label(labels->span_id, sizeof(labels->span_id), request->traceparent.span_id);
	}
}

static void discard(struct open_unit *unit)
{
	unit->collecting = false;
	unit->labels.profiling = false;
	calltree_clear(unit->tree);
	unit->labels.accounting = (struct accounting){0};
}

void open_unit_adopt(struct open_unit *unit, struct sampling *sampling, const struct trace_context *context)
{
	struct unit_result *labels = &unit->labels;

	unit->adopted = true;
	unit->context = *context;
	labels->adopted = true;
	labels->handle = context->handle;
	if (context->trace_id[0] || context->handle) {
		copy_label(labels->trace_id, sizeof(labels->trace_id), context->trace_id);
		copy_label(labels->span_id, sizeof(labels->span_id), context->span_id);
	}
	copy_label(labels->name, sizeof(labels->name), context->name);
	if (context->has_unit_type)
		labels->type = context->unit_type;
	if (context->max_depth && context->max_depth < sampling->options.max_depth)
		labels->max_depth = context->max_depth;
	/* What begin() was not asked to sample leaves nothing behind. */
	labels->sampled = context->sampled;
	if (!context->sampled || !context->profile)
		discard(unit);
}

void open_unit_cap(
	struct open_unit *unit, uint64_t now_ns, const struct activity_clocks *clocks, uint64_t auto_max_ns)
{
	if (!unit->collecting || !unit->automatic || unit->adopted || now_ns - unit->begin_ns <= auto_max_ns)
		return;
	unit->collecting = false;
	unit->labels.capped = true;
	ledger_close(&unit->ledger, now_ns, clocks);
}

static void note_counters(struct open_unit *unit, const struct counters *counters)
{
	struct counters *since = &unit->labels.counters;

	*since = *counters;
	since->gc_runs -= unit->gc_runs < since->gc_runs ? unit->gc_runs : since->gc_runs;
	since->gc_collected -=
		unit->gc_collected < since->gc_collected ? unit->gc_collected : since->gc_collected;
}

int open_unit_end(struct open_unit *unit, struct sampling *sampling, uint64_t end_ns,
	const struct activity_clocks *clocks, const struct counters *counters,
	struct unit_result **ret_result)
{
	struct unit_result *labels = &unit->labels;
	struct unit_result *result = NULL;
	struct weighed_times times;
	uint64_t watched_ns;
	int r = 0;

	labels->end_ns = end_ns;
	labels->duration_ns = end_ns > unit->begin_ns ? end_ns - unit->begin_ns : 0;
	/* Capped, or suspended. */
	if (!unit->ledger.open)
		ledger_skip(&unit->ledger, end_ns, clocks);
	times = ledger_times(&unit->ledger, end_ns, clocks);
	watched_ns = times.cpu_ns + times.queue_ns + times.off_ns + times.unseen_ns;
	/* What came before it was attached. */
	if (labels->duration_ns > watched_ns)
		times.unseen_ns += labels->duration_ns - watched_ns;
	labels->frame_overflows = frame_table_overflows(sampling->frames) - unit->frame_overflows;
	labels->cpu_ns = times.cpu_ns + times.unseen_cpu_ns;
	labels->queue_ns = times.queue_ns + times.unseen_queue_ns;
	if (counters)
		note_counters(unit, counters);
	labels->tree_peak_bytes = calltree_bytes(unit->tree);
	labels->node_count = calltree_count(unit->tree) - 1;
	if (labels->profiling) {
		r = ledger_take_tree(&unit->ledger, &times, sampling->frames, &labels->tree);
		labels->has_tree = r == 0;
	}
	if (r == 0) {
		result = unit_result_new(labels);
		if (!result)
			weighed_tree_deinit(&labels->tree);
		r = result ? 0 : -ENOMEM;
	}
	open_unit_drop(unit, sampling);
	if (r < 0)
		return r;
	sampling->units_finished_total++;
	*ret_result = result;
	return 0;
}

void open_unit_drop(struct open_unit *unit, struct sampling *sampling)
{
	sampling_give_tree(sampling, unit->tree);
	*unit = (struct open_unit){0};
}
