/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/sampling/cadences.h"

#define MS 1000000ull
#define PPM 1000000u

static struct cadences unused(void)
{
	struct cadences cadences;

	cadences_init(&cadences);
	return cadences;
}

static void targets_of_one_period_share_a_cadence(void **state)
{
	struct cadences cadences = unused();
	unsigned first = cadences_join(&cadences, 10 * MS, 1000 * MS);

	assert_int_equal(cadences_join(&cadences, 10 * MS, 1003 * MS), first);
	assert_int_not_equal(cadences_join(&cadences, 20 * MS, 1003 * MS), first);
	assert_int_equal(cadences.users[first], 2);
	assert_int_equal(cadences_period_ns(&cadences, first), 10 * MS);
}

static void one_that_nobody_uses_is_never_due(void **state)
{
	struct cadences cadences = unused();
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
	struct cadences cadences = unused();
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
	struct cadences cadences = unused();
	unsigned fast = cadences_join(&cadences, 10 * MS, 0), slow = cadences_join(&cadences, 1000 * MS, 0);

	assert_true(cadences_turn(&cadences, 15 * MS));
	assert_non_null(cadences_due(&cadences, fast));
	assert_null(cadences_due(&cadences, slow));
	assert_false(cadences_turn(&cadences, 15 * MS));
	assert_null(cadences_due(&cadences, fast));
}

static void past_the_bound_one_gets_the_nearest(void **state)
{
	struct cadences cadences = unused();
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
	struct cadences cadences = unused();
	unsigned number;

	for (unsigned i = 0; i < CADENCES_MAX; i++)
		cadences_join(&cadences, (i + 1) * MS, 0);
	cadences_leave(&cadences, 5);
	number = cadences_join(&cadences, 100 * MS, 0);
	assert_int_equal(cadences_period_ns(&cadences, number), 100 * MS);
}

static void stretched_ones_are_known_by_what_was_asked_for(void **state)
{
	struct cadences cadences = unused();
	unsigned number = cadences_join(&cadences, 10 * MS, 0);

	cadences_stretch(&cadences, 5 * PPM / 2);
	assert_int_equal(cadences_period_ns(&cadences, number), 10 * MS);
	assert_int_equal(cadences_join(&cadences, 10 * MS, 0), number);
	/* the next deadline stands; those after it are 25 ms apart on average, 12.5 at least */
	assert_in_range(cadences_deadline_ns(&cadences), 5 * MS, 15 * MS);
	assert_true(cadences_turn(&cadences, 15 * MS));
	assert_int_equal(cadences_due(&cadences, number)->expected, 1);
	assert_int_equal(cadences_due(&cadences, number)->period_ns, 25 * MS);
	assert_in_range(cadences_deadline_ns(&cadences), (5 + 12) * MS, (15 + 38) * MS);
}

static void one_that_begins_while_all_are_stretched_is_stretched(void **state)
{
	struct cadences cadences = unused();

	cadences_stretch(&cadences, 4 * PPM);
	cadences_join(&cadences, 10 * MS, 1000 * MS);
	assert_in_range(cadences_deadline_ns(&cadences), 1020 * MS, 1060 * MS);
}

static void back_at_one_they_are_what_was_asked_for(void **state)
{
	struct cadences cadences = unused();
	unsigned number = cadences_join(&cadences, 999999, 0);

	cadences_stretch(&cadences, 3333333);
	cadences_stretch(&cadences, PPM);
	assert_true(cadences_turn(&cadences, 2 * MS));
	assert_int_equal(cadences_due(&cadences, number)->period_ns, 999999);
}

/* Expected counts what the period in force makes due: in ten seconds at 10 ms a thousand, at 40 ms 250. */
static void what_is_expected_follows_the_stretch(void **state)
{
	struct cadences cadences = unused();
	unsigned number = cadences_join(&cadences, 10 * MS, 0);
	uint64_t expected[2] = {0};

	for (uint64_t now_ns = 0; now_ns < 20000 * MS; now_ns += MS) {
		if (now_ns == 10000 * MS)
			cadences_stretch(&cadences, 4 * PPM);
		if (cadences_turn(&cadences, now_ns))
			expected[now_ns >= 10000 * MS] += cadences_due(&cadences, number)->expected;
	}
	assert_in_range(expected[0], 970, 1030);
	assert_in_range(expected[1], 240, 260);
}

static void what_is_overdue_is_what_the_next_turn_finds(void **state)
{
	struct cadences cadences = unused();
	unsigned number = cadences_join(&cadences, 10 * MS, 0);
	uint64_t overdue;

	assert_int_equal(cadences_overdue(&cadences, number, 4 * MS), 0);
	overdue = cadences_overdue(&cadences, number, 60 * MS);
	assert_in_range(overdue, 4, 12);
	assert_true(cadences_turn(&cadences, 60 * MS));
	assert_int_equal(cadences_due(&cadences, number)->expected, overdue);
	assert_int_equal(cadences_overdue(&cadences, number, 60 * MS), 0);
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
		cmocka_unit_test(stretched_ones_are_known_by_what_was_asked_for),
		cmocka_unit_test(one_that_begins_while_all_are_stretched_is_stretched),
		cmocka_unit_test(back_at_one_they_are_what_was_asked_for),
		cmocka_unit_test(what_is_expected_follows_the_stretch),
		cmocka_unit_test(what_is_overdue_is_what_the_next_turn_finds),
	};

	return cmocka_run_group_tests_name("cadences", tests, NULL, NULL);
}
