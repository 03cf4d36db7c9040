/* SPDX-License-Identifier: MIT
 *
 * The loop: sleep until the earliest deadline, a message, or a target's end; then tick what is due. One
 * wake-up serves all targets of a cadence. With nothing to sample there is no deadline.
 *
 * Mail is read, and rounds are gone, between ticks: one message or one step at a time, and only while the
 * next deadline is further away than that takes. After a tick there is one message in any case, so that a
 * sampler that is always late still answers.
 *
 * The thread asks for SCHED_FIFO at the lowest priority: as an ordinary thread it misses 4 to 13 % of its
 * ticks at 1 kHz on a busy machine (FACTS, docs/DECISIONS.md). It does nothing whose length somebody else
 * decides.
 */
#include "daemon/sampling/sampler.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "daemon/sampling/scout.h"
#include "daemon/sampling/sleep.h"

/* Wake up at least this often, so that the watchdog sees the loop turn. */
#define LONGEST_SLEEP_NS 1000000000ull
#define EVENTS_AT_ONCE 64
/* What is kept for too long is let go of this often. */
#define HOUSEKEEPING_NS 1000000000ull
/* Of a serial that tell the targets of one sampler apart; those above are its place. */
#define SERIAL_BITS 48
/* What a message takes: `finish` looks at a process. */
#define MAIL_NS 100000ull

int sampler_new(const struct engine_options *options, unsigned place, struct sampler **ret_sampler)
{
	_cleanup_(sampler_freep) struct sampler *sampler = calloc(1, sizeof(*sampler));
	struct epoll_event event = {.events = EPOLLIN};
	int r;

	if (!sampler)
		return -ENOMEM;
	sampler->epoll_fd = -1;
	sampler->mail_end = &sampler->mail;
	rounds_init(&sampler->rounds);
	perch_init(&sampler->perch);
	cadences_init(&sampler->cadences);
	sampler->started_ns = monotonic_now_ns();
	r = sampling_init(&sampler->sampling, options);
	if (r < 0)
		return r;
	sampling_set_place(&sampler->sampling, place);
	sampler->last_serial = (uint64_t)place << SERIAL_BITS;
	r = mailbox_new(&sampler->inbox);
	if (r < 0)
		return r;
	sampler->targets = calloc(options->max_targets, sizeof(struct target *));
	if (!sampler->targets)
		return -ENOMEM;
	sampler->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	/* The mailbox carries nothing, a target's pidfd the target. */
	if (sampler->epoll_fd < 0 ||
		epoll_ctl(sampler->epoll_fd, EPOLL_CTL_ADD, mailbox_fd(sampler->inbox), &event) < 0)
		return -errno;
	*ret_sampler = TAKE(sampler);
	return 0;
}

void sampler_free(struct sampler *sampler)
{
	if (sampler->epoll_fd >= 0)
		close(sampler->epoll_fd);
	free(sampler->targets);
	if (sampler->inbox)
		mailbox_free(sampler->inbox);
	sampling_deinit(&sampler->sampling);
	free(sampler);
}

struct target *sampler_find(struct sampler *sampler, pid_t pid)
{
	for (size_t i = 0; i < sampler->target_count; i++)
		if (sampler->targets[i]->identity.pid == pid)
			return sampler->targets[i];
	return NULL;
}

void sampler_follow_period(struct sampler *sampler, struct target *target, uint64_t now_ns)
{
	struct cadences *cadences = &sampler->cadences;

	if (target->cadence != CADENCES_NONE) {
		if (!target->suspended && cadences_period_ns(cadences, target->cadence) == target->period_ns)
			return;
		cadences_leave(cadences, target->cadence);
		target->cadence = CADENCES_NONE;
	}
	if (target->suspended)
		return;
	target->cadence = cadences_join(cadences, target->period_ns, now_ns);
	target->not_its_deadlines = cadences_overdue(cadences, target->cadence, now_ns);
	/* It may be the nearest one. */
	target->period_ns = cadences_period_ns(cadences, target->cadence);
	target->unit.labels.period_ns = sampling_period_ns(&sampler->sampling, target->period_ns);
	target->unit.labels.asked_period_ns = target->period_ns;
}

/* The latest order counts, then what its selector says, then what holds for all. */
static uint64_t period_of(const struct sampler *sampler, const struct discovered *identity)
{
	uint64_t ordered_ns = standing_period_ns(&sampler->standing, identity->pool);

	if (ordered_ns)
		return ordered_ns;
	return identity->period_ns ? identity->period_ns : sampler->sampling.options.period_ns;
}

static void report_lost(struct sampler *sampler, const struct discovered *identity)
{
	struct scout_command *command = calloc(1, sizeof(*command));

	if (!command)
		return;
	command->message.kind = SCOUT_LOST;
	command->identity = *identity;
	mailbox_post(sampler->scout, &command->message);
}

static void add_target(struct sampler *sampler, struct sampler_command *command)
{
	struct sampling *sampling = &sampler->sampling;
	struct epoll_event event = {.events = EPOLLIN};
	struct target *target = target_new(sampling, &command->identity, command->process, command->pidfd);

	event.data.ptr = target;
	/* The scout keeps count and does not send more than there is room for. */
	if (!target || sampler->target_count == sampling->options.max_targets ||
		epoll_ctl(sampler->epoll_fd, EPOLL_CTL_ADD, target->pidfd, &event) < 0) {
		if (target)
			target_free(target, sampling);
		report_lost(sampler, &command->identity);
		return;
	}
	target->serial = ++sampler->last_serial;
	sampler->targets[sampler->target_count++] = target;
	sampler->targets_attached_total++;
	target_set_rate(target, period_of(sampler, &target->identity));
	if (standing_is_suspended(&sampler->standing, target->identity.pool))
		target_suspend(target);
	sampler_follow_period(sampler, target, monotonic_now_ns());
}

/* What it did since the last reset stays part of its pool's profile. */
static void leave_window(struct sampler *sampler, struct target *target)
{
	struct window *window;

	if (!sampler->stopping && window_take(target, &sampler->sampling, &window) == 0)
		bookkeeper_add(sampler->bookkeeper, window);
}

static void remove_target(struct sampler *sampler, struct target *target)
{
	struct sampling *sampling = &sampler->sampling;
	size_t place = 0;

	rounds_forget(sampler, target);
	while (sampler->targets[place] != target)
		place++;
	memmove(sampler->targets + place, sampler->targets + place + 1,
		(--sampler->target_count - place) * sizeof(struct target *));
	if (target->cadence != CADENCES_NONE)
		cadences_leave(&sampler->cadences, target->cadence);
	epoll_ctl(sampler->epoll_fd, EPOLL_CTL_DEL, target->pidfd, NULL);
	leave_window(sampler, target);
	target_free(target, sampling);
}

static void take_period(struct sampler *sampler, struct target *target)
{
	target_set_rate(target, period_of(sampler, &target->identity));
	sampler_follow_period(sampler, target, monotonic_now_ns());
}

void sampler_reconfigure(struct sampler *sampler, const struct engine_options *options)
{
	sampler->sampling.options = *options;
	budget_set_limit(&sampler->sampling.budget, options->cpu_budget_ppm);
	standing_forget_periods(&sampler->standing);
	sampler->reloads++;
	for (size_t i = 0; i < sampler->target_count; i++) {
		take_period(sampler, sampler->targets[i]);
		php_process_set_placement(sampler->targets[i]->process, options->placement);
	}
}

static void identify_target(struct sampler *sampler, const struct discovered *identity)
{
	struct target *target = sampler_find(sampler, identity->pid);

	if (!target || target->identity.start_time_ticks != identity->start_time_ticks)
		return;
	target->identity = *identity;
	take_period(sampler, target);
}

static void drop_target(struct sampler *sampler, const struct discovered *identity)
{
	struct target *target = sampler_find(sampler, identity->pid);

	if (target && target->identity.start_time_ticks == identity->start_time_ticks)
		remove_target(sampler, target);
}

static void obey(struct sampler *sampler, struct sampler_command *command)
{
	switch ((enum sampler_message)command->message.kind) {
	case SAMPLER_ADD:
		add_target(sampler, command);
		break;
	case SAMPLER_DROP:
		drop_target(sampler, &command->identity);
		break;
	case SAMPLER_IDENTIFY:
		identify_target(sampler, &command->identity);
		break;
	case SAMPLER_RECONFIGURE:
		sampler_reconfigure(sampler, &command->options);
		break;
	case SAMPLER_STOP: /* part of the engine: not to be freed */
		sampler->stopping = true;
		return;
	case SAMPLER_ORDER:
		break;
	}
	free(command);
}

static void take_mail(struct sampler *sampler)
{
	*sampler->mail_end = mailbox_take_all(sampler->inbox);
	while (*sampler->mail_end)
		sampler->mail_end = &(*sampler->mail_end)->next;
}

static struct message *next_mail(struct sampler *sampler)
{
	struct message *mail = sampler->mail;

	sampler->mail = mail->next;
	if (!sampler->mail)
		sampler->mail_end = &sampler->mail;
	return mail;
}

static void read_mail(struct sampler *sampler)
{
	struct message *mail = next_mail(sampler);

	if (mail->kind == SAMPLER_ORDER)
		sampler_answer(sampler, (struct order *)mail);
	else
		obey(sampler, (struct sampler_command *)mail);
}

bool sampler_has_time(const struct sampler *sampler, uint64_t ns)
{
	uint64_t deadline_ns = cadences_deadline_ns(&sampler->cadences);

	return !deadline_ns || monotonic_now_ns() + ns < deadline_ns;
}

/* What orders take, and having been woken for them and nothing else, is not sampling's. */
static void begin_orders(struct sampler *sampler, bool ticked)
{
	if (ticked || !sampler->orders_cpu_ns)
		sampler->orders_cpu_ns = thread_cpu_ns();
}

static void end_orders(struct sampler *sampler)
{
	uint64_t cpu_ns = thread_cpu_ns();

	budget_exempt(&sampler->sampling.budget, cpu_ns - sampler->orders_cpu_ns);
	sampler->orders_cpu_ns = cpu_ns;
}

static void answer(struct sampler *sampler, bool ticked)
{
	bool may_read = ticked;

	if (!sampler->mail && !rounds_are_under_way(sampler)) {
		sampler->orders_cpu_ns = 0;
		return;
	}
	begin_orders(sampler, ticked);
	while (sampler->mail && !sampler->stopping && (may_read || sampler_has_time(sampler, MAIL_NS))) {
		read_mail(sampler);
		may_read = false;
	}
	rounds_turn(sampler, ticked);
	end_orders(sampler);
}

/* Is the sampler in its way? */
static void mind(struct sampler *sampler, struct target *target)
{
	struct activity_place place;

	if (!perch_suspects(&sampler->perch, target->disturbed))
		return;
	target->disturbed = 0;
	if (activity_read_place(php_process_activity(target->process), &place) == 0 && place.ready)
		perch_note(&sampler->perch, place.cpu);
}

/* False: nothing was due. */
static bool tick(struct sampler *sampler)
{
	struct sampling *sampling = &sampler->sampling;
	unsigned served = cadences_turn(&sampler->cadences, monotonic_now_ns());

	if (!served)
		return false;
	sampler->ticks++;
	perch_wake(&sampler->perch, sched_getcpu());
	budget_count_ticks(&sampling->budget, served);
	/* Backwards: when one is removed, those behind it, which were served already, move up. */
	for (size_t i = sampler->target_count; i-- > 0;) {
		struct target *target = sampler->targets[i];
		const struct cadence_due *due = cadences_due(&sampler->cadences, target->cadence);

		if (!due)
			continue;
		switch (target_tick(target, sampling, due)) {
		case TARGET_LIVES:
			sampler_follow_period(sampler, target, target->last_ns);
			mind(sampler, target);
			break;
		case TARGET_LOST:
			report_lost(sampler, &target->identity);
			remove_target(sampler, target);
			break;
		case TARGET_GONE:
			remove_target(sampler, target);
			break;
		}
	}
	/* Where every target is read from its own CPU there is no better one to be on. */
	if (sampling->options.placement != PLACEMENT_ALWAYS)
		perch_settle(&sampler->perch);
	rounds_follow_tick(sampler);
	return true;
}

/* To the earliest deadline, or to when rounds go on. */
static uint64_t wake_up_ns(const struct sampler *sampler)
{
	uint64_t latest_ns = monotonic_now_ns() + LONGEST_SLEEP_NS;
	uint64_t due_ns = rounds_due_ns(sampler);

	if (!due_ns)
		due_ns = cadences_deadline_ns(&sampler->cadences);
	return due_ns && due_ns < latest_ns ? due_ns : latest_ns;
}

static void ask_for_realtime(struct sampler *sampler)
{
	struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};

	sampler->realtime = sampler->sampling.options.realtime &&
			    pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest) == 0;
}

/* So that they don't keep the table of before. */
static void settle_retained(struct sampler *sampler)
{
	struct retention *retention = sampler->sampling.retention;
	size_t count = retention_count(retention);
	struct unit_result **units = calloc(count + 1, sizeof(struct unit_result *));

	if (!units)
		return;
	for (size_t i = 0; i < count; i++)
		units[i] = unit_result_ref(retention_nth(retention, i));
	bookkeeper_settle(sampler->bookkeeper, units, count);
}

static void prune_frames(struct sampler *sampler, uint64_t now_ns)
{
	struct sampling *sampling = &sampler->sampling;
	_cleanup_free_ struct calltree **trees = NULL;
	size_t count = 0;

	if (!frame_pruning_is_due(&sampling->pruning, sampling->frames, now_ns))
		return;
	/* Without memory for it the next one may do. */
	trees = calloc(sampler->target_count * 2 + 1, sizeof(struct calltree *));
	if (!trees)
		return;
	for (size_t i = 0; i < sampler->target_count; i++) {
		trees[count++] = sampler->targets[i]->window.tree;
		if (sampler->targets[i]->unit.open)
			trees[count++] = sampler->targets[i]->unit.tree;
	}
	if (sampling_prune_frames(sampling, trees, count) == 0)
		settle_retained(sampler);
}

static void keep_to_budget(struct sampler *sampler, uint64_t now_ns)
{
	struct budget *budget = &sampler->sampling.budget;

	if (!budget_is_due(budget, now_ns))
		return;
	budget_settle(budget, now_ns, thread_cpu_ns(), cadences_asked_mhz(&sampler->cadences));
	cadences_stretch(&sampler->cadences, budget->stretch_ppm);
	atomic_store_explicit(&sampler->limit_ppm, budget->limit_ppm, memory_order_relaxed);
	atomic_store_explicit(&sampler->demand_ppm, budget->demand_ppm, memory_order_relaxed);
	atomic_store_explicit(&sampler->stretch_ppm, budget->stretch_ppm, memory_order_relaxed);
}

static void keep_house(struct sampler *sampler)
{
	uint64_t now_ns = monotonic_now_ns();

	keep_to_budget(sampler, now_ns);
	if (now_ns - sampler->housekeeping_ns < HOUSEKEEPING_NS)
		return;
	sampler->housekeeping_ns = now_ns;
	sampling_expire(&sampler->sampling, now_ns);
	prune_frames(sampler, now_ns);
}

/* The tick may have found it gone by itself. */
static void remove_ended(struct sampler *sampler, const struct target *ended)
{
	for (size_t i = 0; i < sampler->target_count; i++) {
		if (sampler->targets[i] != ended)
			continue;
		remove_target(sampler, sampler->targets[i]);
		break;
	}
}

static void turn(struct sampler *sampler)
{
	struct epoll_event events[EVENTS_AT_ONCE];
	int count = sleep_until(sampler->epoll_fd, events, EVENTS_AT_ONCE, wake_up_ns(sampler));
	bool ticked;

	atomic_fetch_add_explicit(&sampler->heartbeat, 1, memory_order_relaxed);
	ticked = tick(sampler);
	for (int i = 0; i < count; i++) {
		if (events[i].data.ptr)
			remove_ended(sampler, events[i].data.ptr);
		else
			take_mail(sampler);
	}
	answer(sampler, ticked);
	keep_house(sampler);
}

/* For who empties the mailbox. */
static void put_mail_back(struct sampler *sampler)
{
	while (sampler->mail)
		mailbox_post(sampler->inbox, next_mail(sampler));
}

void *sampler_run(void *context)
{
	struct sampler *sampler = context;
	char name[16] = "sampler"; /* the kernel takes 15 bytes */

	if (sampler->sampling.options.threads > 1)
		snprintf(name, sizeof(name), "sampler/%u", sampler->sampling.place);
	pthread_setname_np(pthread_self(), name);
	ask_for_realtime(sampler);
	presence_observer_init(&sampler->sampling.observer);
	while (!sampler->stopping)
		turn(sampler);
	rounds_end(sampler);
	put_mail_back(sampler);
	while (sampler->target_count)
		remove_target(sampler, sampler->targets[0]);
	return NULL;
}
