/* SPDX-License-Identifier: MIT
 *
 * What one step may do is counted in the nodes that could be copied in the same time, some 25 ns each; so a
 * step takes some 50 us, whatever the order and however many targets and nodes there are. It is made only if
 * the next deadline is well beyond that. Rounds take turns, so that a short one does not wait for a long one,
 * and rest three times as long as they work: however many people ask, it is a quarter of one CPU at the most.
 * A sampler that has no time between ticks at all makes a step now and then in spite of it, lest nobody be
 * told why.
 *
 * With several samplers each goes round its own targets, and then sends the order on to the next.
 */
#include "daemon/sampling/rounds.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/sampling/control.h"
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
	uint64_t before;                  /* UNITS: retention_walk() */
	size_t most_units;                /* UNITS: that the order may have when this sampler is done */
	struct window *copy;              /* PROFILE: of the next target, begun */
	TAILQ_ENTRY(round) rounds;
};

void rounds_init(struct rounds *rounds)
{
	TAILQ_INIT(&rounds->list);
}

/* ---- beginning ---- */

static bool is_target_asked_for(const struct order *order, const struct target *target)
{
	return order_asks_for(order, target->identity.pid, target->identity.uid, target->identity.pool);
}

/* What all samplers add to. False: no memory. */
static bool prepare_sum(struct sampler *sampler, struct order *order)
{
	if (order->verb == ORDER_PROFILE)
		return bookkeeper_open(sampler->bookkeeper, order, &sampler->sampling.options) == 0;
	if (order->verb == ORDER_METRICS) {
		order->metrics = calloc(1, sizeof(*order->metrics));
		return order->metrics;
	}
	if (order->verb == ORDER_UNITS && order->limit > RETENTION_MAX_UNITS)
		order->limit = RETENTION_MAX_UNITS;
	return true;
}

/* What this sampler adds. False: no memory. */
static bool prepare_part(struct sampler *sampler, struct order *order)
{
	struct target_report *targets;
	struct unit_result **units;

	if (order->verb == ORDER_TARGETS) {
		targets = realloc(
			order->targets, (order->target_count + sampler->target_count + 1) * sizeof(*targets));
		order->targets = targets ? targets : order->targets;
		return targets;
	}
	if (order->verb == ORDER_UNITS) {
		units = realloc(
			order->units, (order->unit_count + order->limit + 1) * sizeof(struct unit_result *));
		order->units = units ? units : order->units;
		return units;
	}
	if (order->verb == ORDER_METRICS)
		sampler_add_metrics(sampler, order->metrics);
	return true;
}

/* False: order->error says why not. */
static bool prepare(struct sampler *sampler, struct order *order)
{
	if (control_is_meant(order) && !control_begin(sampler, order))
		return false;
	if ((order->has_begun || prepare_sum(sampler, order)) && prepare_part(sampler, order))
		return true;
	order->error = ORDER_E_NO_MEMORY;
	return false;
}

void rounds_begin(struct sampler *sampler, struct order *order)
{
	struct round *round;

	if (control_is_meant(order) && !control_consult(sampler, order))
		return;
	round = calloc(1, sizeof(*round));
	if (!round)
		order->error = ORDER_E_NO_MEMORY;
	if (!round || !prepare(sampler, order)) {
		free(round);
		sampler_send_on(sampler, order);
		return;
	}
	order->has_begun = true;
	round->order = order;
	round->before = UINT64_MAX;
	round->most_units = order->unit_count + order->limit;
	round->end_serial = sampler->last_serial;
	TAILQ_INSERT_TAIL(&sampler->rounds.list, round, rounds);
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
	order->has_found = true;
	if (order->verb == ORDER_PROFILE)
		return copy_window(sampler, round, target, most, ret_done);
	if (order->verb != ORDER_TARGETS)
		return do_to_target(sampler, order, target);
	target_report(target, &sampler->sampling, monotonic_now_ns(), &order->targets[order->target_count++]);
	return REPORTING;
}

/* Some targets further. True: that was the last one. */
static bool step_through_targets(struct sampler *sampler, struct round *round)
{
	int left = STEP_NODES;

	if (control_is_overtaken(sampler, round->order))
		return true;
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
		if (order->unit_count == round->most_units)
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

	TAILQ_REMOVE(&sampler->rounds.list, round, rounds);
	if (sampler->rounds.control == round)
		sampler->rounds.control = NULL;
	if (round->copy)
		window_free(round->copy);
	free(round);
	/* The bookkeeper may know a pool that has no targets any more. */
	if ((order->verb == ORDER_PROFILE || order->verb == ORDER_RESET) && !order->has_found &&
		(order->pid || order->pool[0]))
		control_name_pools(sampler, order);
	sampler_send_on(sampler, order);
}

static bool must_wait(const struct sampler *sampler, const struct round *round, bool is_bookkeeper_behind)
{
	const struct round *control = sampler->rounds.control;

	if (control && control != round && control_is_meant(round->order))
		return true;
	return is_bookkeeper_behind && round->order->verb == ORDER_PROFILE;
}

/* The next one that need not wait for the bookkeeper, or for the control order before it. */
static struct round *choose(const struct sampler *sampler)
{
	bool is_behind = bookkeeper_is_behind(sampler->bookkeeper);
	struct round *round;

	TAILQ_FOREACH(round, &sampler->rounds.list, rounds)
	if (!must_wait(sampler, round, is_behind))
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
	if (control_is_meant(round->order))
		sampler->rounds.control = round;
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

bool rounds_are_under_way(const struct sampler *sampler)
{
	return !TAILQ_EMPTY(&sampler->rounds.list);
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
