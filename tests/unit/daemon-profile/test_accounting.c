/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "daemon/profile/accounting.h"

static const struct accounting ten = {
	.expected = 10,
	.taken = 3,
	.unchanged = 2,
	.torn_lost = 1,
	.unreadable = 1,
	.idle = 2,
	.missed = 1,
	.torn_retried = 2,
	.late_histogram = {4, 3, 2, 1},
};

static void it_balances_only_when_every_tick_has_become_something(void **state)
{
	struct accounting accounting = ten;

	assert_true(accounting_is_balanced(&accounting));
	accounting.idle++;
	assert_false(accounting_is_balanced(&accounting));
	accounting.expected++;
	assert_true(accounting_is_balanced(&accounting));
}

static void the_sum_of_balanced_ones_is_balanced(void **state)
{
	struct accounting sum = {0};

	for (int i = 0; i < 3; i++)
		accounting_add(&sum, &ten);
	assert_int_equal(sum.expected, 30);
	assert_int_equal(sum.unchanged, 6);
	assert_int_equal(sum.torn_retried, 6);
	assert_int_equal(sum.late_histogram[0], 12);
	assert_int_equal(sum.late_histogram[3], 3);
	assert_true(accounting_is_balanced(&sum));
}

static void lateness_falls_into_the_bucket_below_its_edge(void **state)
{
	/* Of a period of 1,600 ns: edges at 100, 200, 400, 800, 1,600, 3,200, 6,400. */
	static const struct {
		uint64_t late_ns;
		int bucket;
	} cases[] = {{0, 0}, {99, 0}, {100, 1}, {199, 1}, {200, 2}, {400, 3}, {799, 3}, {800, 4}, {1600, 5},
		{3200, 6}, {6399, 6}, {6400, 7}, {1000000000, 7}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct accounting accounting = {0};

		accounting_note_lateness(&accounting, cases[i].late_ns, 1600);
		assert_int_equal(accounting.late_histogram[cases[i].bucket], 1);
		assert_int_equal(accounting.late, cases[i].late_ns > 800 ? 1 : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_balances_only_when_every_tick_has_become_something),
		cmocka_unit_test(the_sum_of_balanced_ones_is_balanced),
		cmocka_unit_test(lateness_falls_into_the_bucket_below_its_edge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
