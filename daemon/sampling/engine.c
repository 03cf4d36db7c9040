/* SPDX-License-Identifier: MIT
 *
 * The threads, and who gets which order.
 */
#include "daemon/sampling/engine.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/sampling/bookkeeper.h"
#include "daemon/sampling/clock.h"
#include "daemon/sampling/samplers.h"
#include "daemon/sampling/scout.h"

/* A thread that has not ended by then hangs. */
#define STOP_TIMEOUT_S 3

struct engine {
	struct engine_options options;
	struct samplers samplers;
	struct scout *scout;
	struct bookkeeper *bookkeeper;
	struct mailbox *scout_inbox;
	pthread_t scout_thread, bookkeeper_thread;
	struct message stop_scout;
	bool running;
	bool stuck; /* a thread would not end */
};

int engine_new(const struct engine_options *options, struct engine **ret_engine)
{
	_cleanup_(engine_freep) struct engine *engine = NULL;
	int r;

	if (options->threads == 0 || options->threads > ENGINE_MAX_THREADS)
		return -EINVAL;
	engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	engine->options = *options;
	engine->stop_scout.kind = SCOUT_STOP;
	r = mailbox_new(&engine->scout_inbox);
	if (r < 0)
		return r;
	r = bookkeeper_new(options, &engine->bookkeeper);
	if (r < 0)
		return r;
	r = scout_new(options, engine->scout_inbox, &engine->samplers, &engine->scout);
	if (r < 0)
		return r;
	r = samplers_init(&engine->samplers, options,
		&(struct sampler_neighbours){
			.bookkeeper = engine->bookkeeper,
			.scout = engine->scout_inbox,
			.refusals = scout_refusals(engine->scout),
		});
	if (r < 0)
		return r;
	*ret_engine = TAKE(engine);
	return 0;
}

/* -ETIMEDOUT: it does not end, since it hangs in the kernel, reading memory that does not answer
 * (userfaultfd, a dead network file system). */
static int stop_scout(struct engine *engine)
{
	struct timespec give_up;

	mailbox_post(engine->scout_inbox, &engine->stop_scout);
	clock_gettime(CLOCK_REALTIME, &give_up);
	give_up.tv_sec += STOP_TIMEOUT_S;
	return -pthread_timedjoin_np(engine->scout_thread, NULL, &give_up);
}

static void stop_bookkeeper(struct engine *engine)
{
	bookkeeper_stop(engine->bookkeeper);
	pthread_join(engine->bookkeeper_thread, NULL);
}

int engine_start(struct engine *engine)
{
	int error = pthread_create(&engine->bookkeeper_thread, NULL, bookkeeper_run, engine->bookkeeper);

	if (error)
		return -error;
	error = -samplers_start(&engine->samplers);
	if (error) {
		stop_bookkeeper(engine);
		return -error;
	}
	error = pthread_create(&engine->scout_thread, NULL, scout_run, engine->scout);
	if (error) {
		samplers_stop(&engine->samplers);
		stop_bookkeeper(engine);
		return -error;
	}
	engine->running = true;
	return 0;
}

static void send_back(struct order *order)
{
	order->error = ORDER_E_STOPPING;
	mailbox_post(order->reply_to, &order->message);
}

static void empty_scout_inbox(struct mailbox *inbox)
{
	struct message *mail = mailbox_take_all(inbox);

	while (mail) {
		struct message *next = mail->next;

		if (mail->kind == SCOUT_ORDER) {
			send_back((struct order *)mail);
		} else {
			free(((struct scout_command *)mail)->selectors);
			free(mail);
		}
		mail = next;
	}
}

int engine_stop(struct engine *engine)
{
	int scout, samplers;

	if (!engine->running)
		return engine->stuck ? -ETIMEDOUT : 0;
	engine->running = false;
	scout = stop_scout(engine);
	samplers = samplers_stop(&engine->samplers);
	engine->stuck = scout < 0 || samplers < 0;
	if (engine->stuck)
		return -ETIMEDOUT;
	/* What they have sent each other while they ended. */
	empty_scout_inbox(engine->scout_inbox);
	samplers_empty(&engine->samplers);
	/* It answers what it has been sent last. */
	stop_bookkeeper(engine);
	return 0;
}

void engine_free(struct engine *engine)
{
	/* What a thread that hangs may still use is left to it. */
	if (engine_stop(engine) < 0)
		return;
	samplers_deinit(&engine->samplers);
	if (engine->scout)
		scout_free(engine->scout);
	if (engine->bookkeeper)
		bookkeeper_free(engine->bookkeeper);
	if (engine->scout_inbox) {
		empty_scout_inbox(engine->scout_inbox);
		mailbox_free(engine->scout_inbox);
	}
	free(engine);
}

static struct scout_command *scout_command_new(enum scout_message kind)
{
	struct scout_command *command = calloc(1, sizeof(*command));

	if (command)
		command->message.kind = kind;
	return command;
}

int engine_select(struct engine *engine, const struct selector *selectors, size_t count)
{
	struct scout_command *command = scout_command_new(SCOUT_SELECT);

	if (!command)
		return -ENOMEM;
	command->selectors = calloc(count + 1, sizeof(*selectors));
	if (!command->selectors) {
		free(command);
		return -ENOMEM;
	}
	memcpy(command->selectors, selectors, count * sizeof(*selectors));
	command->selector_count = count;
	mailbox_post(engine->scout_inbox, &command->message);
	return 0;
}

int engine_reconfigure(struct engine *engine, const struct engine_options *options)
{
	struct scout_command *to_scout = scout_command_new(SCOUT_RECONFIGURE);
	int r;

	if (!to_scout)
		return -ENOMEM;
	to_scout->options = *options;
	/* What there is one of for each, or room for. */
	to_scout->options.max_targets = engine->options.max_targets;
	to_scout->options.threads = engine->options.threads;
	r = samplers_reconfigure(&engine->samplers, &to_scout->options);
	if (r < 0)
		free(to_scout);
	else
		mailbox_post(engine->scout_inbox, &to_scout->message);
	return r;
}

void engine_submit(struct engine *engine, struct order *order)
{
	order->message.kind = 0;
	order->asked_ns = monotonic_now_ns();
	if (!engine->running)
		send_back(order);
	else if (order->verb == ORDER_ATTACH || order->verb == ORDER_DETACH)
		mailbox_post(engine->scout_inbox, &order->message);
	else
		samplers_submit(&engine->samplers, order);
}

int engine_ask(struct engine *engine, struct order *order, uint64_t timeout_ns)
{
	_cleanup_(mailbox_freep) struct mailbox *reply = NULL;
	struct pollfd arrival;
	int r = mailbox_new(&reply);

	if (r < 0)
		return r;
	order->reply_to = reply;
	engine_submit(engine, order);
	arrival = (struct pollfd){.fd = mailbox_fd(reply), .events = POLLIN};
	do
		r = poll(&arrival, 1, (int)(timeout_ns / 1000000u));
	while (r < 0 && errno == EINTR);
	if (r > 0 && mailbox_take_all(reply))
		return 0;
	/* It is still under way, and will come back to a mailbox that must be there: both are given up. */
	reply = NULL;
	return -ETIMEDOUT;
}

bool engine_is_alive(struct engine *engine)
{
	return samplers_are_alive(&engine->samplers);
}

struct budget_report engine_budget(struct engine *engine)
{
	return samplers_budget(&engine->samplers);
}

size_t engine_selector_reports(struct engine *engine, struct selector_report *ret_reports, size_t max)
{
	return harvest_copy(scout_harvest(engine->scout), ret_reports, max);
}

size_t engine_refusals(struct engine *engine, struct refusal *ret_refusals, size_t max)
{
	return refusals_copy(scout_refusals(engine->scout), ret_refusals, max);
}
