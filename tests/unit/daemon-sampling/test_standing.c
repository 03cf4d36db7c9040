/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "daemon/sampling/standing.h"

static void nothing_ordered_is_nothing_changed(void **state)
{
	struct standing standing = {0};

	assert_int_equal(standing_period_ns(&standing, "www"), 0);
	assert_false(standing_is_suspended(&standing, "www"));
}

static void an_order_for_a_pool_holds_for_that_pool(void **state)
{
	struct standing standing = {0};

	assert_int_equal(standing_order_period(&standing, "www", 1000), 0);
	assert_int_equal(standing_order_suspension(&standing, "api", true), 0);
	assert_int_equal(standing_period_ns(&standing, "www"), 1000);
	assert_int_equal(standing_period_ns(&standing, "api"), 0);
	assert_true(standing_is_suspended(&standing, "api"));
	assert_false(standing_is_suspended(&standing, "www"));
}

static void an_order_for_all_ends_those_for_single_pools(void **state)
{
	struct standing standing = {0};

	standing_order_period(&standing, "www", 1000);
	standing_order_suspension(&standing, "www", true);
	standing_order_period(&standing, "", 2000);
	assert_int_equal(standing_period_ns(&standing, "www"), 2000);
	assert_true(standing_is_suspended(&standing, "www"));
	standing_order_suspension(&standing, "", false);
	assert_false(standing_is_suspended(&standing, "www"));
	assert_int_equal(standing.count, 0);
}

static void one_pool_can_be_resumed_of_all_that_are_suspended(void **state)
{
	struct standing standing = {0};

	standing_order_suspension(&standing, "", true);
	standing_order_suspension(&standing, "www", false);
	assert_false(standing_is_suspended(&standing, "www"));
	assert_true(standing_is_suspended(&standing, "api"));
}

static void forgotten_periods_leave_suspensions(void **state)
{
	struct standing standing = {0};

	standing_order_period(&standing, "", 1000);
	standing_order_period(&standing, "www", 2000);
	standing_order_suspension(&standing, "www", true);
	standing_forget_periods(&standing);
	assert_int_equal(standing_period_ns(&standing, "www"), 0);
	assert_int_equal(standing_period_ns(&standing, "api"), 0);
	assert_true(standing_is_suspended(&standing, "www"));
}

static void past_the_bound_there_is_no_room_for_another_pool(void **state)
{
	struct standing standing = {0};
	char pool[64];

	for (int i = 0; i < STANDING_MAX_POOLS; i++) {
		snprintf(pool, sizeof(pool), "pool%d", i);
		assert_int_equal(standing_order_period(&standing, pool, 1000), 0);
	}
	assert_int_equal(standing_order_period(&standing, "one more", 1000), -ENOSPC);
	assert_int_equal(standing_order_suspension(&standing, "one more", true), -ENOSPC);
	assert_int_equal(standing_order_suspension(&standing, "pool3", true), 0);
	assert_int_equal(standing_order_period(&standing, "", 1000), 0);
	assert_int_equal(standing_order_period(&standing, "one more", 1000), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_ordered_is_nothing_changed),
		cmocka_unit_test(an_order_for_a_pool_holds_for_that_pool),
		cmocka_unit_test(an_order_for_all_ends_those_for_single_pools),
		cmocka_unit_test(one_pool_can_be_resumed_of_all_that_are_suspended),
		cmocka_unit_test(forgotten_periods_leave_suspensions),
		cmocka_unit_test(past_the_bound_there_is_no_room_for_another_pool),
	};

	return cmocka_run_group_tests_name("standing", tests, NULL, NULL);
}
