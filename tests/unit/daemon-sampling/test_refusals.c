/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/sampling/refusals.h"

static struct refusals refusals;
static struct refusal items[REFUSALS_MAX];

static int set_up(void **state)
{
	refusals_init(&refusals);
	return 0;
}

static int tear_down(void **state)
{
	refusals_deinit(&refusals);
	return 0;
}

static void the_newest_refusal_comes_first(void **state)
{
	refusals_note(&refusals, 1, "too old");
	refusals_note(&refusals, 2, "not PHP");
	assert_int_equal(refusals_copy(&refusals, items, REFUSALS_MAX), 2);
	assert_int_equal(items[0].pid, 2);
	assert_string_equal(items[0].why, "not PHP");
	assert_int_equal(items[1].pid, 1);
}

static void a_process_has_one_reason_its_latest(void **state)
{
	refusals_note(&refusals, 1, "no permission");
	refusals_note(&refusals, 2, "not PHP");
	refusals_note(&refusals, 1, "too old");
	assert_int_equal(refusals_copy(&refusals, items, REFUSALS_MAX), 2);
	assert_int_equal(items[0].pid, 1);
	assert_string_equal(items[0].why, "too old");
	assert_int_equal(items[1].pid, 2);
}

static void a_process_that_is_refused_every_ten_seconds_counts_once(void **state)
{
	for (int i = 0; i < 100; i++)
		refusals_note(&refusals, 1, "no permission");
	refusals_note(&refusals, 2, "no permission");
	assert_int_equal(refusals_total(&refusals), 2);
}

static void past_the_bound_the_oldest_makes_room(void **state)
{
	for (pid_t pid = 1; pid <= REFUSALS_MAX + 3; pid++)
		refusals_note(&refusals, pid, "why");
	assert_int_equal(refusals_copy(&refusals, items, REFUSALS_MAX), REFUSALS_MAX);
	assert_int_equal(items[0].pid, REFUSALS_MAX + 3);
	assert_int_equal(items[REFUSALS_MAX - 1].pid, 4);
	assert_int_equal(refusals_total(&refusals), REFUSALS_MAX + 3);
}

static void what_is_forgotten_is_gone_and_the_rest_stays_in_order(void **state)
{
	for (pid_t pid = 1; pid <= 3; pid++)
		refusals_note(&refusals, pid, "why");
	refusals_forget(&refusals, 2);
	refusals_forget(&refusals, 99);
	assert_int_equal(refusals_copy(&refusals, items, REFUSALS_MAX), 2);
	assert_int_equal(items[0].pid, 3);
	assert_int_equal(items[1].pid, 1);
}

static void no_more_is_copied_than_there_is_room_for(void **state)
{
	refusals_note(&refusals, 1, "why");
	refusals_note(&refusals, 2, "why");
	assert_int_equal(refusals_copy(&refusals, items, 1), 1);
	assert_int_equal(items[0].pid, 2);
	assert_int_equal(refusals_copy(&refusals, items, 0), 0);
}

int main(void)
{
#define REFUSALS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		REFUSALS_TEST(the_newest_refusal_comes_first),
		REFUSALS_TEST(a_process_has_one_reason_its_latest),
		REFUSALS_TEST(a_process_that_is_refused_every_ten_seconds_counts_once),
		REFUSALS_TEST(past_the_bound_the_oldest_makes_room),
		REFUSALS_TEST(what_is_forgotten_is_gone_and_the_rest_stays_in_order),
		REFUSALS_TEST(no_more_is_copied_than_there_is_room_for),
	};

	return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
