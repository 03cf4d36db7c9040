/* SPDX-License-Identifier: MIT
 *
 * The ledger against a process whose true timeline is known: a small simulated one, with a clock that lags
 * while it runs as the kernel's does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/profile/frame_table.h"
#include "daemon/sampling/cadence.h"
#include "daemon/sampling/ledger.h"

#define MS 1000000ull

static struct calltree *tree, *result;
static struct frame_table *frames;
static struct ledger ledger;

static int set_up(void **state)
{
	if (calltree_new(1024, &tree) < 0 || calltree_new(1024, &result) < 0 ||
		frame_table_new(100, 0, &frames) < 0)
		return -1;
	ledger_init(&ledger, tree);
	return 0;
}

static int tear_down(void **state)
{
	calltree_free(tree);
	calltree_free(result);
	frame_table_free(frames);
	return 0;
}

static uint32_t function(uint32_t number)
{
	bool overflow;

	return calltree_child(tree, CALLTREE_ROOT, FRAME_FIRST_PHP + number, 1, &overflow);
}

static struct calltree_node *of(uint32_t frame, uint32_t line)
{
	bool overflow;

	return calltree_node(result, calltree_child(result, CALLTREE_ROOT, frame, line, &overflow));
}

static struct calltree_node *of_function(uint32_t number)
{
	return of(FRAME_FIRST_PHP + number, 1);
}

static struct activity_clocks at(uint64_t run_ns, uint64_t queue_ns)
{
	return (struct activity_clocks){.run_ns = run_ns, .queue_ns = queue_ns};
}

/* Closes the ledger and turns it into time, in @result. */
static void settle(uint64_t now_ns, struct activity_clocks clocks)
{
	struct weighed_times times;
	struct weighed_tree taken;

	ledger_close(&ledger, now_ns, &clocks);
	times = ledger_times(&ledger, now_ns, &clocks);
	assert_int_equal(ledger_take_tree(&ledger, &times, frames, &taken), 0);
	assert_int_equal(calltree_count(tree), 1);
	assert_int_equal(weighed_tree_settle(&taken), 0);
	assert_int_equal(calltree_add(result, taken.nodes, taken.count), 0);
	weighed_tree_deinit(&taken);
}

static void assert_sums(uint64_t wall_ns, uint64_t cpu_ns, uint64_t queue_ns)
{
	struct calltree_node sum = calltree_sum(result);

	assert_int_equal(sum.wall_ns, wall_ns);
	assert_int_equal(sum.cpu_ns, cpu_ns);
	assert_int_equal(sum.queue_ns, queue_ns);
}

static void time_on_the_cpu_goes_to_who_ran_and_the_rest_to_who_waited(void **state)
{
	uint32_t hot = function(0), wait = function(1);
	struct activity_clocks clocks = at(100 * MS, 5 * MS);

	/* 294 ms in hot, then 200 ms asleep in wait, looked at every 10 ms */
	ledger_open(&ledger, 1000 * MS, &clocks);
	for (uint64_t ms = 10; ms <= 290; ms += 10)
		ledger_sample(&ledger, hot, PRESENCE_RUNNING, (1000 + ms) * MS);
	for (uint64_t ms = 300; ms <= 490; ms += 10)
		ledger_sample(&ledger, wait, PRESENCE_WAITING, (1000 + ms) * MS);
	settle(1494 * MS, at(394 * MS, 5 * MS));

	assert_int_equal(of_function(0)->cpu_ns, 294 * MS);
	assert_int_equal(of_function(0)->wall_ns, 294 * MS);
	assert_int_equal(of_function(1)->cpu_ns, 0);
	assert_int_equal(of_function(1)->wall_ns, 200 * MS);
	assert_sums(494 * MS, 294 * MS, 0);
}

static void time_in_the_run_queue_is_charged_to_who_wanted_to_run_and_is_no_cpu(void **state)
{
	struct activity_clocks clocks = at(0, 0);

	ledger_open(&ledger, 0, &clocks);
	ledger_sample(&ledger, function(0), PRESENCE_RUNNING, 5 * MS);
	settle(10 * MS, at(4 * MS, 6 * MS));
	assert_int_equal(of_function(0)->cpu_ns, 4 * MS);
	assert_int_equal(of_function(0)->queue_ns, 6 * MS);
	assert_int_equal(of_function(0)->wall_ns, 10 * MS);
	assert_sums(10 * MS, 4 * MS, 6 * MS);
}

static void a_sample_weighs_as_much_as_the_time_it_stands_for(void **state)
{
	struct activity_clocks clocks = at(0, 0);

	/* a's sample comes after 30 ms (two ticks were missed), b's after 10 */
	ledger_open(&ledger, 0, &clocks);
	ledger_sample(&ledger, function(0), PRESENCE_RUNNING, 30 * MS);
	ledger_sample(&ledger, function(1), PRESENCE_RUNNING, 40 * MS);
	settle(40 * MS, at(40 * MS, 0));
	assert_in_range(of_function(0)->cpu_ns, 30 * MS - 10, 30 * MS + 10);
	assert_in_range(of_function(1)->cpu_ns, 10 * MS - 10, 10 * MS + 10);
	assert_sums(40 * MS, 40 * MS, 0);
}

static void time_nobody_watched_between_two_stretches_is_unread_with_its_cpu(void **state)
{
	struct activity_clocks clocks = at(700 * MS, 9 * MS);

	/* 5 ms in the function, 40 ms unwatched (12 of them on a CPU, 3 ready for one), 5 ms in it again */
	ledger_open(&ledger, 0, &clocks);
	ledger_sample(&ledger, function(0), PRESENCE_RUNNING, 5 * MS);
	clocks = at(705 * MS, 9 * MS);
	ledger_close(&ledger, 5 * MS, &clocks);
	clocks = at(717 * MS, 12 * MS);
	ledger_skip(&ledger, 45 * MS, &clocks);
	ledger_open(&ledger, 45 * MS, &clocks);
	ledger_sample(&ledger, function(0), PRESENCE_RUNNING, 50 * MS);
	settle(50 * MS, at(722 * MS, 12 * MS));
	assert_int_equal(of(FRAME_UNREAD, 0)->wall_ns, 40 * MS);
	assert_int_equal(of(FRAME_UNREAD, 0)->cpu_ns, 12 * MS);
	assert_int_equal(of(FRAME_UNREAD, 0)->queue_ns, 3 * MS);
	assert_int_equal(of_function(0)->cpu_ns, 10 * MS);
	assert_sums(50 * MS, 22 * MS, 3 * MS);
}

static void a_stretch_that_turns_out_to_be_unwatched_begins_anew(void **state)
{
	struct activity_clocks clocks = at(0, 0);

	ledger_open(&ledger, 0, &clocks);
	clocks = at(6 * MS, 0);
	ledger_skip(&ledger, 10 * MS, &clocks);
	ledger_sample(&ledger, function(0), PRESENCE_RUNNING, 15 * MS);
	settle(15 * MS, at(11 * MS, 0));
	assert_int_equal(of(FRAME_UNREAD, 0)->wall_ns, 10 * MS);
	assert_int_equal(of(FRAME_UNREAD, 0)->cpu_ns, 6 * MS);
	assert_int_equal(of_function(0)->wall_ns, 5 * MS);
	assert_sums(15 * MS, 11 * MS, 0);
}

static void a_closed_ledger_stays_as_it_is_when_it_is_closed_again(void **state)
{
	struct activity_clocks clocks = at(0, 0);

	ledger_open(&ledger, 0, &clocks);
	ledger_sample(&ledger, function(0), PRESENCE_RUNNING, 5 * MS);
	clocks = at(5 * MS, 0);
	ledger_close(&ledger, 5 * MS, &clocks);
	clocks = at(25 * MS, 0);
	ledger_close(&ledger, 30 * MS, &clocks);
	ledger_skip(&ledger, 35 * MS, &clocks);
	settle(35 * MS, at(25 * MS, 0));
	assert_int_equal(of_function(0)->wall_ns, 5 * MS);
	assert_int_equal(of(FRAME_UNREAD, 0)->wall_ns, 30 * MS);
	assert_sums(35 * MS, 25 * MS, 0);
}

static void a_unit_no_sample_saw_is_unread_as_a_whole(void **state)
{
	struct activity_clocks clocks = at(50 * MS, 0);

	ledger_open(&ledger, 0, &clocks);
	settle(5 * MS, at(52 * MS, 0));
	assert_int_equal(of(FRAME_UNREAD, 0)->wall_ns, 5 * MS);
	assert_int_equal(of(FRAME_UNREAD, 0)->cpu_ns, 2 * MS);
	assert_int_equal(of(FRAME_UNREAD, 0)->samples, 0);
	assert_sums(5 * MS, 2 * MS, 0);
}

static void more_cpu_than_wall_time_is_capped(void **state)
{
	struct activity_clocks clocks = at(0, 0);

	ledger_open(&ledger, 0, &clocks);
	ledger_sample(&ledger, function(0), PRESENCE_RUNNING, 5 * MS);
	settle(5 * MS, at(6 * MS, 0));
	assert_sums(5 * MS, 5 * MS, 0);
}

static void time_between_two_stretches_is_nobodys(void **state)
{
	struct activity_clocks clocks = at(0, 0);

	ledger_open(&ledger, 0, &clocks);
	ledger_sample(&ledger, function(0), PRESENCE_RUNNING, 10 * MS);
	clocks = at(10 * MS, 0);
	ledger_close(&ledger, 10 * MS, &clocks);
	/* idle for 990 ms */
	ledger_open(&ledger, 1000 * MS, &clocks);
	ledger_sample(&ledger, function(1), PRESENCE_WAITING, 1030 * MS);
	settle(1030 * MS, at(10 * MS, 0));
	assert_int_equal(of_function(0)->wall_ns, 10 * MS);
	assert_int_equal(of_function(1)->wall_ns, 30 * MS);
	assert_sums(40 * MS, 10 * MS, 0);
}

static void a_cleared_ledger_goes_on_from_now(void **state)
{
	struct activity_clocks clocks = at(0, 0);

	ledger_open(&ledger, 0, &clocks);
	ledger_sample(&ledger, function(0), PRESENCE_RUNNING, 10 * MS);
	clocks = at(10 * MS, 0);
	ledger_clear(&ledger, 10 * MS, &clocks);
	ledger_sample(&ledger, function(1), PRESENCE_RUNNING, 15 * MS);
	settle(15 * MS, at(15 * MS, 0));
	assert_int_equal(of_function(0)->wall_ns, 0);
	assert_int_equal(of_function(1)->cpu_ns, 5 * MS);
	assert_sums(5 * MS, 5 * MS, 0);
}

/* A process that repeats: 1 ms of work in a, asleep for 9 ms in nap, 3 ms of work in b, asleep for 7 ms in
 * doze. */
struct simulation {
	uint64_t run_ns, phase_begin_ns;
	unsigned phase;
};

static const struct {
	uint64_t ns;
	bool runs;
} phases[] = {{1 * MS, true}, {9 * MS, false}, {3 * MS, true}, {7 * MS, false}};

static void advance_to(struct simulation *process, uint64_t now_ns)
{
	while (process->phase_begin_ns + phases[process->phase].ns <= now_ns) {
		if (phases[process->phase].runs)
			process->run_ns += phases[process->phase].ns;
		process->phase_begin_ns += phases[process->phase].ns;
		process->phase = (process->phase + 1) % 4;
	}
}

static void of_work_between_sleeps_every_function_gets_its_own_share(void **state)
{
	struct simulation process = {0};
	struct activity_clocks clocks = {0};
	struct cadence cadence;
	struct cadence_due due;
	uint64_t total_ns;

	/* 20,000 samples at the sampler's own cadence, of a process whose period is twice the cadence's */
	cadence_start(&cadence, 10 * MS, 0, 4711);
	ledger_open(&ledger, 0, &clocks);
	for (int i = 0; i < 20000; i++) {
		uint64_t now_ns = cadence.deadline_ns;

		cadence_due(&cadence, now_ns, &due);
		advance_to(&process, now_ns);
		ledger_sample(&ledger, function(process.phase),
			phases[process.phase].runs ? PRESENCE_RUNNING : PRESENCE_WAITING, now_ns);
		total_ns = now_ns;
	}
	settle(total_ns, at(process.run_ns, 0));
	assert_sums(total_ns, process.run_ns, 0);
	for (unsigned i = 0; i < 4; i++) {
		/* in thousandths of the whole, out of a period of 20 ms; within 1.5 points */
		uint64_t truth = phases[i].ns * 1000 / (20 * MS);
		uint64_t wall = of_function(i)->wall_ns * 1000 / total_ns;
		uint64_t cpu = of_function(i)->cpu_ns * 1000 / total_ns;

		assert_in_range(wall + 15, truth, truth + 30);
		assert_in_range(cpu + 15, phases[i].runs ? truth : 0, (phases[i].runs ? truth : 0) + 30);
		if (!phases[i].runs)
			assert_int_equal(of_function(i)->cpu_ns, 0);
	}
}

static void over_any_history_the_sums_equal_the_clocks(void **state)
{
	uint64_t random = 1234567;

	for (int round = 0; round < 500; round++) {
		struct activity_clocks clocks = at(random % (50 * MS), random % (9 * MS));
		struct activity_clocks opened = clocks;
		uint64_t now_ns = 1000 * MS, opened_ns = now_ns;

		calltree_clear(result);
		calltree_clear(tree);
		ledger_init(&ledger, tree);
		ledger_open(&ledger, now_ns, &clocks);
		for (int step = 0; step < 50; step++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			uint64_t run = random % (3 * MS),
				 queue = (random >> 20) % 4 ? 0 : (random >> 22) % MS;
			uint64_t off = (random >> 40) % 2 ? (random >> 41) % (4 * MS) : 0;

			now_ns += run + queue + off;
			clocks.run_ns += run;
			clocks.queue_ns += queue;
			ledger_sample(&ledger, function(random % 7), (random >> 60) % 3, now_ns);
		}
		settle(now_ns, clocks);
		assert_sums(
			now_ns - opened_ns, clocks.run_ns - opened.run_ns, clocks.queue_ns - opened.queue_ns);
	}
}

int main(void)
{
#define LEDGER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		LEDGER_TEST(time_on_the_cpu_goes_to_who_ran_and_the_rest_to_who_waited),
		LEDGER_TEST(time_in_the_run_queue_is_charged_to_who_wanted_to_run_and_is_no_cpu),
		LEDGER_TEST(a_sample_weighs_as_much_as_the_time_it_stands_for),
		LEDGER_TEST(time_nobody_watched_between_two_stretches_is_unread_with_its_cpu),
		LEDGER_TEST(a_stretch_that_turns_out_to_be_unwatched_begins_anew),
		LEDGER_TEST(a_closed_ledger_stays_as_it_is_when_it_is_closed_again),
		LEDGER_TEST(a_unit_no_sample_saw_is_unread_as_a_whole),
		LEDGER_TEST(more_cpu_than_wall_time_is_capped),
		LEDGER_TEST(time_between_two_stretches_is_nobodys),
		LEDGER_TEST(a_cleared_ledger_goes_on_from_now),
		LEDGER_TEST(of_work_between_sleeps_every_function_gets_its_own_share),
		LEDGER_TEST(over_any_history_the_sums_equal_the_clocks),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
