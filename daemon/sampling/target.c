/* SPDX-License-Identifier: MIT
 *
 * See target.h; the way of one tick is that of docs/ARCHITECTURE.md. A tick ends in exactly one of the
 * classes of struct accounting, and the same class is noted for the target, its window, its open unit and the
 * whole program, so that each of them balances by itself.
 */
#include "daemon/sampling/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/sampling/requests.h"

struct target *target_new(
	struct sampling *sampling, const struct discovered *identity, struct php_process *process, int pidfd)
{
	struct target *target = calloc(1, sizeof(*target));

	struct calltree *tree = NULL;

	if (!target || calltree_new(sampling->options.max_nodes, &tree) < 0) {
		free(target);
		php_process_close(process);
		close(pidfd);
		return NULL;
	}
	ledger_init(&target->window, tree);
	target->identity = *identity;
	target->process = process;
	target->pidfd = pidfd;
	target->base_period_ns = identity->period_ns ? identity->period_ns : sampling->options.period_ns;
	target->period_ns = target->base_period_ns;
	target->window_begin_ns = monotonic_now_ns();
	target->idle = true;
	target->cadence = CADENCES_NONE;
	return target;
}

void target_set_rate(struct target *target, uint64_t period_ns)
{
	if (target->period_ns == target->base_period_ns)
		target->period_ns = period_ns;
	target->base_period_ns = period_ns;
}

void target_free(struct target *target, struct sampling *sampling)
{
	requests_end_unit(target, sampling, target->last_ns, &target->clocks, NULL);
	calltree_free(target->window.tree);
	php_process_close(target->process);
	close(target->pidfd);
	free(target);
}

/* Where a sample stands in a tree whose stacks are at most @max_depth deep: the innermost and outermost
 * halves. */
static uint32_t descend(struct calltree *tree, const struct php_sample *sample, uint32_t max_depth,
	bool *ret_overflow, bool *ret_truncated)
{
	struct calltree_stack stack = {
		.frames = sample->frames,
		.count = sample->count,
		.inner = sample->omitted > 0 ? sample->omitted_after + 1 : 0,
		.truncated = sample->omitted > 0 || sample->count > max_depth,
		.same_outer = sample->same_outer,
		.since = sample->since,
		.serial = sample->serial,
	};

	if (stack.inner > sample->count)
		stack.inner = sample->count;
	if (sample->count > max_depth)
		stack.inner = (max_depth + 1) / 2;
	stack.outer = (sample->count > max_depth ? max_depth : sample->count) - stack.inner;
	*ret_truncated = stack.truncated;
	return calltree_descend(tree, &stack, ret_overflow);
}

/* The node for what php_process_sample() answered. */
static uint32_t find_node(struct calltree *tree, int answer, const struct php_sample *sample,
	uint32_t max_depth, struct accounting *tick)
{
	bool overflow = false, truncated = false;
	uint32_t node;

	if (answer == PHP_PROCESS_E_IDLE) {
		node = calltree_child(tree, CALLTREE_ROOT, FRAME_ENGINE, 0, &overflow);
	} else if (answer == 0 || answer == PHP_PROCESS_E_TORN) {
		node = descend(tree, sample, max_depth, &overflow, &truncated);
		if (answer == PHP_PROCESS_E_TORN)
			node = calltree_child(tree, node, FRAME_TORN, 0, &overflow);
	} else {
		node = calltree_child(tree, CALLTREE_ROOT, FRAME_UNREAD, 0, &overflow);
	}
	tick->node_overflow |= overflow;
	tick->truncated |= truncated;
	return node;
}

static void charge(const struct presence_watch *presence, struct ledger *ledger, uint32_t node, bool counts,
	uint64_t now_ns)
{
	calltree_node(ledger->tree, node)->samples += counts;
	ledger_sample(ledger, node, presence->found, now_ns);
	/* For how long this time is not known yet. */
	if (presence->driven_off)
		ledger_note_kept_off(ledger, node, presence->kept_off_ns);
}

static void charge_all(struct target *target, bool counts, uint64_t now_ns)
{
	if (target->window.open)
		charge(&target->presence, &target->window, target->window_node, counts, now_ns);
	if (target->unit.open && target->unit.collecting)
		charge(&target->presence, &target->unit.ledger, target->unit_node, counts, now_ns);
}

static void note(struct target *target, struct sampling *sampling, const struct accounting *tick)
{
	accounting_add(&target->accounting, tick);
	accounting_add(&target->window_accounting, tick);
	accounting_add(&sampling->accounting, tick);
	if (target->unit.open && target->unit.collecting)
		accounting_add(&target->unit.labels.accounting, tick);
}

/* Between requests, as opposed to: PHP is at work on a request, outside of any PHP function. A request of
 * which no PHP code was seen yet has not begun. */
static bool is_between_requests(const struct target *target, int answer, const struct php_sample *sample)
{
	return answer == PHP_PROCESS_E_IDLE && (target->idle || !sample->request.active);
}

static bool is_readable(int answer)
{
	return answer == 0 || answer == PHP_PROCESS_E_IDLE || answer == PHP_PROCESS_E_TORN;
}

/* Brings requests and units up to date with what a look at the process found. */
static void follow(struct target *target, struct sampling *sampling, int answer, uint64_t now_ns,
	const struct activity_clocks *clocks)
{
	struct php_sample *sample = sampling->sample;

	if (is_between_requests(target, answer, sample)) {
		requests_track(target, sampling, NULL, now_ns, clocks);
		return;
	}
	/* The context was not looked for: it is what it was. */
	if (answer == PHP_PROCESS_E_IDLE) {
		sample->request.context_state = target->request.context_state;
		sample->request.context = target->request.context;
	}
	if (is_readable(answer))
		requests_track(target, sampling, &sample->request, now_ns, clocks);
}

/* False: it has no memory any more. It is about to end, and its pidfd will say so: until then no tick is its.
 */
static bool look(struct target *target, struct sampling *sampling, uint64_t now_ns,
	const struct activity_clocks *clocks, struct accounting *tick)
{
	struct php_sample *sample = sampling->sample;
	int answer = php_process_sample(target->process, sample);
	bool readable = is_readable(answer);

	if (answer == PHP_PROCESS_E_GONE) {
		target->unreadable_ticks++;
		target->proved = false;
		return false;
	}
	follow(target, sampling, answer, now_ns, clocks);
	target->unreadable_ticks = readable ? 0 : target->unreadable_ticks + 1;
	target->proved = target->presence.off_cpu && readable;

	if (target->idle) {
		*(readable ? &tick->idle : &tick->unreadable) = 1;
		return true;
	}
	if (answer == PHP_PROCESS_E_TORN)
		tick->torn_lost = 1;
	else if (readable)
		tick->taken = 1;
	else
		tick->unreadable = 1;
	tick->torn_retried = answer == 0 && sample->retries > 0;

	open_unit_cap(&target->unit, now_ns, clocks, sampling->options.auto_max_ns);
	if (target->window.open)
		target->window_node =
			find_node(target->window.tree, answer, sample, sampling->options.max_depth, tick);
	if (target->unit.open && target->unit.collecting)
		target->unit_node =
			find_node(target->unit.tree, answer, sample, target->unit.labels.max_depth, tick);
	charge_all(target, readable, now_ns);
	return true;
}

/* Deadlines that passed before it joined its cadence are not its own. */
static uint64_t take_own(struct target *target, const struct cadence_due *due)
{
	uint64_t own = due->expected - target->not_its_deadlines;

	target->not_its_deadlines = 0;
	return own;
}

/* A unit says the longest period that was in force while it was on, but for the tick that found it. */
static void note_period(struct target *target, uint64_t period_ns)
{
	struct unit_result *labels = &target->unit.labels;

	if (period_ns > labels->period_ns)
		labels->period_ns = period_ns;
}

/* What the clocks tell of the time since the last tick. */
static void note_time_since(struct target *target, const struct activity_clocks *clocks, uint64_t now_ns)
{
	if (target->presence.found != PRESENCE_WAITING)
		target->disturbed =
			clocks->switch_ins == target->clocks.switch_ins ? 0 : target->disturbed + 1;
	if (target->ticked)
		presence_note_clocks(
			&target->presence, &target->clocks, clocks, now_ns - target->last_ns, now_ns);
}

enum target_fate target_tick(struct target *target, struct sampling *sampling, const struct cadence_due *due)
{
	struct accounting tick = {0};
	struct activity *activity = php_process_activity(target->process);
	struct activity_clocks clocks;
	uint64_t now_ns = monotonic_now_ns(), own = take_own(target, due);
	bool is_there = true;
	int r;

	if (own == 0)
		return TARGET_LIVES;
	r = activity_read_clocks(activity, &clocks);
	if (r < 0)
		return r == -ESRCH ? TARGET_GONE : TARGET_LOST;
	tick.expected = own;
	tick.missed = own - 1;
	accounting_note_lateness(&tick, due->late_ns, due->period_ns);
	note_period(target, due->period_ns);

	note_time_since(target, &clocks, now_ns);
	if (target->proved && presence_is_unmoved(&target->presence, &clocks)) {
		/* Its stack is what it was. */
		presence_look_again(&target->presence, activity, now_ns);
		if (target->idle) {
			tick.idle = 1;
		} else {
			tick.unchanged = 1;
			open_unit_cap(&target->unit, now_ns, &clocks, sampling->options.auto_max_ns);
			charge_all(target, true, now_ns);
		}
	} else {
		/* In this order: seen off the CPU between two equal switch-in counts, this one and the next
		 * tick's, it was so from before the snapshot until then. */
		presence_look(&target->presence, &sampling->observer, activity, &clocks, now_ns);
		is_there = look(target, sampling, now_ns, &clocks, &tick);
	}
	if (is_there)
		note(target, sampling, &tick);
	target->clocks = clocks;
	target->last_ns = now_ns;
	target->ticked = true;
	return target->unreadable_ticks > TARGET_MAX_UNREADABLE_TICKS ? TARGET_LOST : TARGET_LIVES;
}

/* Was a unit begun with @handle that no look has seen? A handle is the time of its begin(): an older one is
 * of a unit that has ended. Without one a context is news only to a unit that has none. */
static bool is_news(const struct target *target, uint64_t handle, uint64_t now_ns)
{
	const struct open_unit *unit = &target->unit;

	if (handle == 0)
		return unit->open && !unit->adopted;
	return handle <= now_ns && handle > target->finished.end_ns &&
	       !(unit->open && unit->adopted && handle <= unit->labels.handle);
}

/* The unit that @handle names, brought about if it was too short to be seen. ORDER_E_NO_UNIT: there is none.
 */
static enum order_error choose_unit(struct target *target, struct sampling *sampling, uint64_t handle,
	const struct trace_context *context, uint64_t now_ns, const struct activity_clocks *clocks)
{
	const struct open_unit *unit = &target->unit;
	struct request with_context = target->request;
	bool whichever = handle == 0;

	if (whichever && context)
		handle = context->handle;
	if (context && is_news(target, handle, now_ns)) {
		with_context.context = *context;
		with_context.context.handle = handle;
		with_context.context_state = CONTEXT_VALID;
		requests_track(target, sampling, &with_context, now_ns, clocks);
		return unit->open ? ORDER_OK : ORDER_E_NO_MEMORY;
	}
	if (!unit->open || (!whichever && !(unit->adopted && unit->labels.handle == handle)))
		return ORDER_E_NO_UNIT;
	return ORDER_OK;
}

/* Ends the open unit for its client. */
static enum order_error finish_unit(struct target *target, struct sampling *sampling, uint64_t now_ns,
	const struct activity_clocks *clocks, struct unit_result **ret_result)
{
	struct counters counters = {0};
	int r;

	target->finished = (struct finished_unit){
		.is_in_this_request = true,
		.was_adopted = target->unit.adopted,
		.context = target->unit.context,
		.begin_ns = target->unit.begin_ns,
		.end_ns = now_ns,
	};
	/* What can't be read is absent in them. */
	php_process_counters(target->process, &counters);
	target->unit.labels.finished_by_client = true;
	r = open_unit_end(&target->unit, sampling, now_ns, clocks, &counters, ret_result);
	target->period_ns = target->base_period_ns;
	return r < 0 ? ORDER_E_NO_MEMORY : ORDER_OK;
}

/* The state of the process is known as of @now_ns, though no tick looked. The next one looks. */
static void note_visit(struct target *target, uint64_t now_ns, const struct activity_clocks *clocks)
{
	target->last_ns = now_ns;
	target->clocks = *clocks;
	target->presence.off_cpu = false;
	target->proved = false;
}

/* Nobody watched so far: what follow() has opened since, it opened for the order of things alone. */
static void watch_anew(struct target *target, uint64_t now_ns, const struct activity_clocks *clocks)
{
	bool watched = !target->suspended;

	target->window.open = false;
	if (watched && !target->idle)
		ledger_open(&target->window, now_ns, clocks);
	if (!target->unit.open)
		return;
	ledger_skip(&target->unit.ledger, now_ns, clocks);
	target->unit.ledger.open = watched && target->unit.collecting;
}

/* Is the request that is on, as of now, the one in which the client asked? A handle says when begin() was
 * called, which is the better witness: an order may have waited before anybody noted when it came. */
static bool is_request_of(const struct target *target, const struct finish_call *call)
{
	uint64_t handle = call->handle ? call->handle : call->context ? call->context->handle : 0;

	return !target->idle && target->request_since_ns <= call->asked_ns &&
	       (handle == 0 || target->request_since_ns <= handle);
}

enum order_error target_finish(struct target *target, struct sampling *sampling,
	const struct finish_call *call, struct unit_result **ret_result)
{
	struct activity_clocks clocks;
	uint64_t now_ns = monotonic_now_ns();
	enum order_error error;
	int answer;

	/* Its client waits for the answer: it is off the CPU, its clocks are exact, its memory stands still.
	 */
	if (activity_read_clocks(php_process_activity(target->process), &clocks) < 0)
		return ORDER_E_NOT_A_TARGET;
	answer = php_process_sample(target->process, sampling->sample);
	follow(target, sampling, answer, now_ns, &clocks);
	error = is_request_of(target, call)
			? choose_unit(target, sampling, call->handle, call->context, now_ns, &clocks)
			: ORDER_E_NO_UNIT;
	if (error == ORDER_OK)
		error = finish_unit(target, sampling, now_ns, &clocks, ret_result);
	if (target->suspended)
		watch_anew(target, now_ns, &clocks);
	note_visit(target, now_ns, &clocks);
	target->ticked |= is_readable(answer);
	return error;
}

void target_suspend(struct target *target)
{
	uint64_t now_ns = monotonic_now_ns();
	struct activity_clocks clocks = target->clocks;

	if (target->suspended)
		return;
	target->suspended = true;
	activity_read_clocks(php_process_activity(target->process), &clocks);
	ledger_close(&target->window, now_ns, &clocks);
	if (target->unit.open)
		ledger_close(&target->unit.ledger, now_ns, &clocks);
	note_visit(target, now_ns, &clocks);
}

void target_resume(struct target *target, struct sampling *sampling)
{
	uint64_t now_ns = monotonic_now_ns();
	struct activity_clocks clocks;
	int answer;

	if (!target->suspended)
		return;
	target->suspended = false;
	if (activity_read_clocks(php_process_activity(target->process), &clocks) < 0)
		return; /* it has ended, which the next tick notices */
	/* Requests may have come and gone: none may be taken for the one that was there before. */
	answer = php_process_sample(target->process, sampling->sample);
	follow(target, sampling, answer, now_ns, &clocks);
	watch_anew(target, now_ns, &clocks);
	note_visit(target, now_ns, &clocks);
	target->ticked |= is_readable(answer);
}

void target_reset(struct target *target, uint64_t now_ns)
{
	ledger_clear(&target->window, target->last_ns, &target->clocks);
	target->window_accounting = (struct accounting){0};
	target->window_begin_ns = now_ns;
	/* The next tick looks again, and finds its place in the empty tree. */
	target->proved = false;
}

static void copy(char *into, size_t bytes, const char *text)
{
	snprintf(into, bytes, "%s", text);
}

static const char *state_of(const struct target *target)
{
	static const char *const words[] = {
		[PRESENCE_RUNNING] = "running",
		[PRESENCE_QUEUED] = "queued",
		[PRESENCE_WAITING] = "waiting",
	};

	if (!target->ticked)
		return "new";
	return target->idle ? "idle" : words[target->presence.found];
}

void target_report(const struct target *target, const struct sampling *sampling, uint64_t now_ns,
	struct target_report *ret_report)
{
	const struct php_binary *binary = php_process_binary(target->process);
	const struct unit_result *labels = &target->unit.labels;

	*ret_report = (struct target_report){
		.pid = target->identity.pid,
		.uid = target->identity.uid,
		.suspended = target->suspended,
		.period_ns = sampling_period_ns(sampling, target->period_ns),
		.asked_period_ns = target->period_ns,
		.requests_seen = target->requests_seen,
		.unit_open = target->unit.open,
		.unit_automatic = target->unit.open && target->unit.automatic,
		.unit_handle = target->unit.open ? labels->handle : 0,
		.request_age_ns = target->unit.open ? now_ns - target->unit.begin_ns : 0,
		.accounting = target->accounting,
	};
	copy(ret_report->pool, sizeof(ret_report->pool), target->identity.pool);
	copy(ret_report->php_version, sizeof(ret_report->php_version), binary->version);
	copy(ret_report->sapi, sizeof(ret_report->sapi), binary->sapi);
	copy(ret_report->method, sizeof(ret_report->method), target->request.method);
	copy(ret_report->path, sizeof(ret_report->path), target->request.path);
	if (target->unit.open)
		copy(ret_report->trace_id, sizeof(ret_report->trace_id), labels->trace_id);
	copy(ret_report->state, sizeof(ret_report->state), state_of(target));
}
