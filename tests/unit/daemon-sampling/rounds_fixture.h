/* SPDX-License-Identifier: MIT
 *
 * Some samplers and a bookkeeper without their threads: time passes when a test says so, and each of them
 * does one thing at a turn. Five targets, each with a full window, on the samplers that their numbers say.
 */
#pragma once

#include "daemon/sampling/samplers.h"
#include "fake_process.h"

#define TARGETS 5
#define FUNCTIONS 3000 /* their nodes are more than a step copies */

static struct samplers samplers;
static struct bookkeeper *bookkeeper;
static struct mailbox *replies;
static struct refusals refusals;
static struct engine_options options;
static uint32_t threads = 1;

/* What the windows are filled with: the same functions on each sampler, and other numbers for them. */
static uint32_t frames[ENGINE_MAX_THREADS][FUNCTIONS];

static inline void intern_functions(struct sampler *sampler)
{
	unsigned place = sampler->sampling.place;
	char name[16];

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		uint32_t function = (i + place * 7) % FUNCTIONS;

		snprintf(name, sizeof(name), "f%u", function);
		frames[place][function] = frame_table_intern(sampler->sampling.frames,
			&(struct function_name){.name = name, .file = "/srv/a.php", .line = function});
	}
}

static inline struct target *add_target(pid_t pid, const char *pool)
{
	struct sampler *sampler = samplers_owner(&samplers, pid);
	struct target *target = fake_target(&sampler->sampling);

	target->identity.pid = pid;
	snprintf(target->identity.pool, sizeof(target->identity.pool), "%s", pool);
	target->serial = ++sampler->last_serial;
	sampler->targets[sampler->target_count++] = target;
	return target;
}

/* A sample in each function, 1 us of CPU apiece. */
static inline void fill(struct target *target)
{
	const struct sampler *sampler = samplers_owner(&samplers, target->identity.pid);
	struct activity_clocks clocks = {0};
	uint64_t now_ns = fake.now_ns;
	bool overflow;

	ledger_open(&target->window, now_ns, &clocks);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		uint32_t node = calltree_child(
			target->window.tree, CALLTREE_ROOT, frames[sampler->sampling.place][i], 1, &overflow);

		calltree_node(target->window.tree, node)->samples++;
		ledger_sample(&target->window, node, PRESENCE_RUNNING, now_ns += 1000);
	}
	clocks.run_ns = FUNCTIONS * 1000;
	ledger_close(&target->window, now_ns, &clocks);
	target->window_accounting = (struct accounting){.expected = FUNCTIONS, .taken = FUNCTIONS};
}

static inline int set_up(void **state)
{
	options = fake_options();
	options.threads = threads;
	options.max_nodes = 20000;
	options.max_frames = 10000;
	options.max_targets = 16;
	memset(&fake, 0, sizeof(fake));
	fake.now_ns = START_NS;
	fake_idle();
	refusals_init(&refusals);
	memset(&samplers, 0, sizeof(samplers));
	if (bookkeeper_new(&options, &bookkeeper) < 0 || mailbox_new(&replies) < 0 ||
		samplers_init(&samplers, &options,
			&(struct sampler_neighbours){.bookkeeper = bookkeeper, .refusals = &refusals}) < 0)
		return -1;
	for (unsigned i = 0; i < threads; i++)
		intern_functions(samplers.items[i]);
	for (pid_t pid = 1; pid <= TARGETS; pid++)
		fill(add_target(pid, pid == TARGETS ? "api" : "www"));
	return 0;
}

static inline int tear_down(void **state)
{
	for (unsigned i = 0; i < threads; i++) {
		struct sampler *sampler = samplers.items[i];

		rounds_end(sampler);
		while (sampler->target_count)
			target_free(sampler->targets[--sampler->target_count], &sampler->sampling);
	}
	samplers_deinit(&samplers);
	bookkeeper_free(bookkeeper);
	refusals_deinit(&refusals);
	for (struct message *mail = mailbox_take_all(replies), *next; mail; mail = next) {
		next = mail->next;
		order_free((struct order *)mail);
	}
	mailbox_free(replies);
	return 0;
}

/* What has arrived. */
static inline void read_mail(struct sampler *sampler)
{
	for (struct message *mail = mailbox_take_all(sampler->inbox), *next; mail; mail = next) {
		next = mail->next;
		if (mail->kind == SAMPLER_RECONFIGURE) {
			sampler_reconfigure(sampler, &((struct sampler_command *)mail)->options);
			free(mail);
		} else {
			sampler_answer(sampler, (struct order *)mail);
		}
	}
}

/* One step of each. The bookkeeper has time. */
static inline void turn(void)
{
	for (unsigned i = 0; i < threads; i++) {
		read_mail(samplers.items[i]);
		rounds_turn(samplers.items[i], false);
	}
	bookkeeper_turn(bookkeeper);
}

static inline struct order *submit(struct order *order)
{
	order->reply_to = replies;
	samplers_submit(&samplers, order);
	read_mail(samplers.items[0]);
	return order;
}

static inline struct order *begin(enum order_verb verb, const char *pool)
{
	struct order *order = NULL;

	assert_int_equal(order_new(verb, &order), 0);
	snprintf(order->pool, sizeof(order->pool), "%s", pool);
	order->limit = 1000;
	order->period_ns = 20 * MS;
	return submit(order);
}

/* Goes on until @order is back; the steps it took. */
static inline unsigned finish(const struct order *order)
{
	struct message *mail;
	unsigned steps = 0;

	for (; !(mail = mailbox_take_all(replies)); steps++) {
		assert_true(steps < 1000);
		turn();
	}
	assert_ptr_equal(mail, &order->message);
	return steps;
}

/* Its target ends. */
static inline void leave(pid_t pid)
{
	struct sampler *sampler = samplers_owner(&samplers, pid);
	struct target *target = sampler_find(sampler, pid);
	struct window *window;
	size_t place = 0;

	while (sampler->targets[place] != target)
		place++;
	rounds_forget(sampler, target);
	assert_int_equal(window_take(target, &sampler->sampling, &window), 0);
	bookkeeper_add(bookkeeper, window);
	memmove(sampler->targets + place, sampler->targets + place + 1,
		(--sampler->target_count - place) * sizeof(struct target *));
	target_free(target, &sampler->sampling);
}
