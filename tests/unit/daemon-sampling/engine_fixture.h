/* SPDX-License-Identifier: MIT
 *
 * An engine with its threads, a PHP process that works and sleeps in turn, and ways to ask about both. What
 * it says must not depend on how many threads sample, so each test runs with one, and with more.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "tests/unit/reader/live_php.h"
#include "daemon/sampling/clock.h"
#include "daemon/sampling/engine.h"

#define MS 1000000ull
#define DEADLINE_NS (20000 * MS)
#define WORK "tests/unit/daemon-sampling/php/work.php"

static struct live_build build;
static struct live_php php;
static struct engine *engine;
static uint32_t threads;
static struct mailbox *replies;

static inline struct engine_options options(void)
{
	return (struct engine_options){
		.period_ns = 2 * MS,
		.min_period_ns = MS / 10,
		.max_period_ns = 1000 * MS,
		.max_depth = 100,
		.threads = threads,
		.max_targets = 8,
		.max_frames = 1000,
		.max_nodes = 1000,
		.retained_units = 100,
		.retained_bytes = 1 << 20,
		.retained_ns = 60000 * MS,
		.auto_max_ns = 60000 * MS,
		.discovery_interval_ns = 10 * MS,
	};
}

static inline int start_php(void **state)
{
	struct live_build builds[LIVE_MAX_BUILDS];

	if (live_builds(builds) == 0)
		return -1;
	build = builds[0];
	return live_start(&php, &build, (const char *[]){NULL}, WORK, NULL);
}

static inline int stop_php(void **state)
{
	live_stop(&php);
	return 0;
}

static inline int set_up(void **state)
{
	struct engine_options with = options();

	if (mailbox_new(&replies) < 0 || engine_new(&with, &engine) < 0)
		return -1;
	return engine_start(engine);
}

static inline int tear_down(void **state)
{
	if (engine)
		engine_free(engine);
	engine = NULL;
	mailbox_free(replies);
	return 0;
}

/* ---- asking ---- */

static inline struct order *new_order(enum order_verb verb, pid_t pid)
{
	struct order *order = NULL;

	assert_int_equal(order_new(verb, &order), 0);
	order->pid = pid;
	order->reply_to = replies;
	return order;
}

/* Frees @order; its answer is gone. */
static inline enum order_error error_of(struct order *order)
{
	enum order_error error;

	assert_int_equal(engine_ask(engine, order, DEADLINE_NS), 0);
	error = order->error;
	order_free(order);
	return error;
}

static inline struct order *ask(struct order *order)
{
	assert_int_equal(engine_ask(engine, order, DEADLINE_NS), 0);
	if (order->error)
		print_message("%s\n", order->why);
	assert_int_equal(order->error, ORDER_OK);
	return order;
}

static inline void attach(pid_t pid)
{
	_cleanup_(order_freep) struct order *order = ask(new_order(ORDER_ATTACH, pid));

	assert_int_equal(order->affected, 1);
}

static inline size_t count_targets(void)
{
	_cleanup_(order_freep) struct order *order = ask(new_order(ORDER_TARGETS, 0));

	return order->target_count;
}

static inline struct target_report report(pid_t pid)
{
	_cleanup_(order_freep) struct order *order = ask(new_order(ORDER_TARGETS, pid));

	assert_int_equal(order->target_count, 1);
	return order->targets[0];
}

static inline struct profile *profile(void)
{
	_cleanup_(order_freep) struct order *order = ask(new_order(ORDER_PROFILE, 0));

	assert_true(accounting_is_balanced(&order->profile->accounting));
	return TAKE(order->profile);
}

static inline uint64_t expected_ticks(void)
{
	_cleanup_(profile_freep) struct profile *now = profile();

	return now->accounting.expected;
}

/* Waits until @is_so(@argument). */
static inline void await(bool (*is_so)(uint64_t argument), uint64_t argument)
{
	uint64_t give_up_ns = monotonic_now_ns() + DEADLINE_NS;

	while (!is_so(argument)) {
		assert_true(monotonic_now_ns() < give_up_ns);
		live_pause();
	}
}

static inline bool is_expected(uint64_t ticks)
{
	return expected_ticks() >= ticks;
}

static inline bool is_target_count(uint64_t count)
{
	return count_targets() == count;
}

static inline struct profile_function share_of(const struct profile *of, const char *function)
{
	struct profile_function *functions = NULL, found = {0};
	size_t count = 0;

	assert_int_equal(profile_functions(of, PROFILE_BY_SELF_WALL, &functions, &count), 0);
	for (size_t i = 0; i < count; i++)
		if (strcmp(of->frames[functions[i].frame].name, function) == 0)
			found = functions[i];
	free(functions);
	return found;
}

/* Runs @tests with one to @most samplers. */
static inline int run_with_threads(const struct CMUnitTest *tests, size_t count, uint32_t most)
{
	int failed = 0;

	for (threads = 1; threads <= most; threads++) {
		print_message("[ THREADS  ] %u\n", threads);
		failed += _cmocka_run_group_tests("engine", tests, count, start_php, stop_php);
	}
	return failed;
}
