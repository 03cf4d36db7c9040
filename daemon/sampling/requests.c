/* SPDX-License-Identifier: MIT
 *
 * Rules, in the order in which they bite:
 *
 *   - A request's first look opens an automatic unit that began when the request did
 * (SG(global_request_time)).
 *   - The first context seen within it adopts it: same unit, now with a name. Another context after that ends
 *     it (retained, for a late finish) and opens a new one.
 *   - finish ends the unit; none opens by itself for the rest of the request.
 *   - The request's end ends whatever is open. It is noticed at the next look; the unit ends where the
 * process stopped using the CPU after the last one.
 *
 * A context that disappears changes nothing: its client unsets it on the way to finish.
 */
#include "daemon/sampling/requests.h"

#include <string.h>

struct activity_clocks requests_clocks_at(
	const struct target *target, uint64_t then_ns, uint64_t now_ns, const struct activity_clocks *now)
{
	uint64_t since = clock_advance(now_ns, then_ns);
	uint64_t run = smaller_of(clock_advance(now->run_ns, target->clocks.run_ns), since);
	uint64_t queue = smaller_of(clock_advance(now->queue_ns, target->clocks.queue_ns), since - run);

	return (struct activity_clocks){
		.run_ns = now->run_ns - run,
		.queue_ns = now->queue_ns - queue,
		.switch_ins = now->switch_ins,
	};
}

/* A context's name is its handle, or, where nobody called begin(), its trace and span. */
static bool is_same_context(const struct trace_context *a, const struct trace_context *b)
{
	if (a->handle || b->handle)
		return a->handle == b->handle;
	return strcmp(a->trace_id, b->trace_id) == 0 && strcmp(a->span_id, b->span_id) == 0;
}

static struct unit_owner owner_of(const struct target *target)
{
	bool is_cli = strcmp(php_process_binary(target->process)->sapi, "cli") == 0;

	return (struct unit_owner){
		.pid = target->identity.pid,
		.uid = target->identity.uid,
		.pool = target->identity.pool,
		.period_ns = target->period_ns,
		.automatic_type = is_cli ? UNIT_COMMAND : UNIT_HTTP,
	};
}

static void note_gc_counts(struct target *target)
{
	struct counters counters;

	if (php_process_counters(target->process, &counters) == 0 && counters.has_gc) {
		target->unit.gc_runs = counters.gc_runs;
		target->unit.gc_collected = counters.gc_collected;
	}
}

static bool begin_unit(struct target *target, struct sampling *sampling, bool automatic, uint64_t begin_ns,
	const struct activity_clocks *clocks)
{
	struct unit_owner owner = owner_of(target);

	if (open_unit_begin(&target->unit, sampling, &owner, automatic, begin_ns, clocks) < 0)
		return false;
	/* PHP counts from 0 in each request, and so does the unit that begins with it, however late it is
	 * seen.
	 */
	if (!automatic)
		note_gc_counts(target);
	return true;
}

void requests_end_unit(struct target *target, struct sampling *sampling, uint64_t end_ns,
	const struct activity_clocks *clocks, const struct counters *counters)
{
	struct unit_result *result;

	if (!target->unit.open)
		return;
	if (open_unit_end(&target->unit, sampling, end_ns, clocks, counters, &result) < 0)
		return;
	sampling_retain(sampling, result, monotonic_now_ns());
	unit_result_free(result);
}

static void close_window(struct target *target, uint64_t end_ns, const struct activity_clocks *clocks)
{
	if (target->window.open)
		ledger_close(&target->window, end_ns, clocks);
}

static void open_window(struct target *target, uint64_t begin_ns, const struct activity_clocks *clocks)
{
	if (!target->window.open)
		ledger_open(&target->window, begin_ns, clocks);
}

static void leave_request(struct target *target, struct sampling *sampling, uint64_t end_ns,
	const struct activity_clocks *clocks)
{
	requests_end_unit(target, sampling, end_ns, clocks, NULL);
	target->period_ns = target->base_period_ns;
	target->finished = (struct finished_unit){.end_ns = target->finished.end_ns};
}

/* When the request in @request began, as CLOCK_MONOTONIC; between the last look and this one, unless this is
 * the first. */
static uint64_t request_begin_ns(const struct target *target, const struct request *request, uint64_t now_ns)
{
	uint64_t begin_ns = request->script_began_ns;

	if (!begin_ns && request->start_time_s > 0) {
		double age_ns = (double)realtime_now_ns() - request->start_time_s * 1e9;

		begin_ns = age_ns > 0 && age_ns < (double)now_ns ? now_ns - (uint64_t)age_ns : now_ns;
	}
	if (!begin_ns || begin_ns > now_ns)
		begin_ns = target->ticked ? target->last_ns : now_ns;
	return target->ticked && begin_ns < target->last_ns ? target->last_ns : begin_ns;
}

/* Is what request_begin_ns() says the moment itself, or surely not after it? SG(global_request_time) is
 * neither: PHP fills it when it is first asked for. */
static bool is_begin_known(const struct target *target, const struct request *request, uint64_t now_ns)
{
	return request->script_began_ns ? request->script_began_ns <= now_ns
					: target->ticked && request->start_time_s <= 0;
}

static void enter_request(struct target *target, struct sampling *sampling, const struct request *request,
	uint64_t now_ns, const struct activity_clocks *clocks)
{
	uint64_t begin_ns = request_begin_ns(target, request, now_ns);
	struct activity_clocks then = *clocks;

	if (target->ticked)
		then = requests_clocks_at(target, begin_ns, now_ns, clocks);
	leave_request(target, sampling, begin_ns, &then);
	target->requests_seen++;
	target->idle = false;
	target->request_since_ns = is_begin_known(target, request, now_ns) ? begin_ns : 0;
	/* A window holds only what was watched; a unit says how long it was before it was. */
	open_window(target, target->ticked ? begin_ns : now_ns, &then);
	if (begin_unit(target, sampling, true, begin_ns, &then) && !target->ticked)
		ledger_open(&target->unit.ledger, now_ns, clocks);
}

/* A handle is the time at which begin() was called. One that can't be is only a name. */
static uint64_t context_begin_ns(
	const struct target *target, const struct trace_context *context, uint64_t now_ns)
{
	uint64_t earliest = target->unit.open ? target->unit.begin_ns : target->ticked ? target->last_ns : 0;

	if (target->unit.open && target->last_ns > earliest)
		earliest = target->last_ns;
	return context->handle > earliest && context->handle <= now_ns ? context->handle : now_ns;
}

static void adopt(struct target *target, struct sampling *sampling, const struct trace_context *context,
	bool was_running)
{
	uint64_t asked_ns = (uint64_t)context->period_us * 1000;

	open_unit_adopt(&target->unit, sampling, context);
	/* A profile that runs already keeps its period when begin() adopts it, as consumers of the extension
	 * know it; who writes the global by hand gets what they ask for. */
	if (!asked_ns || (was_running && context->handle))
		return;
	if (asked_ns < sampling->options.min_period_ns)
		asked_ns = sampling->options.min_period_ns;
	if (asked_ns > sampling->options.max_period_ns)
		asked_ns = sampling->options.max_period_ns;
	target->period_ns = asked_ns;
	target->unit.labels.period_ns = sampling_period_ns(sampling, asked_ns);
	target->unit.labels.asked_period_ns = asked_ns;
}

/* Is this the context of the unit that was finished last, or of one that it took the place of? A client that
 * forgot to unset the global does not begin a unit with that. */
static bool is_stale(const struct target *target, const struct trace_context *context)
{
	const struct finished_unit *finished = &target->finished;

	if (!finished->is_in_this_request)
		return false;
	if (context->handle > finished->begin_ns && context->handle <= finished->end_ns)
		return true;
	return finished->was_adopted && is_same_context(&finished->context, context);
}

static void track_context(struct target *target, struct sampling *sampling,
	const struct trace_context *context, uint64_t now_ns, const struct activity_clocks *clocks)
{
	if (target->unit.open && !target->unit.adopted) {
		adopt(target, sampling, context, true);
		return;
	}
	if (target->unit.open ? is_same_context(&target->unit.context, context) : is_stale(target, context))
		return;

	uint64_t begin_ns = context_begin_ns(target, context, now_ns);
	struct activity_clocks then = requests_clocks_at(target, begin_ns, now_ns, clocks);

	requests_end_unit(target, sampling, begin_ns, &then, NULL);
	target->period_ns = target->base_period_ns;
	if (!begin_unit(target, sampling, false, begin_ns, &then))
		return;
	open_unit_set_request(&target->unit, &target->request, false);
	adopt(target, sampling, context, false);
}

static void note_invalid_context(struct target *target, struct sampling *sampling)
{
	target->accounting.context_invalid++;
	target->window_accounting.context_invalid++;
	sampling->accounting.context_invalid++;
	if (target->unit.open)
		target->unit.labels.accounting.context_invalid++;
}

void requests_track(struct target *target, struct sampling *sampling, const struct request *request,
	uint64_t now_ns, const struct activity_clocks *clocks)
{
	if (!request) {
		uint64_t used = clock_advance(clocks->run_ns, target->clocks.run_ns) +
				clock_advance(clocks->queue_ns, target->clocks.queue_ns);
		uint64_t end_ns = target->ticked ? smaller_of(target->last_ns + used, now_ns) : now_ns;

		leave_request(target, sampling, end_ns, clocks);
		close_window(target, end_ns, clocks);
		target->idle = true;
		target->request = (struct request){.generation = target->request.generation};
		return;
	}

	bool new_request = target->idle || request->generation != target->request.generation;
	bool was_invalid = !new_request && target->request.context_state == CONTEXT_INVALID;

	if (new_request)
		enter_request(target, sampling, request, now_ns, clocks);
	target->request = *request;
	if (target->unit.open && target->unit.automatic && !target->unit.labels.path[0])
		open_unit_set_request(&target->unit, request, sampling->options.trust_traceparent);

	switch (request->context_state) {
	case CONTEXT_ABSENT:
		break;
	case CONTEXT_INVALID:
		if (!was_invalid)
			note_invalid_context(target, sampling);
		break;
	case CONTEXT_VALID:
		track_context(target, sampling, &request->context, now_ns, clocks);
		break;
	}
}
