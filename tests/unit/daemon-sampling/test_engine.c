/* SPDX-License-Identifier: MIT
 *
 * The engine with its threads, on real PHP processes: what it samples, what it is ordered, how it ends.
 */
#include <dirent.h>

#include "engine_fixture.h"

/* ---- sampling ---- */

/* Neither on a CPU nor queued for one: @function itself. */
static uint64_t waited_ns(const struct profile *of, const char *function)
{
	uint64_t waited_ns = 0;

	for (size_t i = 0; i < of->node_count; i++) {
		const struct profile_node *node = &of->nodes[i];

		if (strcmp(of->frames[node->frame].name, function) == 0)
			waited_ns += node->wall_ns - node->cpu_ns - node->queue_ns;
	}
	return waited_ns;
}

static void a_process_is_attached_and_its_profile_says_what_it_does(void **state)
{
	attach(php.pid);
	assert_string_equal(report(php.pid).sapi, "cli");
	await(is_expected, 750); /* some hundred of them find it on a CPU, however busy the machine */

	_cleanup_(profile_freep) struct profile *seen = profile();
	struct profile_node sum = profile_sum(seen);
	/* 40 % at work in hot, 60 % asleep under nap; in between it queues, on a machine that is busy with
	 * other things */
	assert_in_range(share_of(seen, "hot").total_cpu_ns * 100 / sum.cpu_ns, 75, 100);
	assert_in_range(waited_ns(seen, "usleep") * 100 / (sum.wall_ns - sum.cpu_ns - sum.queue_ns), 90, 100);
	assert_in_range(waited_ns(seen, "usleep") * 100 / (sum.wall_ns - sum.queue_ns), 35, 95);
	assert_int_equal(share_of(seen, "{main}").total_samples, sum.samples);
	assert_int_equal(sum.samples,
		seen->accounting.taken + seen->accounting.unchanged + seen->accounting.torn_lost);
	assert_in_range(seen->accounting.unchanged, 1, seen->accounting.expected);
	assert_int_equal(seen->period_ns, 2 * MS);
}

/* The deadlines of two processes so far, as of one moment. */
static void count_both(pid_t one, pid_t two, uint64_t *ret_one, uint64_t *ret_two)
{
	_cleanup_(order_freep) struct order *order = ask(new_order(ORDER_TARGETS, 0));

	assert_int_equal(order->target_count, 2);
	for (size_t i = 0; i < 2; i++) {
		if (order->targets[i].pid == one)
			*ret_one = order->targets[i].accounting.expected;
		if (order->targets[i].pid == two)
			*ret_two = order->targets[i].accounting.expected;
	}
}

static void two_processes_are_looked_at_alike(void **state)
{
	uint64_t one = 0, two = 0, one_later = 0, two_later = 0;
	struct live_php other;

	assert_int_equal(live_start(&other, &build, (const char *[]){NULL}, WORK, NULL), 0);
	attach(php.pid);
	attach(other.pid);
	await(is_expected, 20);
	count_both(php.pid, other.pid, &one, &two);
	await(is_expected, one + two + 100);
	count_both(php.pid, other.pid, &one_later, &two_later);
	one_later -= one;
	two_later -= two;
	if (threads == 1)
		assert_int_equal(two_later, one_later);
	/* Other samplers have deadlines of their own, and are asked a little later. */
	assert_in_range(two_later, one_later / 2, one_later * 2);
	live_stop(&other);
	await(is_target_count, 1);
}

static void a_suspended_target_is_not_looked_at_and_a_resumed_one_is(void **state)
{
	uint64_t ticks, resumed_ns;

	attach(php.pid);
	await(is_expected, 20);
	order_free(ask(new_order(ORDER_SUSPEND, php.pid)));
	assert_true(report(php.pid).suspended);
	ticks = expected_ticks();
	nanosleep(&(struct timespec){.tv_nsec = 100 * MS}, NULL);
	assert_int_equal(expected_ticks(), ticks);
	resumed_ns = monotonic_now_ns();
	order_free(ask(new_order(ORDER_RESUME, php.pid)));
	assert_false(report(php.pid).suspended);
	await(is_expected, ticks + 10);
	/* None of the deadlines while it was suspended: they are half a period apart at least. */
	ticks = expected_ticks() - ticks;
	assert_true(ticks <= (monotonic_now_ns() - resumed_ns) / (1 * MS) + 1);
}

static void what_is_suspended_as_a_whole_stays_so_for_who_comes_later(void **state)
{
	order_free(ask(new_order(ORDER_SUSPEND, 0)));
	attach(php.pid);
	assert_true(report(php.pid).suspended);
	assert_int_equal(report(php.pid).accounting.expected, 0);
	order_free(ask(new_order(ORDER_RESUME, 0)));
	await(is_expected, 5);
}

static void a_reset_begins_a_new_window(void **state)
{
	attach(php.pid);
	await(is_expected, 100);
	order_free(ask(new_order(ORDER_RESET, 0)));
	assert_true(expected_ticks() < 100);
	await(is_expected, 100);
	/* What the target has done since it was attached stays known. */
	assert_true(report(php.pid).accounting.expected >= 200);
}

static struct order *rate(uint64_t period_ns)
{
	struct order *order = new_order(ORDER_RATE, 0);

	order->period_ns = period_ns;
	return order;
}

static void another_rate_is_taken_at_once_and_by_who_comes_later(void **state)
{
	struct live_php other;

	assert_int_equal(live_start(&other, &build, (const char *[]){NULL}, WORK, NULL), 0);
	order_free(ask(rate(1000 * MS)));
	attach(php.pid);
	assert_int_equal(report(php.pid).period_ns, 1000 * MS);
	order_free(ask(rate(1 * MS)));
	assert_int_equal(report(php.pid).period_ns, 1 * MS);
	/* The deadline of before may be a second and a half away: long before it there are these. */
	uint64_t asked_ns = monotonic_now_ns();
	await(is_expected, 50);
	assert_true(monotonic_now_ns() - asked_ns < 400 * MS);
	attach(other.pid);
	assert_int_equal(report(other.pid).period_ns, 1 * MS);
	live_stop(&other);
}

static void a_reload_ends_the_rate_that_was_ordered(void **state)
{
	struct engine_options with = options();

	attach(php.pid);
	order_free(ask(rate(1 * MS)));
	with.period_ns = 5 * MS;
	assert_int_equal(engine_reconfigure(engine, &with), 0);
	assert_int_equal(report(php.pid).period_ns, 5 * MS);
}

static void a_rate_out_of_bounds_is_refused_with_the_bounds(void **state)
{
	_cleanup_(order_freep) struct order *order = rate(1);

	assert_int_equal(engine_ask(engine, order, DEADLINE_NS), 0);
	assert_int_equal(order->error, ORDER_E_RANGE);
	assert_non_null(strstr(order->why, "100 us"));
	assert_non_null(strstr(order->why, "1000000 us"));
}

/* ---- finish ---- */

static struct order *finish_order(uid_t uid)
{
	struct order *order = new_order(ORDER_FINISH, php.pid);

	order->uid = uid;
	return order;
}

static void a_workers_unit_is_finished_for_its_own_user(void **state)
{
	attach(php.pid);
	await(is_expected, 50);
	assert_int_equal(error_of(finish_order(getuid() + 1)), ORDER_E_NOT_A_TARGET);

	_cleanup_(order_freep) struct order *order = ask(finish_order(getuid()));
	assert_int_equal(unit_result_settle(order->unit), 0);
	struct profile_node sum = profile_sum(order->unit->profile);
	assert_int_equal(sum.wall_ns, order->unit->duration_ns);
	assert_int_equal(sum.cpu_ns, order->unit->cpu_ns);
	assert_true(order->unit->finished_by_client);
	assert_true(accounting_is_balanced(&order->unit->accounting));
	assert_true(order->unit->accounting.expected >= 45);
	assert_int_equal(error_of(finish_order(getuid())), ORDER_E_NO_UNIT);
}

static void a_process_nobody_samples_is_no_target(void **state)
{
	assert_int_equal(error_of(new_order(ORDER_FINISH, php.pid)), ORDER_E_NOT_A_TARGET);
	assert_int_equal(error_of(new_order(ORDER_WORKER, php.pid)), ORDER_E_NOT_A_TARGET);
	attach(php.pid);
	_cleanup_(order_freep) struct order *order = ask(new_order(ORDER_WORKER, php.pid));
	assert_int_equal(order->target_count, 1);
	assert_int_equal(order->targets[0].pid, php.pid);
}

/* ---- the end ---- */

static void orders_come_back_when_the_engine_stops(void **state)
{
	static const enum order_verb verbs[] = {
		ORDER_TARGETS, ORDER_FINISH, ORDER_ATTACH, ORDER_PROFILE, ORDER_WORKER, ORDER_DETACH};
	size_t submitted = 0, back = 0;

	attach(php.pid);
	for (int i = 0; i < 50; i++)
		for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++, submitted++)
			engine_submit(engine, new_order(verbs[v], verbs[v] == ORDER_PROFILE ? 0 : 1));
	engine_stop(engine);
	for (struct message *mail = mailbox_take_all(replies), *next; mail; mail = next, back++) {
		next = mail->next;
		order_free((struct order *)mail);
	}
	assert_int_equal(back, submitted);
	assert_int_equal(error_of(new_order(ORDER_TARGETS, 0)), ORDER_E_STOPPING);
}

static void the_loop_shows_that_it_turns(void **state)
{
	uint64_t give_up_ns = monotonic_now_ns() + DEADLINE_NS;

	engine_is_alive(engine);
	/* Nothing to sample: it turns all the same. */
	while (!engine_is_alive(engine)) {
		assert_true(monotonic_now_ns() < give_up_ns);
		live_pause();
	}
	engine_stop(engine);
	engine_is_alive(engine);
	assert_false(engine_is_alive(engine));
}

static int count_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static void nothing_is_left_open(void **state)
{
	int first = 0;

	for (int i = 0; i < 3; i++) {
		struct engine_options with = options();
		struct live_php other;

		engine_free(engine);
		engine = NULL;
		assert_int_equal(engine_new(&with, &engine), 0);
		assert_int_equal(engine_start(engine), 0);
		assert_int_equal(live_start(&other, &build, (const char *[]){NULL}, WORK, NULL), 0);
		attach(php.pid);
		attach(other.pid);
		order_free(ask(new_order(ORDER_DETACH, other.pid)));
		attach(other.pid);
		live_stop(&other);
		await(is_target_count, 1);
		/* By then the samplers have what they keep open for themselves. */
		await(is_expected, 1);
		order_free(ask(new_order(ORDER_DETACH, php.pid)));
		if (i == 0)
			first = count_descriptors();
	}
	assert_int_equal(count_descriptors(), first);
}

int main(void)
{
#define ENGINE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ENGINE_TEST(a_process_is_attached_and_its_profile_says_what_it_does),
		ENGINE_TEST(two_processes_are_looked_at_alike),
		ENGINE_TEST(a_suspended_target_is_not_looked_at_and_a_resumed_one_is),
		ENGINE_TEST(what_is_suspended_as_a_whole_stays_so_for_who_comes_later),
		ENGINE_TEST(a_reset_begins_a_new_window),
		ENGINE_TEST(another_rate_is_taken_at_once_and_by_who_comes_later),
		ENGINE_TEST(a_reload_ends_the_rate_that_was_ordered),
		ENGINE_TEST(a_rate_out_of_bounds_is_refused_with_the_bounds),
		ENGINE_TEST(a_workers_unit_is_finished_for_its_own_user),
		ENGINE_TEST(a_process_nobody_samples_is_no_target),
		ENGINE_TEST(orders_come_back_when_the_engine_stops),
		ENGINE_TEST(the_loop_shows_that_it_turns),
		ENGINE_TEST(nothing_is_left_open),
	};

	return run_with_threads(tests, sizeof(tests) / sizeof(tests[0]), 4);
}
