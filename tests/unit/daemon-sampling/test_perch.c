/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sched.h>

/* A machine of four CPUs, the third of which is not for this thread. */
#define CPUS 4
#define FORBIDDEN 2

static int thread_cpu;
static unsigned moves;

static long fake_sysconf(int name)
{
	return CPUS;
}

static int fake_getcpu(void)
{
	return thread_cpu;
}

static int fake_join(int cpu)
{
	if (cpu < 0 || cpu >= CPUS || cpu == FORBIDDEN)
		return -1;
	moves += cpu != thread_cpu;
	thread_cpu = cpu;
	return 0;
}

static void fake_leave(void)
{
}

#define sysconf fake_sysconf
#define sched_getcpu fake_getcpu
#define placement_join fake_join
#define placement_leave fake_leave
#include "daemon/sampling/perch.c"

static int begin(void **state)
{
	static struct perch perch;

	thread_cpu = 0;
	moves = 0;
	perch_init(&perch);
	*state = &perch;
	return 0;
}

/* One tick, in which a target that was disturbed time and again runs on @target_cpu, or on none (-1). */
static void tick(struct perch *perch, int target_cpu)
{
	perch_wake(perch, thread_cpu);
	if (target_cpu >= 0 && perch_suspects(perch, PERCH_SUSPICIOUS))
		perch_note(perch, target_cpu);
	perch_settle(perch);
}

static void moves_away_from_a_worker_that_it_keeps_disturbing(void **state)
{
	for (unsigned i = 0; i < PERCH_LEAST_PATIENCE; i++) {
		assert_int_equal(thread_cpu, 0);
		tick(*state, 0);
	}
	assert_int_equal(thread_cpu, 1);
	for (unsigned i = 0; i < 10000; i++)
		tick(*state, 0);
	assert_int_equal(thread_cpu, 1);
	assert_int_equal(moves, 1);
}

static void stays_beside_a_worker_that_somebody_else_disturbs(void **state)
{
	for (unsigned i = 0; i < 10000; i++)
		tick(*state, 3);
	assert_int_equal(moves, 0);
}

static void asks_about_nobody_who_was_disturbed_now_and_then(void **state)
{
	struct perch *perch = *state;

	for (unsigned i = 0; i < 10000; i++)
		tick(perch, -1);
	assert_false(perch_suspects(perch, PERCH_SUSPICIOUS - 1));
	assert_true(perch_suspects(perch, PERCH_SUSPICIOUS));
}

static void goes_round_the_cpus_it_may_run_on(void **state)
{
	int seen[3];

	for (unsigned move = 0; move < 3; move++) {
		unsigned before = moves;

		while (moves == before)
			tick(*state, thread_cpu);
		seen[move] = thread_cpu;
	}
	assert_int_equal(seen[0], 1);
	assert_int_equal(seen[1], 3);
	assert_int_equal(seen[2], 0);
}

/* 16 ticks, 32, 64 … 1024, and from then on every 1024: 6 moves within 2,016 ticks, 8 more within 8,192. */
static void moves_ever_more_rarely_where_it_is_in_the_way_everywhere(void **state)
{
	for (unsigned i = 0; i < 16 + 32 + 64 + 128 + 256 + 512 + 8 * 1024; i++)
		tick(*state, thread_cpu);
	assert_int_equal(moves, 6 + 8);
}

static void moves_at_once_again_when_it_was_long_in_nobodys_way(void **state)
{
	struct perch *perch = *state;

	for (unsigned i = 0; i < 5000; i++)
		tick(perch, thread_cpu);
	assert_int_equal(perch->patience, PERCH_MOST_PATIENCE);
	for (unsigned i = 0; i < 2 * PERCH_MOST_PATIENCE; i++)
		tick(perch, -1);
	moves = 0;
	tick(perch, thread_cpu);
	assert_int_equal(moves, 1);
	for (unsigned i = 0; i < PERCH_LEAST_PATIENCE; i++)
		tick(perch, thread_cpu);
	assert_int_equal(moves, 2);
}

static void comes_back_from_where_a_tick_has_taken_it(void **state)
{
	struct perch *perch = *state;

	perch_wake(perch, thread_cpu);
	fake_join(3); /* a snapshot that tore */
	perch_settle(perch);
	assert_int_equal(thread_cpu, 0);

	for (unsigned i = 0; i < 5000; i++)
		tick(perch, thread_cpu);
	perch_wake(perch, thread_cpu);
	fake_join(3);
	perch_settle(perch);
	assert_int_equal(thread_cpu, 3); /* no CPU is better than another */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(moves_away_from_a_worker_that_it_keeps_disturbing, begin),
		cmocka_unit_test_setup(stays_beside_a_worker_that_somebody_else_disturbs, begin),
		cmocka_unit_test_setup(asks_about_nobody_who_was_disturbed_now_and_then, begin),
		cmocka_unit_test_setup(goes_round_the_cpus_it_may_run_on, begin),
		cmocka_unit_test_setup(moves_ever_more_rarely_where_it_is_in_the_way_everywhere, begin),
		cmocka_unit_test_setup(moves_at_once_again_when_it_was_long_in_nobodys_way, begin),
		cmocka_unit_test_setup(comes_back_from_where_a_tick_has_taken_it, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
