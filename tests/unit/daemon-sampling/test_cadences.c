/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/sampling/cadences.h"

#define MS 1000000ull

static void targets_of_one_period_share_a_cadence(void **state)
{
	struct cadences cadences = {0};
	unsigned first = cadences_join(&cadences, 10 * MS, 1000 * MS);

	assert_int_equal(cadences_join(&cadences, 10 * MS, 1003 * MS), first);
	assert_int_not_equal(cadences_join(&cadences, 20 * MS, 1003 * MS), first);
	assert_int_equal(cadences.users[first], 2);
	assert_int_equal(cadences_period_ns(&cadences, first), 10 * MS);
}

static void one_that_nobody_uses_is_never_due(void **state)
{
	struct cadences cadences = {0};
	unsigned number = cadences_join(&cadences, 10 * MS, 1000 * MS);

	assert_in_range(cadences_deadline_ns(&cadences), 1005 * MS, 1015 * MS);
	assert_true(cadences_turn(&cadences, 1015 * MS));
	assert_non_null(cadences_due(&cadences, number));
	cadences_leave(&cadences, number);
	assert_int_equal(cadences_deadline_ns(&cadences), 0);
	assert_false(cadences_turn(&cadences, 2000 * MS));
	assert_null(cadences_due(&cadences, number));
	assert_null(cadences_due(&cadences, CADENCES_NONE));
}

static void one_that_is_used_again_begins_anew(void **state)
{
	struct cadences cadences = {0};
	unsigned number = cadences_join(&cadences, 10 * MS, 1000 * MS);

	cadences_leave(&cadences, number);
	number = cadences_join(&cadences, 10 * MS, 5000 * MS);
	assert_false(cadences_turn(&cadences, 5004 * MS));
	assert_true(cadences_turn(&cadences, 5015 * MS));
	/* half a period apart at least: two at most since 5000 */
	assert_in_range(cadences_due(&cadences, number)->expected, 1, 2);
}

static void only_what_is_due_is_due(void **state)
{
	struct cadences cadences = {0};
	unsigned fast = cadences_join(&cadences, 10 * MS, 0), slow = cadences_join(&cadences, 1000 * MS, 0);

	assert_true(cadences_turn(&cadences, 15 * MS));
	assert_non_null(cadences_due(&cadences, fast));
	assert_null(cadences_due(&cadences, slow));
	assert_false(cadences_turn(&cadences, 15 * MS));
	assert_null(cadences_due(&cadences, fast));
}

static void past_the_bound_one_gets_the_nearest(void **state)
{
	struct cadences cadences = {0};
	unsigned number;

	/* 1, 2, 4 … 32768 ms */
	for (unsigned i = 0; i < CADENCES_MAX; i++)
		cadences_join(&cadences, (1u << i) * MS, 0);
	number = cadences_join(&cadences, 9 * MS, 0);
	assert_int_equal(cadences_period_ns(&cadences, number), 8 * MS);
	number = cadences_join(&cadences, 15 * MS, 0);
	assert_int_equal(cadences_period_ns(&cadences, number), 16 * MS);
	number = cadences_join(&cadences, MS / 10, 0);
	assert_int_equal(cadences_period_ns(&cadences, number), 1 * MS);
	number = cadences_join(&cadences, 60000 * MS, 0);
	assert_int_equal(cadences_period_ns(&cadences, number), 32768 * MS);
}

static void who_leaves_makes_room_for_another_period(void **state)
{
	struct cadences cadences = {0};
	unsigned number;

	for (unsigned i = 0; i < CADENCES_MAX; i++)
		cadences_join(&cadences, (i + 1) * MS, 0);
	cadences_leave(&cadences, 5);
	number = cadences_join(&cadences, 100 * MS, 0);
	assert_int_equal(cadences_period_ns(&cadences, number), 100 * MS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_of_one_period_share_a_cadence),
		cmocka_unit_test(one_that_nobody_uses_is_never_due),
		cmocka_unit_test(one_that_is_used_again_begins_anew),
		cmocka_unit_test(only_what_is_due_is_due),
		cmocka_unit_test(past_the_bound_one_gets_the_nearest),
		cmocka_unit_test(who_leaves_makes_room_for_another_period),
	};

	return cmocka_run_group_tests_name("cadences", tests, NULL, NULL);
}
