/* SPDX-License-Identifier: MIT
 *
 * What the sampler answers to each order. Runs on the sampler thread, between ticks: answers are made by
 * copying and adding up, never by waiting.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "reader/activity.h"
#include "reader/remote.h"
#include "daemon/sampling/sampler.h"

static bool is_asked_for(const struct order *order, pid_t pid, uid_t uid, const char *pool)
{
	return (!order->pid || order->pid == pid) && (order->uid == ORDER_ANY_UID || order->uid == uid) &&
	       (!order->pool[0] || strcmp(order->pool, pool) == 0);
}

static bool is_target_asked_for(const struct order *order, const struct target *target)
{
	return is_asked_for(order, target->identity.pid, target->identity.uid, target->identity.pool);
}

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

static void answer_targets(struct sampler *sampler, struct order *order)
{
	uint64_t now_ns = monotonic_now_ns();

	order->targets = calloc(sampler->target_count + 1, sizeof(*order->targets));
	if (!order->targets) {
		order->error = ORDER_E_NO_MEMORY;
		return;
	}
	for (size_t i = 0; i < sampler->target_count; i++)
		if (is_target_asked_for(order, sampler->targets[i]))
			target_report(sampler->targets[i], now_ns, &order->targets[order->target_count++]);
}

static bool answer_worker(struct sampler *sampler, struct order *order)
{
	const struct target *target = sampler_find(sampler, order->pid);

	if (!target || !is_target_asked_for(order, target))
		return pass_on(sampler, order);
	answer_targets(sampler, order);
	return true;
}

/* The pools that there are, as the asker may see them, each once. */
struct pool_names {
	const char *items[32]; /* more would not fit into an order's answer */
	size_t count;
};

static void add_pool(struct pool_names *names, const char *pool)
{
	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->items[i], pool) == 0)
			return;
	if (names->count < sizeof(names->items) / sizeof(names->items[0]))
		names->items[names->count++] = pool;
}

static struct pool_names pool_names(const struct sampler *sampler, uid_t uid)
{
	struct pool_names names = {.count = 0};

	for (size_t i = 0; i < sampler->target_count; i++)
		if (uid == ORDER_ANY_UID || uid == sampler->targets[i]->identity.uid)
			add_pool(&names, sampler->targets[i]->identity.pool);
	for (size_t i = 0; i < sampler->departed.count; i++)
		if (uid == ORDER_ANY_UID || uid == sampler->departed.groups[i].uid)
			add_pool(&names, sampler->departed.groups[i].pool);
	return names;
}

/* The process or the pool that was asked for is not there: which, and what there is. */
static void refuse_as_not_found(const struct sampler *sampler, struct order *order)
{
	struct pool_names names = pool_names(sampler, order->uid);
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
	if (names.count == 0)
		snprintf(order->why + length, sizeof(order->why) - (size_t)length,
			"nothing is sampled at present");
	for (size_t i = 0; i < names.count && (size_t)length < sizeof(order->why); i++)
		length += snprintf(order->why + length, sizeof(order->why) - (size_t)length, "%s%s",
			i == 0 ? "there are: " : ", ", names.items[i]);
}

static enum order_error note_overflow(struct accounting *accounting, int without_room)
{
	if (without_room < 0)
		return ORDER_E_NO_MEMORY;
	accounting->node_overflow += (unsigned)without_room;
	return ORDER_OK;
}

/* All windows asked for, as one tree and one profile. */
static void answer_profile(struct sampler *sampler, struct order *order)
{
	struct sampling *sampling = &sampler->sampling;
	struct calltree *sum = sampling_take_tree(sampling);
	struct accounting accounting = {0};
	uint64_t now_ns = monotonic_now_ns(), begin_ns = now_ns, period_ns = 0;
	bool any = false;

	if (!sum) {
		order->error = ORDER_E_NO_MEMORY;
		return;
	}
	for (size_t i = 0; order->error == ORDER_OK && i < sampler->target_count; i++) {
		const struct target *target = sampler->targets[i];

		if (!is_target_asked_for(order, target))
			continue;
		any = true;
		order->error = note_overflow(&accounting, target_add_window_to(target, sum));
		accounting_add(&accounting, &target->window_accounting);
		/* Where periods differ there is no one period to name but the finest. */
		if (!period_ns || target->base_period_ns < period_ns)
			period_ns = target->base_period_ns;
		if (target->window_begin_ns < begin_ns)
			begin_ns = target->window_begin_ns;
	}
	for (size_t i = 0; order->error == ORDER_OK && i < sampler->departed.count; i++) {
		const struct departed_group *group = &sampler->departed.groups[i];

		if (order->pid || !is_asked_for(order, 0, group->uid, group->pool))
			continue;
		any = true;
		order->error = note_overflow(&accounting, calltree_add(sum, group->tree));
		accounting_add(&accounting, &group->accounting);
		if (group->begin_ns < begin_ns)
			begin_ns = group->begin_ns;
	}
	if (order->error == ORDER_OK && !any && (order->pid || order->pool[0]))
		refuse_as_not_found(sampler, order);
	if (order->error == ORDER_OK && profile_from_calltree(sum, sampling->frames, &order->profile) < 0)
		order->error = ORDER_E_NO_MEMORY;
	if (order->profile) {
		order->profile->accounting = accounting;
		order->profile->period_ns = period_ns ? period_ns : sampling->options.period_ns;
		order->profile->duration_ns = now_ns - begin_ns;
	}
	sampling_give_tree(sampling, sum);
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

static void answer_units(struct sampler *sampler, struct order *order)
{
	struct retention *retention = sampler->sampling.retention;
	struct unit_result *unit;

	order->units = calloc(retention_count(retention) + 1, sizeof(struct unit_result *));
	if (!order->units) {
		order->error = ORDER_E_NO_MEMORY;
		return;
	}
	for (size_t i = 0; order->unit_count < order->limit && (unit = retention_nth(retention, i)); i++)
		if (is_asked_for(order, unit->pid, unit->uid, unit->pool))
			order->units[order->unit_count++] = unit_result_ref(unit);
}

static uint64_t resident_bytes(void)
{
	unsigned long long size, resident = 0;
	_cleanup_fclose_ FILE *statm = fopen("/proc/self/statm", "re");

	if (!statm || fscanf(statm, "%llu %llu", &size, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t thread_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static void answer_metrics(struct sampler *sampler, struct order *order)
{
	struct sampling *sampling = &sampler->sampling;
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (!metrics) {
		order->error = ORDER_E_NO_MEMORY;
		return;
	}
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
		.rss_bytes = resident_bytes(),
		.realtime = sampler->realtime,
		.accounting = sampling->accounting,
	};
	for (size_t i = 0; i < sampler->target_count; i++) {
		metrics->tree_bytes += calltree_bytes(sampler->targets[i]->window.tree);
		if (sampler->targets[i]->unit.open)
			metrics->tree_bytes += calltree_bytes(sampler->targets[i]->unit.tree);
	}
	for (size_t i = 0; i < sampler->departed.count; i++)
		metrics->tree_bytes += calltree_bytes(sampler->departed.groups[i].tree);
	order->metrics = metrics;
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
static void let_stand(struct sampler *sampler, struct order *order)
{
	struct standing *standing = &sampler->standing;
	int r = 0;

	if (order->verb == ORDER_RATE)
		r = standing_order_period(standing, order->pool, order->period_ns);
	else if (order->verb != ORDER_RESET)
		r = standing_order_suspension(standing, order->pool, order->verb == ORDER_SUSPEND);
	if (r == 0)
		return;
	order->error = ORDER_E_LIMIT;
	snprintf(order->why, sizeof(order->why),
		"%d pools have a rate or suspension of their own already; order it for all, which ends those",
		STANDING_MAX_POOLS);
}

static void do_to_target(struct sampler *sampler, const struct order *order, struct target *target)
{
	uint64_t now_ns = monotonic_now_ns();

	if (order->verb == ORDER_RESET)
		target_reset(target, now_ns);
	else if (order->verb == ORDER_SUSPEND)
		target_suspend(target);
	else if (order->verb == ORDER_RESUME)
		target_resume(target, &sampler->sampling);
	else
		target_set_rate(target, order->period_ns);
	sampler_follow_period(sampler, target, now_ns);
}

static size_t count_asked_for(const struct sampler *sampler, const struct order *order)
{
	size_t count = 0;

	for (size_t i = 0; i < sampler->target_count; i++)
		count += is_target_asked_for(order, sampler->targets[i]);
	return count;
}

/* RESET, SUSPEND, RESUME, RATE: does one thing to each target asked for. */
static void control(struct sampler *sampler, struct order *order)
{
	size_t count = count_asked_for(sampler, order), forgotten = 0;

	if (order->verb == ORDER_RATE && !is_rate_allowed(&sampler->sampling.options, order))
		return;
	if (order->verb == ORDER_RESET && !order->pid)
		forgotten = departed_reset(&sampler->departed, order->pool);
	if (!count && !forgotten && (order->pid || order->pool[0]))
		refuse_as_not_found(sampler, order);
	else if (!order->pid)
		let_stand(sampler, order);
	if (order->error != ORDER_OK)
		return;
	for (size_t i = 0; i < sampler->target_count; i++)
		if (is_target_asked_for(order, sampler->targets[i]))
			do_to_target(sampler, order, sampler->targets[i]);
	order->affected = count;
}

bool sampler_answer(struct sampler *sampler, struct order *order)
{
	switch (order->verb) {
	case ORDER_FINISH:
		return finish(sampler, order);
	case ORDER_WORKER:
		return answer_worker(sampler, order);
	case ORDER_TARGETS:
		answer_targets(sampler, order);
		break;
	case ORDER_PROFILE:
		answer_profile(sampler, order);
		break;
	case ORDER_UNIT:
		answer_retained(sampler, order);
		break;
	case ORDER_UNITS:
		answer_units(sampler, order);
		break;
	case ORDER_METRICS:
		answer_metrics(sampler, order);
		break;
	case ORDER_RESET:
	case ORDER_SUSPEND:
	case ORDER_RESUME:
	case ORDER_RATE:
		control(sampler, order);
		break;
	case ORDER_ATTACH:
	case ORDER_DETACH:
		/* The scout's; they pass here on their way back, behind the targets they brought or took. */
		break;
	}
	return true;
}
