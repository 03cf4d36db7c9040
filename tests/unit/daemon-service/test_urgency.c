/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <time.h>

static uint64_t fake_wall_ns, fake_cpu_ns;
static int policy;
static unsigned changes;
static bool forbidden;

static int fake_gettime(clockid_t clock, struct timespec *ret_time)
{
	uint64_t ns = clock == CLOCK_MONOTONIC ? fake_wall_ns : fake_cpu_ns;

	*ret_time = (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
	return 0;
}

static int fake_setscheduler(pid_t pid, int wanted, const struct sched_param *param)
{
	assert_int_equal(param->sched_priority, wanted == SCHED_FIFO ? 1 : 0);
	changes++;
	if (forbidden && wanted == SCHED_FIFO) {
		errno = EPERM;
		return -1;
	}
	policy = wanted;
	return 0;
}

#define clock_gettime fake_gettime
#define sched_setscheduler fake_setscheduler
#include "daemon/service/urgency.c"

#define US 1000ull
#define MS 1000000ull

static int begin(void **state)
{
	static struct urgency urgency;

	fake_wall_ns = 5000 * MS;
	fake_cpu_ns = 70 * MS;
	policy = SCHED_OTHER;
	changes = 0;
	forbidden = false;
	urgency_begin(&urgency, true);
	*state = &urgency;
	return 0;
}

static void work(struct urgency *urgency, uint64_t ns)
{
	fake_wall_ns += ns;
	fake_cpu_ns += ns;
	urgency_check(urgency);
}

static void rest(struct urgency *urgency, uint64_t ns)
{
	fake_wall_ns += ns;
	urgency_check(urgency);
}

/* 1,000 answers a second of 90 us each: 9 % of a CPU. */
static void who_takes_less_than_a_tenth_keeps_the_class(void **state)
{
	for (unsigned i = 0; i < 10000; i++) {
		work(*state, 90 * US);
		rest(*state, 910 * US);
		assert_int_equal(policy, SCHED_FIFO);
	}
	assert_int_equal(changes, 1);
}

static void a_burst_of_two_milliseconds_ends_it(void **state)
{
	/* Each 100 us bring 10 back, but for the first, when there is no room: 2000 - 100 - 21 * 90 is 10. */
	for (unsigned i = 0; i < 22; i++) {
		assert_int_equal(policy, SCHED_FIFO);
		work(*state, 100 * US);
	}
	assert_int_equal(policy, SCHED_FIFO);
	work(*state, 100 * US);
	assert_int_equal(policy, SCHED_OTHER);
}

static void it_comes_back_when_the_burst_is_saved_up(void **state)
{
	work(*state, 3 * MS); /* 1 ms too much: 30 ms until there are 2 again */
	assert_int_equal(policy, SCHED_OTHER);
	assert_int_equal(urgency_due_ns(*state), fake_wall_ns + 30 * MS);
	rest(*state, 29 * MS);
	assert_int_equal(policy, SCHED_OTHER);
	rest(*state, 1 * MS);
	assert_int_equal(policy, SCHED_FIFO);
	assert_true(urgency_due_ns(*state) == UINT64_MAX);
}

/* Asked without a pause for ten seconds of its CPU time. */
static void a_flood_gets_a_tenth_of_a_cpu_and_few_changes(void **state)
{
	uint64_t urgent_ns = 0;

	changes = 0;
	for (unsigned i = 0; i < 200000; i++) {
		urgent_ns += policy == SCHED_FIFO ? 50 * US : 0;
		work(*state, 50 * US);
	}
	assert_in_range(urgent_ns, 900 * MS, 1010 * MS);
	assert_in_range(changes, 800, 1000); /* two for every 22 ms */
}

static void what_is_done_as_an_ordinary_thread_is_no_debt(void **state)
{
	work(*state, 2500 * US);
	assert_int_equal(policy, SCHED_OTHER);
	work(*state, 60000 * MS);
	assert_int_equal(policy, SCHED_FIFO);
}

static void where_it_is_refused_it_is_not_asked_for_again(void **state)
{
	struct urgency urgency;

	policy = SCHED_OTHER;
	changes = 0;
	forbidden = true;
	urgency_begin(&urgency, true);
	for (unsigned i = 0; i < 100; i++)
		rest(&urgency, 100 * MS);
	assert_int_equal(changes, 1);
	assert_int_equal(policy, SCHED_OTHER);
}

static void who_does_not_want_it_is_left_alone(void **state)
{
	struct urgency urgency;

	policy = SCHED_OTHER;
	changes = 0;
	urgency_begin(&urgency, false);
	work(&urgency, 100 * MS);
	rest(&urgency, 100 * MS);
	assert_int_equal(changes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(who_takes_less_than_a_tenth_keeps_the_class, begin),
		cmocka_unit_test_setup(a_burst_of_two_milliseconds_ends_it, begin),
		cmocka_unit_test_setup(it_comes_back_when_the_burst_is_saved_up, begin),
		cmocka_unit_test_setup(a_flood_gets_a_tenth_of_a_cpu_and_few_changes, begin),
		cmocka_unit_test_setup(what_is_done_as_an_ordinary_thread_is_no_debt, begin),
		cmocka_unit_test_setup(where_it_is_refused_it_is_not_asked_for_again, begin),
		cmocka_unit_test_setup(who_does_not_want_it_is_left_alone, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
