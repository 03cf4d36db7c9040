/* SPDX-License-Identifier: MIT
 *
 * What one step may do is counted in the nodes that could be copied in the same time, some 25 ns each; so a
 * step takes some 50 us, whatever the order and however many targets and nodes there are. It is made only if
 * the next deadline is well beyond that. Rounds take turns, so that a short one does not wait for a long one,
 * and rest three times as long as they work: however many people ask, it is a quarter of one CPU at the most.
 * A sampler that has no time between ticks at all makes a step now and then in spite of it, lest nobody be
 * told why.
 */
#include "daemon/sampling/rounds.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/sampling/pool_names.h"
#include "daemon/sampling/sampler.h"

#define STEP_NODES 2048
/* Costs, in nodes. */
#define SKIPPING 2
#define REPORTING 64
#define RESETTING 256
#define LOOKING 512 /* at a process */
#define COPYING 16  /* and the nodes */
#define COUNTING 8
#define CHECKING_A_UNIT 8

#define STEP_NS 150000ull /* a deadline nearer than this is waited for */
#define LONGEST_REST_NS 1000000ull
#define LONGEST_PATIENCE_NS 20000000ull /* without time for a step */

struct round {
	struct order *order;
	uint64_t last_serial, end_serial; /* of the target visited last, and of the last one there is */
	bool found;                       /* there are such targets */
	uint64_t before;                  /* UNITS: retention_walk() */
	struct window *copy;              /* PROFILE: of the next target, begun */
	TAILQ_ENTRY(round) rounds;
};

void rounds_init(struct rounds *rounds)
{
	TAILQ_INIT(&rounds->list);
}

/* ---- beginning ---- */

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

static bool is_target_asked_for(const struct order *order, const struct target *target)
{
	return order_asks_for(order, target->identity.pid, target->identity.uid, target->identity.pool);
}

/* For who may have asked for a pool that isn't there. Without memory it is only told that it isn't. */
static void name_pools(const struct sampler *sampler, struct order *order)
{
	order->pools = calloc(1, sizeof(*order->pools));
	if (!order->pools)
		return;
	for (size_t i = 0; i < sampler->target_count; i++) {
		const struct discovered *identity = &sampler->targets[i]->identity;

		if (order->uid == ORDER_ANY_UID || order->uid == identity->uid)
			pool_names_add(order->pools, identity->pool);
	}
}

static bool is_any_asked_for(const struct sampler *sampler, const struct order *order)
{
	for (size_t i = 0; i < sampler->target_count; i++)
		if (is_target_asked_for(order, sampler->targets[i]))
			return true;
	return false;
}

/* RATE, SUSPEND, RESUME */
static bool prepare_control(struct sampler *sampler, struct order *order)
{
	if (order->verb == ORDER_RATE && !is_rate_allowed(&sampler->sampling.options, order))
		return false;
	if ((order->pid || order->pool[0]) && !is_any_asked_for(sampler, order)) {
		name_pools(sampler, order);
		pool_names_refuse(order->pools, order);
		return false;
	}
	return order->pid || let_stand(sampler, order);
}

static bool has_memory(struct order *order, const void *memory)
{
	if (!memory)
		order->error = ORDER_E_NO_MEMORY;
	return memory;
}

/* False: order->error says why not. */
static bool prepare(struct sampler *sampler, struct order *order)
{
	switch (order->verb) {
	case ORDER_PROFILE:
		if (bookkeeper_open(sampler->bookkeeper, order, &sampler->sampling.options) == 0)
			return true;
		order->error = ORDER_E_NO_MEMORY;
		return false;
	case ORDER_TARGETS:
		order->targets = calloc(sampler->target_count + 1, sizeof(*order->targets));
		return has_memory(order, order->targets);
	case ORDER_UNITS:
		if (order->limit > RETENTION_MAX_UNITS)
			order->limit = RETENTION_MAX_UNITS;
		order->units = calloc(order->limit + 1, sizeof(struct unit_result *));
		return has_memory(order, order->units);
	case ORDER_RATE:
	case ORDER_SUSPEND:
	case ORDER_RESUME:
		return prepare_control(sampler, order);
	case ORDER_METRICS:
		order->metrics = sampler_metrics(sampler);
		return has_memory(order, order->metrics);
	case ORDER_FINISH:
	case ORDER_WORKER:
	case ORDER_UNIT:
	case ORDER_RESET:
	case ORDER_ATTACH:
	case ORDER_DETACH:
		break;
	}
	return true;
}

bool rounds_begin(struct sampler *sampler, struct order *order)
{
	struct round *round = calloc(1, sizeof(*round));

	if (!has_memory(order, round) || !prepare(sampler, order)) {
		free(round);
		return false;
	}
	round->order = order;
	round->before = UINT64_MAX;
	round->end_serial = sampler->last_serial;
	TAILQ_INSERT_TAIL(&sampler->rounds.list, round, rounds);
	return true;
}

/* ---- steps ---- */

/* The first target whose serial is above @serial. */
static size_t place_after(const struct sampler *sampler, uint64_t serial)
{
	size_t low = 0, high = sampler->target_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sampler->targets[middle]->serial > serial)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Up to @most nodes of it. Returns the cost, and whether @target is done with. */
static int copy_window(
	struct sampler *sampler, struct round *round, const struct target *target, int most, bool *ret_done)
{
	struct sampling *sampling = &sampler->sampling;
	uint32_t copied = 0;
	int r = -ENOMEM;

	if (!round->copy)
		round->copy = window_new(target, sampling, round->order);
	if (round->copy)
		r = window_copy(round->copy, target, sampling, (uint32_t)most, &copied);
	*ret_done = r != 0;
	if (r < 0)
		round->order->error = ORDER_E_NO_MEMORY;
	if (r > 0)
		bookkeeper_add(sampler->bookkeeper, TAKE(round->copy));
	return COPYING + (int)copied;
}

static int do_to_target(struct sampler *sampler, struct order *order, struct target *target)
{
	uint64_t now_ns = monotonic_now_ns();

	order->affected++;
	if (order->verb == ORDER_RESET)
		target_reset(target, now_ns);
	else if (order->verb == ORDER_SUSPEND)
		target_suspend(target);
	else if (order->verb == ORDER_RESUME)
		target_resume(target, &sampler->sampling);
	else
		target_set_rate(target, order->period_ns);
	sampler_follow_period(sampler, target, now_ns);
	return order->verb == ORDER_RESET ? RESETTING : LOOKING;
}

static int count_bytes(struct metrics *metrics, const struct target *target)
{
	metrics->tree_bytes += calltree_bytes(target->window.tree);
	if (target->unit.open)
		metrics->tree_bytes += calltree_bytes(target->unit.tree);
	return COUNTING;
}

/* At a cost of @most, if that can be helped. */
static int visit(
	struct sampler *sampler, struct round *round, struct target *target, int most, bool *ret_done)
{
	struct order *order = round->order;

	*ret_done = true;
	if (order->verb == ORDER_METRICS) /* of all, whoever asks */
		return count_bytes(order->metrics, target);
	if (!is_target_asked_for(order, target))
		return SKIPPING;
	round->found = true;
	if (order->verb == ORDER_PROFILE)
		return copy_window(sampler, round, target, most, ret_done);
	if (order->verb != ORDER_TARGETS)
		return do_to_target(sampler, order, target);
	target_report(target, monotonic_now_ns(), &order->targets[order->target_count++]);
	return REPORTING;
}

/* Some targets further. True: that was the last one. */
static bool step_through_targets(struct sampler *sampler, struct round *round)
{
	int left = STEP_NODES;

	for (size_t i = place_after(sampler, round->last_serial); i < sampler->target_count; i++) {
		struct target *target = sampler->targets[i];
		bool done;

		if (target->serial > round->end_serial)
			break;
		if (left <= 0)
			return false;
		left -= visit(sampler, round, target, left, &done);
		if (!done)
			return false;
		round->last_serial = target->serial;
		if (round->order->error != ORDER_OK)
			break;
	}
	return true;
}

/* Some units back. True: that was all. */
static bool step_through_units(struct sampler *sampler, struct round *round)
{
	struct order *order = round->order;
	struct unit_result *unit;

	for (int left = STEP_NODES; left > 0; left -= CHECKING_A_UNIT) {
		if (order->unit_count == order->limit)
			return true;
		unit = retention_walk(sampler->sampling.retention, &round->before);
		if (!unit)
			return true;
		if (order_asks_for(order, unit->pid, unit->uid, unit->pool))
			order->units[order->unit_count++] = unit_result_ref(unit);
	}
	return false;
}

static void end(struct sampler *sampler, struct round *round)
{
	struct order *order = round->order;
	bool found_none = !round->found && (order->pid || order->pool[0]);

	TAILQ_REMOVE(&sampler->rounds.list, round, rounds);
	if (round->copy)
		window_free(round->copy);
	free(round);
	/* The bookkeeper has its part of these, and may know a pool that has no targets any more. */
	if (order->verb == ORDER_PROFILE || order->verb == ORDER_RESET) {
		if (found_none)
			name_pools(sampler, order);
		bookkeeper_close(sampler->bookkeeper, order);
	} else {
		mailbox_post(order->reply_to, &order->message);
	}
}

/* The next one that need not wait for the bookkeeper. */
static struct round *choose(const struct sampler *sampler)
{
	bool is_behind = bookkeeper_is_behind(sampler->bookkeeper);
	struct round *round;

	TAILQ_FOREACH(round, &sampler->rounds.list, rounds)
	if (!is_behind || round->order->verb != ORDER_PROFILE)
		return round;
	return NULL;
}

/* False: all have to wait. */
static bool step(struct sampler *sampler)
{
	struct round *round = choose(sampler);
	bool is_over;

	if (!round)
		return false;
	is_over = round->order->verb == ORDER_UNITS ? step_through_units(sampler, round)
						    : step_through_targets(sampler, round);
	if (is_over) {
		end(sampler, round);
		return true;
	}
	TAILQ_REMOVE(&sampler->rounds.list, round, rounds);
	TAILQ_INSERT_TAIL(&sampler->rounds.list, round, rounds);
	return true;
}

uint64_t rounds_due_ns(const struct sampler *sampler)
{
	uint64_t now_ns, due_ns, deadline_ns = cadences_deadline_ns(&sampler->cadences);

	if (TAILQ_EMPTY(&sampler->rounds.list))
		return 0;
	now_ns = monotonic_now_ns();
	due_ns = now_ns > sampler->rounds.resume_ns ? now_ns : sampler->rounds.resume_ns;
	return !deadline_ns || due_ns + STEP_NS < deadline_ns ? due_ns : 0;
}

void rounds_turn(struct sampler *sampler, bool ticked)
{
	struct rounds *rounds = &sampler->rounds;
	uint64_t now_ns, rest_ns = LONGEST_REST_NS;

	if (TAILQ_EMPTY(&rounds->list))
		return;
	now_ns = monotonic_now_ns();
	if (now_ns < rounds->resume_ns)
		return;
	if (!sampler_has_time(sampler, STEP_NS) &&
		!(ticked && now_ns - rounds->stepped_ns > LONGEST_PATIENCE_NS))
		return;
	rounds->stepped_ns = now_ns;
	if (step(sampler))
		rest_ns = 3 * (monotonic_now_ns() - now_ns);
	rounds->resume_ns = monotonic_now_ns() + (rest_ns < LONGEST_REST_NS ? rest_ns : LONGEST_REST_NS);
}

void rounds_follow_tick(struct sampler *sampler)
{
	for (struct round *round = TAILQ_FIRST(&sampler->rounds.list); round;
		round = TAILQ_NEXT(round, rounds)) {
		struct window *copy = round->copy;

		if (copy)
			window_follow(copy, sampler->targets[place_after(sampler, copy->serial - 1)]);
	}
}

void rounds_forget(struct sampler *sampler, const struct target *target)
{
	struct round *round;

	TAILQ_FOREACH(round, &sampler->rounds.list, rounds)
	if (round->copy && round->copy->serial == target->serial)
		window_free(TAKE(round->copy));
}

void rounds_end(struct sampler *sampler)
{
	struct round *round;

	while ((round = TAILQ_FIRST(&sampler->rounds.list))) {
		round->order->error = ORDER_E_STOPPING;
		end(sampler, round);
	}
}
