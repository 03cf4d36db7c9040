/* SPDX-License-Identifier: MIT
 *
 * Every interval: what is selected now, against what is known. What is new is examined and handed over; what
 * is not selected any more is let go; what was refused is tried again after a while, since permissions and
 * masters change. A process that has ended needs no word from here: the sampler holds its pidfd.
 */
#include "daemon/sampling/scout.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "reader/php_process.h"
#include "daemon/sampling/clock.h"
#include "daemon/sampling/fpm_master.h"
#include "daemon/sampling/sampler.h"

/* /proc as a whole is looked through this often; known masters' children at each scan. */
#define FULL_SCAN_NS (2ull * 1000000000u)
/* A refused process is examined again after this long. */
#define RETRY_NS (10ull * 1000000000u)
/* Processes attached by order at a time. */
#define MAX_ATTACHED_BY_ORDER 256

enum known_state { KNOWN_ATTACHED, KNOWN_REFUSED, KNOWN_NOT_STARTED };

struct known {
	struct discovered identity;
	enum known_state state;
	uint64_t retry_ns;
};

/* A process attached by order. */
struct ordered {
	struct selector selector;
	uint64_t start_time_ticks;
};

struct scout {
	struct engine_options options;
	struct mailbox *inbox, *sampler;
	const struct frame_names *names;
	struct discovery *discovery;
	bool stopping;

	struct known *known; /* ordered by pid, as scans are */
	size_t known_count, known_room;
	size_t attached_count;

	struct selector *configured;
	size_t configured_count;
	struct ordered by_order[MAX_ATTACHED_BY_ORDER];
	size_t by_order_count;

	struct refusals refusals;
};

int scout_new(const struct engine_options *options, struct mailbox *inbox, struct mailbox *sampler,
	const struct frame_names *names, struct scout **ret_scout)
{
	_cleanup_(scout_freep) struct scout *scout = calloc(1, sizeof(*scout));
	int r;

	if (!scout)
		return -ENOMEM;
	scout->options = *options;
	scout->inbox = inbox;
	scout->sampler = sampler;
	scout->names = names;
	refusals_init(&scout->refusals);
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
	refusals_deinit(&scout->refusals);
	free(scout->configured);
	free(scout->known);
	free(scout);
}

struct refusals *scout_refusals(struct scout *scout)
{
	return &scout->refusals;
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
	mailbox_post(scout->sampler, &command->message);
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
	r = php_process_open(identity->pid, scout->names, &process, why, sizeof(why));
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

static int make_room(struct scout *scout, size_t count)
{
	struct known *known;

	if (count <= scout->known_room)
		return 0;
	known = realloc(scout->known, 2 * count * sizeof(*known));
	if (!known)
		return -ENOMEM;
	scout->known = known;
	scout->known_room = 2 * count;
	return 0;
}

static struct known *find_known(struct scout *scout, pid_t pid, size_t *ret_place)
{
	size_t low = 0, high = scout->known_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (scout->known[middle].identity.pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_place = low;
	return low < scout->known_count && scout->known[low].identity.pid == pid ? &scout->known[low] : NULL;
}

static void forget(struct scout *scout, size_t place)
{
	memmove(&scout->known[place], &scout->known[place + 1],
		(scout->known_count - place - 1) * sizeof(*scout->known));
	scout->known_count--;
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
	struct known *known = find_known(scout, identity->pid, &place);

	if (known && known->identity.start_time_ticks != identity->start_time_ticks) {
		let_go(scout, known);
		forget(scout, place);
		known = NULL;
	}
	if (!known) {
		if (make_room(scout, scout->known_count + 1) < 0)
			return;
		memmove(&scout->known[place + 1], &scout->known[place],
			(scout->known_count - place) * sizeof(*scout->known));
		scout->known_count++;
		known = &scout->known[place];
		*known = (struct known){.identity = *identity};
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
	for (size_t i = 0; i < scout->known_count;) {
		pid_t pid = scout->known[i].identity.pid;

		while (next < found_count && found[next].pid < pid)
			next++;
		if (next < found_count && found[next].pid == pid) {
			i++;
			continue;
		}
		let_go(scout, &scout->known[i]);
		forget(scout, i);
	}
	for (size_t i = 0; i < found_count; i++)
		consider(scout, &found[i]);
}

/* Tells discovery what to look for: what is configured, and what was attached by order. */
static int select_all(struct scout *scout)
{
	size_t count = scout->by_order_count + scout->configured_count;
	_cleanup_free_ struct selector *all = calloc(count + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < scout->by_order_count; i++)
		all[i] = scout->by_order[i].selector;
	for (size_t i = 0; i < scout->configured_count; i++)
		all[scout->by_order_count + i] = scout->configured[i];
	return discovery_select(scout->discovery, all, count);
}

static void take_selectors(struct scout *scout, struct scout_command *command)
{
	free(scout->configured);
	scout->configured = TAKE(command->selectors);
	scout->configured_count = command->selector_count;
	if (select_all(scout) == 0)
		scan(scout, 1);
}

/* A target that is not what it was when it was examined is examined anew at the next scan. */
static void note_lost(struct scout *scout, const struct discovered *identity)
{
	size_t place;
	struct known *known = find_known(scout, identity->pid, &place);

	if (!known || known->identity.start_time_ticks != identity->start_time_ticks ||
		known->state != KNOWN_ATTACHED)
		return;
	scout->attached_count--;
	forget(scout, place);
}

/* Targets that are @pid or workers of it. */
static size_t count_attached(struct scout *scout, pid_t pid)
{
	struct discovered identity;
	size_t count = 0;

	for (size_t i = 0; i < scout->known_count; i++)
		if (scout->known[i].state == KNOWN_ATTACHED &&
			discovery_find(scout->discovery, scout->known[i].identity.pid, &identity) == 0 &&
			(identity.pid == pid || identity.master_pid == pid))
			count++;
	return count;
}

static void explain_refusal(struct scout *scout, pid_t pid, char *ret_why, size_t why_bytes)
{
	struct refusal refusals[REFUSALS_MAX];
	size_t count = refusals_copy(&scout->refusals, refusals, REFUSALS_MAX);

	snprintf(ret_why, why_bytes, "process %d: can't be sampled; `cbox-profd doctor %d` says why", pid,
		pid);
	for (size_t i = 0; i < count; i++)
		if (refusals[i].pid == pid)
			snprintf(ret_why, why_bytes, "%s", refusals[i].why);
}

static void forget_selector(struct scout *scout, pid_t pid)
{
	size_t kept = 0;

	for (size_t i = 0; i < scout->by_order_count; i++)
		if (scout->by_order[i].selector.pid != pid)
			scout->by_order[kept++] = scout->by_order[i];
	scout->by_order_count = kept;
}

/* Drops what was attached by order and has ended. Discovery must know that before it is told of another
 * process with the same number. */
static int forget_ended(struct scout *scout)
{
	size_t kept = 0, count = scout->by_order_count;

	for (size_t i = 0; i < count; i++) {
		const struct ordered *ordered = &scout->by_order[i];
		struct discovered now;

		if (discovery_identify(ordered->selector.pid, &now) == 0 &&
			now.start_time_ticks == ordered->start_time_ticks)
			scout->by_order[kept++] = *ordered;
	}
	scout->by_order_count = kept;
	return kept < count ? select_all(scout) : 0;
}

static enum order_error select_and_scan(struct scout *scout)
{
	if (select_all(scout) < 0)
		return ORDER_E_NO_MEMORY;
	scan(scout, 1);
	return ORDER_OK;
}

static void attach_by_order(struct scout *scout, struct order *order)
{
	struct discovered identity;
	struct ordered *ordered;

	if (discovery_identify(order->pid, &identity) < 0) {
		order->error = ORDER_E_NOT_A_TARGET;
		snprintf(order->why, sizeof(order->why), "process %d: there is none with this number",
			order->pid);
		return;
	}
	if (forget_ended(scout) < 0) {
		order->error = ORDER_E_NO_MEMORY;
		return;
	}
	forget_selector(scout, order->pid);
	if (scout->by_order_count == MAX_ATTACHED_BY_ORDER) {
		order->error = ORDER_E_LIMIT;
		snprintf(order->why, sizeof(order->why),
			"%d processes are attached by order already; detach one, or select them in the "
			"configuration",
			MAX_ATTACHED_BY_ORDER);
		return;
	}
	ordered = &scout->by_order[scout->by_order_count++];
	*ordered = (struct ordered){
		.selector = {.kind = SELECT_PID, .pid = order->pid, .period_ns = order->period_ns},
		.start_time_ticks = identity.start_time_ticks};
	snprintf(ordered->selector.pool, sizeof(ordered->selector.pool), "%s", order->pool);
	order->error = select_and_scan(scout);
	order->affected = count_attached(scout, order->pid);
	/* A master without workers is no error: it may have some later. */
	if (order->error != ORDER_OK || order->affected || fpm_title_of(order->pid) == FPM_TITLE_MASTER)
		return;
	order->error = ORDER_E_REFUSED;
	explain_refusal(scout, order->pid, order->why, sizeof(order->why));
	forget_selector(scout, order->pid);
	select_and_scan(scout);
}

static void detach_by_order(struct scout *scout, struct order *order)
{
	size_t selectors = scout->by_order_count, attached = count_attached(scout, order->pid);

	forget_selector(scout, order->pid);
	if (scout->by_order_count == selectors) {
		order->error = ORDER_E_NOT_FOUND;
		snprintf(order->why, sizeof(order->why),
			"process %d: not attached by order; what the configuration selects can be suspended",
			order->pid);
		return;
	}
	order->error = select_and_scan(scout);
	order->affected = attached - count_attached(scout, order->pid);
}

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
	/* Behind the target it brought: the sampler has it by the time it sees the order. */
	mailbox_post(scout->sampler, &order->message);
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
