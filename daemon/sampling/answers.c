/* SPDX-License-Identifier: MIT
 *
 * What the sampler answers to an order about one process or one unit, which takes a moment. Others go on a
 * round.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "reader/activity.h"
#include "reader/remote.h"
#include "daemon/sampling/sampler.h"

/* A pid that is not known may be a worker no scan has seen yet: the scout looks, and sends the order back. */
static bool pass_on(struct sampler *sampler, struct order *order)
{
	if (order->looked_for) {
		order->error = ORDER_E_NOT_A_TARGET;
		return true;
	}
	mailbox_post(sampler->scout, &order->message);
	return false;
}

static bool finish(struct sampler *sampler, struct order *order)
{
	struct target *target = sampler_find(sampler, order->pid);
	struct unit_result *unit = NULL;

	if (!target || target->identity.uid != order->uid)
		return pass_on(sampler, order);
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
	return true;
}

static bool answer_worker(struct sampler *sampler, struct order *order)
{
	const struct target *target = sampler_find(sampler, order->pid);

	if (!target || !order_asks_for(order, order->pid, target->identity.uid, target->identity.pool))
		return pass_on(sampler, order);
	order->targets = calloc(1, sizeof(*order->targets));
	if (!order->targets) {
		order->error = ORDER_E_NO_MEMORY;
		return true;
	}
	target_report(target, monotonic_now_ns(), order->targets);
	order->target_count = 1;
	return true;
}

static void answer_retained(struct sampler *sampler, struct order *order)
{
	struct unit_result *unit =
		retention_find(sampler->sampling.retention, order->unit_id, order->trace_id, order->uid);

	if (unit)
		order->unit = unit_result_ref(unit);
	else
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

static uint64_t thread_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

struct metrics *sampler_metrics(const struct sampler *sampler)
{
	const struct sampling *sampling = &sampler->sampling;
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (!metrics)
		return NULL;
	*metrics = (struct metrics){
		.uptime_ns = monotonic_now_ns() - sampler->started_ns,
		.targets = sampler->target_count,
		.targets_attached_total = sampler->targets_attached_total,
		.targets_refused_total = refusals_total(sampler->refusals),
		.units_finished_total = sampling->units_finished_total,
		.units_retained = retention_count(sampling->retention),
		.ticks_total = sampler->ticks,
		.sampler_cpu_ns = thread_cpu_ns(),
		.process_vm_readv_total = remote_read_calls(),
		.proc_reads_total = activity_reads(),
		.frames = frame_table_count(sampling->frames),
		.frame_bytes = frame_table_bytes(sampling->frames),
		.frame_overflow_total = frame_table_overflows(sampling->frames),
		.tree_bytes = bookkeeper_tree_bytes(sampler->bookkeeper),
		.rss_bytes = resident_bytes(),
		.realtime = sampler->realtime,
		.accounting = sampling->accounting,
	};
	return metrics;
}

bool sampler_answer(struct sampler *sampler, struct order *order)
{
	switch (order->verb) {
	case ORDER_FINISH:
		return finish(sampler, order);
	case ORDER_WORKER:
		return answer_worker(sampler, order);
	case ORDER_UNIT:
		answer_retained(sampler, order);
		break;
	case ORDER_METRICS:
	case ORDER_TARGETS:
	case ORDER_PROFILE:
	case ORDER_UNITS:
	case ORDER_RESET:
	case ORDER_SUSPEND:
	case ORDER_RESUME:
	case ORDER_RATE:
		return !rounds_begin(sampler, order);
	case ORDER_ATTACH:
	case ORDER_DETACH:
		/* The scout's; they pass here on their way back, behind the targets they brought or took. */
		break;
	}
	return true;
}
