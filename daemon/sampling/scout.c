/* SPDX-License-Identifier: MIT
 *
 * Every interval: what is selected now, against what is known. What is new is examined and handed over; what
 * is not selected any more is let go; what was refused is tried again after a while, since permissions and
 * masters change. A process that has ended needs no word from here: the sampler holds its pidfd.
 */
#include "daemon/sampling/scout.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reader/php_process.h"
#include "daemon/sampling/clock.h"
#include "daemon/sampling/fpm_master.h"
#include "daemon/sampling/known.h"
#include "daemon/sampling/ordered.h"
#include "daemon/sampling/samplers.h"

/* /proc as a whole is looked through this often; known masters' children at each scan. */
#define FULL_SCAN_NS (2ull * 1000000000u)
/* A refused process is examined again after this long. */
#define RETRY_NS (10ull * 1000000000u)

struct scout {
	struct engine_options options;
	struct mailbox *inbox;
	const struct samplers *samplers;
	struct discovery *discovery;
	bool stopping;

	struct known_list known;
	size_t attached_count;

	struct selector *configured;
	size_t configured_count;
	struct ordered_list by_order;

	struct refusals refusals;
	struct harvest harvest;
};

int scout_new(const struct engine_options *options, struct mailbox *inbox, const struct samplers *samplers,
	struct scout **ret_scout)
{
	_cleanup_(scout_freep) struct scout *scout = calloc(1, sizeof(*scout));
	int r;

	if (!scout)
		return -ENOMEM;
	scout->options = *options;
	scout->inbox = inbox;
	scout->samplers = samplers;
	refusals_init(&scout->refusals);
	harvest_init(&scout->harvest);
	r = discovery_new(&scout->discovery);
	if (r < 0)
		return r;
	*ret_scout = TAKE(scout);
	return 0;
}

void scout_free(struct scout *scout)
{
	if (scout->discovery)
		discovery_free(scout->discovery);
	harvest_deinit(&scout->harvest);
	refusals_deinit(&scout->refusals);
	free(scout->configured);
	known_deinit(&scout->known);
	free(scout);
}

struct refusals *scout_refusals(struct scout *scout)
{
	return &scout->refusals;
}

struct harvest *scout_harvest(struct scout *scout)
{
	return &scout->harvest;
}

static bool send_to_sampler(struct scout *scout, enum sampler_message kind, const struct discovered *identity,
	struct php_process *process, int pidfd)
{
	struct sampler_command *command = calloc(1, sizeof(*command));

	if (!command)
		return false;
	command->message.kind = kind;
	command->identity = *identity;
	command->process = process;
	command->pidfd = pidfd;
	mailbox_post(samplers_owner(scout->samplers, identity->pid)->inbox, &command->message);
	return true;
}

/* Is this pidfd that of the very process that was discovered, and not of a later one with its number? */
static bool is_same_process(const struct discovered *identity)
{
	struct discovered now;

	return discovery_identify(identity->pid, &now) == 0 &&
	       now.start_time_ticks == identity->start_time_ticks;
}

/* Gets a process ready and hands it over. What becomes of it is noted in @known. */
static void attach(struct scout *scout, const struct discovered *identity, struct known *known)
{
	_cleanup_(php_process_closep) struct php_process *process = NULL;
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, identity->pid, 0);
	const struct php_process_options how = {
		.placement = scout->options.placement, .blocking = scout->options.blocking};
	/* Those of the sampler that will look at it. */
	const struct frame_names *names = &samplers_owner(scout->samplers, identity->pid)->sampling.names;
	char why[sizeof(((struct refusal *)0)->why)] = "";
	int r;

	known->state = KNOWN_REFUSED;
	known->retry_ns = monotonic_now_ns() + RETRY_NS;
	if (pidfd < 0 || !is_same_process(identity))
		return;
	if (scout->attached_count >= scout->options.max_targets) {
		snprintf(why, sizeof(why),
			"process %d: %u targets are sampled already; raise limits.max_targets", identity->pid,
			scout->options.max_targets);
		refusals_note(&scout->refusals, identity->pid, why);
		return;
	}
	r = php_process_open(identity->pid, names, &how, &process, why, sizeof(why));
	if (r == PHP_BINARY_E_NOT_STARTED) {
		known->state = KNOWN_NOT_STARTED;
		return;
	}
	if (r != 0) {
		/* A process that ended meanwhile was not refused. */
		if (is_same_process(identity))
			refusals_note(&scout->refusals, identity->pid, why);
		return;
	}
	if (!send_to_sampler(scout, SAMPLER_ADD, identity, process, pidfd))
		return;
	process = NULL;
	pidfd = -1;
	known->state = KNOWN_ATTACHED;
	scout->attached_count++;
	refusals_forget(&scout->refusals, identity->pid);
}

static void let_go(struct scout *scout, const struct known *known)
{
	refusals_forget(&scout->refusals, known->identity.pid);
	if (known->state != KNOWN_ATTACHED)
		return;
	scout->attached_count--;
	send_to_sampler(scout, SAMPLER_DROP, &known->identity, NULL, -1);
}

/* The selectors may have changed, or the process its user. */
static void identify(struct scout *scout, const struct discovered *identity, struct known *known)
{
	bool is_news = strcmp(known->identity.pool, identity->pool) != 0 ||
		       known->identity.period_ns != identity->period_ns ||
		       known->identity.uid != identity->uid;

	known->identity = *identity;
	if (is_news && known->state == KNOWN_ATTACHED)
		send_to_sampler(scout, SAMPLER_IDENTIFY, identity, NULL, -1);
}

/* Makes sure that a process that is selected is known and, if it can be, attached. */
static void consider(struct scout *scout, const struct discovered *identity)
{
	size_t place;
	struct known *known = known_find(&scout->known, identity->pid, &place);

	if (known && known->identity.start_time_ticks != identity->start_time_ticks) {
		let_go(scout, known);
		known_remove(&scout->known, place);
		known = NULL;
	}
	if (!known) {
		known = known_insert(&scout->known, place, identity);
		if (!known)
			return;
		attach(scout, identity, known);
		return;
	}
	identify(scout, identity, known);
	if (known->state == KNOWN_NOT_STARTED ||
		(known->state == KNOWN_REFUSED && monotonic_now_ns() >= known->retry_ns))
		attach(scout, identity, known);
}

static void scan(struct scout *scout, unsigned full_scan_every)
{
	const struct discovered *found;
	size_t found_count, next = 0;

	if (discovery_scan(scout->discovery, full_scan_every, &found, &found_count) < 0)
		return;
	/* Both lists are ordered by pid: who is known and was not found is not selected any more, or has
	 * ended. */
	for (size_t i = 0; i < scout->known.count;) {
		pid_t pid = scout->known.items[i].identity.pid;

		while (next < found_count && found[next].pid < pid)
			next++;
		if (next < found_count && found[next].pid == pid) {
			i++;
			continue;
		}
		let_go(scout, &scout->known.items[i]);
		known_remove(&scout->known, i);
	}
	for (size_t i = 0; i < found_count; i++)
		consider(scout, &found[i]);
	harvest_note(&scout->harvest, found, found_count);
}

/* Tells discovery what to look for. What is configured comes first: an order takes up what no entry selects,
 * and renames nothing. */
static int select_all(struct scout *scout)
{
	size_t count = scout->configured_count + scout->by_order.count;
	_cleanup_free_ struct selector *all = calloc(count + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < scout->configured_count; i++)
		all[i] = scout->configured[i];
	for (size_t i = 0; i < scout->by_order.count; i++)
		all[scout->configured_count + i] = scout->by_order.items[i].selector;
	return discovery_select(scout->discovery, all, count);
}

static void take_selectors(struct scout *scout, struct scout_command *command)
{
	free(scout->configured);
	scout->configured = TAKE(command->selectors);
	scout->configured_count = command->selector_count;
	harvest_replace(&scout->harvest, scout->configured, scout->configured_count);
	if (select_all(scout) == 0)
		scan(scout, 1);
}

/* A target that is not what it was when it was examined is examined anew at the next scan. */
static void note_lost(struct scout *scout, const struct discovered *identity)
{
	size_t place;
	struct known *known = known_find(&scout->known, identity->pid, &place);

	if (!known || known->identity.start_time_ticks != identity->start_time_ticks ||
		known->state != KNOWN_ATTACHED)
		return;
	scout->attached_count--;
	known_remove(&scout->known, place);
}

static struct coverage coverage_of(struct scout *scout, pid_t pid)
{
	const struct ordered *ordered = ordered_find(&scout->by_order, pid);
	size_t selector =
		scout->configured_count + (ordered ? (size_t)(ordered - scout->by_order.items) : ORDERED_MAX);

	return known_coverage(&scout->known, pid, scout->configured_count, selector);
}

static enum order_error select_and_scan(struct scout *scout)
{
	if (select_all(scout) < 0)
		return ORDER_E_NO_MEMORY;
	scan(scout, 1);
	return ORDER_OK;
}

__attribute__((format(printf, 2, 3))) static void say(struct order *order, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(order->why, sizeof(order->why), format, arguments);
	va_end(arguments);
}

/* Takes an order back that took up nothing. */
static void withdraw(struct scout *scout, pid_t pid)
{
	ordered_remove(&scout->by_order, pid);
	select_and_scan(scout);
}

/* With the selector for its pid in force: what came of it, @before being the name it had by an earlier order.
 */
static void answer_attach(struct scout *scout, struct order *order, const char *before)
{
	struct coverage coverage = coverage_of(scout, order->pid);
	size_t others = coverage.total - coverage.ordered;

	order->affected = coverage.ordered;
	if (coverage.ordered > 0) {
		if (before)
			say(order, "process %d: sampled as %s now, as %s before", order->pid, coverage.pool,
				before);
		else if (others > 0)
			say(order,
				"process %d: %zu of its workers added; %zu were sampled already and stay as "
				"they are",
				order->pid, coverage.ordered, others);
	} else if (others > 0) {
		say(order, "process %d: already sampled as %s; nothing changed", order->pid, coverage.pool);
		withdraw(scout, order->pid);
	} else if (fpm_title_of(order->pid) == FPM_TITLE_MASTER) {
		say(order, "process %d: this FPM master has no workers now; those to come will be sampled",
			order->pid);
	} else {
		order->error = ORDER_E_REFUSED;
		refusals_explain(&scout->refusals, order->pid, order->why, sizeof(order->why));
		withdraw(scout, order->pid);
	}
}

static void attach_by_order(struct scout *scout, struct order *order)
{
	struct ordered ordered = {
		.selector = {.kind = SELECT_PID, .pid = order->pid, .period_ns = order->period_ns}};
	char before[sizeof(ordered.selector.pool)];
	const struct ordered *earlier;
	struct discovered identity;

	if (discovery_identify(order->pid, &identity) < 0) {
		order->error = ORDER_E_NOT_A_TARGET;
		say(order, "process %d: there is none with this number; ps lists those there are",
			order->pid);
		return;
	}
	/* Discovery must know of the end of a process before it is told of another with the same number. */
	if (ordered_drop_ended(&scout->by_order) && select_all(scout) < 0) {
		order->error = ORDER_E_NO_MEMORY;
		return;
	}
	earlier = ordered_find(&scout->by_order, order->pid);
	if (earlier) {
		const char *pool = coverage_of(scout, order->pid).pool;

		snprintf(before, sizeof(before), "%s", *pool ? pool : earlier->selector.pool);
		if (!order->pool[0] || strcmp(order->pool, before) == 0) {
			say(order, "process %d: already sampled%s%s; nothing changed", order->pid,
				before[0] ? " as " : "", before);
			return;
		}
	}
	ordered.start_time_ticks = identity.start_time_ticks;
	snprintf(ordered.selector.pool, sizeof(ordered.selector.pool), "%s", order->pool);
	if (ordered_put(&scout->by_order, &ordered) < 0) {
		order->error = ORDER_E_LIMIT;
		say(order,
			"%d processes are attached by order already; detach one, or select them in the "
			"configuration",
			ORDERED_MAX);
		return;
	}
	order->error = select_and_scan(scout);
	if (order->error == ORDER_OK)
		answer_attach(scout, order, earlier ? before : NULL);
}

static void detach_by_order(struct scout *scout, struct order *order)
{
	struct coverage before = coverage_of(scout, order->pid), after = before;

	if (ordered_remove(&scout->by_order, order->pid)) {
		order->error = select_and_scan(scout);
		after = coverage_of(scout, order->pid);
		order->affected = before.total > after.total ? before.total - after.total : 0;
	} else if (before.total == 0) {
		order->error = ORDER_E_NOT_FOUND;
		say(order, "process %d: not sampled; nothing to let go", order->pid);
	} else {
		order->error = ORDER_E_REFUSED;
	}
	if (after.total > 0 && order->affected > 0)
		say(order, "process %d: %zu let go; what else selects the others keeps them, as %s",
			order->pid, order->affected, after.pool);
	else if (after.configured > 0)
		say(order,
			"process %d: the configuration selects it, as %s; take it out of pools:, or ctl "
			"suspend "
			"--pid",
			order->pid, after.pool);
	else if (after.total > 0)
		say(order,
			"process %d: attached by an order for its master or for a worker of it; detach that",
			order->pid);
}

/* Orders go on behind the targets they brought or took: a sampler has these by the time it sees the order. */
static void serve(struct scout *scout, struct order *order)
{
	struct discovered identity;

	if (order->verb == ORDER_ATTACH)
		attach_by_order(scout, order);
	else if (order->verb == ORDER_DETACH)
		detach_by_order(scout, order);
	else if (discovery_find(scout->discovery, order->pid, &identity) == 0)
		consider(scout, &identity);
	order->looked_for = true;
	samplers_submit(scout->samplers, order);
}

static void obey(struct scout *scout, struct scout_command *command)
{
	switch ((enum scout_message)command->message.kind) {
	case SCOUT_SELECT:
		take_selectors(scout, command);
		break;
	case SCOUT_LOST:
		note_lost(scout, &command->identity);
		break;
	case SCOUT_RECONFIGURE:
		scout->options = command->options;
		break;
	case SCOUT_STOP: /* part of the engine: not to be freed */
		scout->stopping = true;
		return;
	case SCOUT_ORDER:
		break;
	}
	free(command->selectors);
	free(command);
}

static void read_mail(struct scout *scout)
{
	struct message *mail = mailbox_take_all(scout->inbox);

	while (mail) {
		struct message *next = mail->next;

		if (mail->kind == SCOUT_ORDER)
			serve(scout, (struct order *)mail);
		else
			obey(scout, (struct scout_command *)mail);
		mail = next;
	}
}

void *scout_run(void *context)
{
	struct scout *scout = context;
	struct pollfd mail = {.fd = mailbox_fd(scout->inbox), .events = POLLIN};

	uint64_t next_ns = monotonic_now_ns();

	pthread_setname_np(pthread_self(), "discovery");
	while (!scout->stopping) {
		uint64_t now_ns = monotonic_now_ns(), interval_ns = scout->options.discovery_interval_ns;

		/* However much mail there is: anybody may send some. */
		if (now_ns >= next_ns) {
			scan(scout, (unsigned)(FULL_SCAN_NS / interval_ns) + 1);
			now_ns = monotonic_now_ns();
			next_ns = now_ns + interval_ns;
		}
		if (poll(&mail, 1, (int)((next_ns - now_ns) / 1000000u) + 1) > 0)
			read_mail(scout);
	}
	return NULL;
}
