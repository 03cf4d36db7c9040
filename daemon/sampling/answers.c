/* SPDX-License-Identifier: MIT
 *
 * What a sampler answers to an order about one process or one unit, which takes a moment. Others go on a
 * round. And where an order goes from here: what may concern all samplers passes them in turn, each adds its
 * part, and none waits for another.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "reader/activity.h"
#include "reader/remote.h"
#include "daemon/sampling/sampler.h"

static void reply(struct order *order)
{
	mailbox_post(order->reply_to, &order->message);
}

/* A pid that is not known may be a worker no scan has seen yet: the scout looks, and sends the order back. */
static void pass_to_scout(struct sampler *sampler, struct order *order)
{
	if (order->looked_for) {
		order->error = ORDER_E_NOT_A_TARGET;
		reply(order);
		return;
	}
	mailbox_post(sampler->scout, &order->message);
}

static void finish(struct sampler *sampler, struct order *order)
{
	struct target *target = sampler_find(sampler, order->pid);
	struct unit_result *unit = NULL;

	if (!target || target->identity.uid != order->uid) {
		pass_to_scout(sampler, order);
		return;
	}
	order->error = target_finish(target, &sampler->sampling,
		&(struct finish_call){
			.handle = order->handle,
			.context = order->has_context ? &order->context : NULL,
			.asked_ns = order->asked_ns,
		},
		&unit);
	if (order->error == ORDER_OK) {
		sampling_retain(&sampler->sampling, unit, monotonic_now_ns());
		order->unit = unit;
	} else if (order->error == ORDER_E_NO_UNIT && order->handle) {
		unit = retention_find_handle(
			sampler->sampling.retention, order->pid, order->uid, order->handle);
		if (unit) {
			order->unit = unit_result_ref(unit);
			order->error = ORDER_OK;
		}
	}
	reply(order);
}

static void answer_worker(struct sampler *sampler, struct order *order)
{
	const struct target *target = sampler_find(sampler, order->pid);

	if (!target || !order_asks_for(order, order->pid, target->identity.uid, target->identity.pool)) {
		pass_to_scout(sampler, order);
		return;
	}
	order->targets = calloc(1, sizeof(*order->targets));
	if (order->targets) {
		target_report(target, &sampler->sampling, monotonic_now_ns(), order->targets);
		order->target_count = 1;
	} else {
		order->error = ORDER_E_NO_MEMORY;
	}
	reply(order);
}

static void answer_retained(struct sampler *sampler, struct order *order)
{
	struct unit_result *unit =
		retention_find(sampler->sampling.retention, order->unit_id, order->trace_id, order->uid);

	/* Others may have one of the same trace. */
	if (unit && (!order->unit || unit->end_ns > order->unit->end_ns)) {
		if (order->unit)
			unit_result_free(order->unit);
		order->unit = unit_result_ref(unit);
	}
	if (!order->unit && !sampler->next)
		order->error = ORDER_E_NOT_FOUND;
}

static uint64_t resident_bytes(void)
{
	_cleanup_close_ int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128] = "", *end;
	ssize_t bytes = read(statm, text, sizeof(text) - 1);

	/* the size, and what of it is resident, in pages */
	if (bytes <= 0)
		return 0;
	strtoull(text, &end, 10);
	return strtoull(end, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* What is the same whichever sampler is asked. */
static struct metrics metrics_of_program(const struct sampler *sampler)
{
	return (struct metrics){
		.uptime_ns = monotonic_now_ns() - sampler->started_ns,
		.targets_refused_total = refusals_total(sampler->refusals),
		.tree_bytes = bookkeeper_tree_bytes(sampler->bookkeeper),
		.rss_bytes = resident_bytes(),
		.realtime = true,
	};
}

void sampler_add_metrics(const struct sampler *sampler, struct metrics *metrics)
{
	const struct sampling *sampling = &sampler->sampling;
	struct sampler_metrics *own;

	if (metrics->sampler_count == 0)
		*metrics = metrics_of_program(sampler);
	own = &metrics->samplers[metrics->sampler_count++];
	*own = (struct sampler_metrics){
		.targets = sampler->target_count,
		.ticks_total = sampler->ticks,
		.cpu_ns = thread_cpu_ns(),
		.expected = sampling->accounting.expected,
		.missed = sampling->accounting.missed,
		.late = sampling->accounting.late,
		.stretch_ppm = sampling->budget.stretch_ppm,
	};
	metrics->targets += own->targets;
	metrics->ticks_total += own->ticks_total;
	metrics->sampler_cpu_ns += own->cpu_ns;
	metrics->cpu_budget_ppm += sampling->budget.limit_ppm;
	metrics->cpu_share_ppm += sampling->budget.share_ppm;
	metrics->cpu_demand_ppm += sampling->budget.demand_ppm;
	if (own->stretch_ppm > metrics->stretch_ppm)
		metrics->stretch_ppm = own->stretch_ppm;
	metrics->targets_attached_total += sampler->targets_attached_total;
	metrics->units_finished_total += sampling->units_finished_total;
	metrics->units_retained += retention_count(sampling->retention);
	metrics->process_vm_readv_total += remote_read_calls();
	metrics->proc_reads_total += activity_reads();
	metrics->frames += frame_table_count(sampling->frames);
	metrics->frame_bytes += frame_table_bytes(sampling->frames);
	metrics->frame_overflow_total += frame_table_overflows(sampling->frames);
	metrics->realtime &= sampler->realtime;
	accounting_add(&metrics->accounting, &sampling->accounting);
}

/* Has the bookkeeper something to add, or to be told? */
static bool concerns_bookkeeper(const struct order *order)
{
	return order->verb == ORDER_RESET ||
	       (order->has_begun && (order->verb == ORDER_PROFILE || order->verb == ORDER_UNITS));
}

void sampler_send_on(struct sampler *sampler, struct order *order)
{
	if (order->error == ORDER_OK && sampler->next)
		mailbox_post(sampler->next, &order->message);
	else if (concerns_bookkeeper(order))
		bookkeeper_close(sampler->bookkeeper, order);
	else
		reply(order);
}

void sampler_answer(struct sampler *sampler, struct order *order)
{
	switch (order->verb) {
	case ORDER_FINISH:
		finish(sampler, order);
		return;
	case ORDER_WORKER:
		answer_worker(sampler, order);
		return;
	case ORDER_METRICS:
	case ORDER_TARGETS:
	case ORDER_PROFILE:
	case ORDER_UNITS:
	case ORDER_RESET:
	case ORDER_SUSPEND:
	case ORDER_RESUME:
	case ORDER_RATE:
		rounds_begin(sampler, order);
		return;
	case ORDER_UNIT:
		answer_retained(sampler, order);
		break;
	case ORDER_ATTACH:
	case ORDER_DETACH:
		/* The scout's, on their way back: they come behind the targets they brought or took. */
		break;
	}
	sampler_send_on(sampler, order);
}
