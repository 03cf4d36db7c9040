/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "daemon/sampling/engine.h"

static void a_new_order_asks_about_anybody(void **state)
{
	_cleanup_(order_freep) struct order *order = NULL;

	assert_int_equal(order_new(ORDER_PROFILE, &order), 0);
	assert_int_equal(order->verb, ORDER_PROFILE);
	assert_int_equal(order->uid, ORDER_ANY_UID);
	assert_int_equal(order->pid, 0);
	assert_string_equal(order->pool, "");
	assert_int_equal(order->error, ORDER_OK);
}

static void an_order_takes_its_answer_along_and_leaves_what_others_hold(void **state)
{
	struct unit_result value = {.unit_id = 5};
	struct unit_result *held = unit_result_new(&value);
	struct order *order = NULL;

	assert_int_equal(order_new(ORDER_UNITS, &order), 0);
	order->unit = unit_result_ref(held);
	order->units = calloc(1, sizeof(struct unit_result *));
	order->units[0] = unit_result_ref(held);
	order->unit_count = 1;
	order->targets = calloc(1, sizeof(*order->targets));
	order->metrics = calloc(1, sizeof(*order->metrics));
	order_free(order);
	assert_int_equal(held->references, 1);
	assert_int_equal(held->unit_id, 5);
	unit_result_free(held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_order_asks_about_anybody),
		cmocka_unit_test(an_order_takes_its_answer_along_and_leaves_what_others_hold),
	};

	return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
