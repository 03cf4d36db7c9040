/* SPDX-License-Identifier: MIT
 *
 * A target on a process and a clock of the test's own, and what is looked at after its ticks.
 */
#pragma once

#include "daemon/sampling/window.h"
#include "fake_process.h"

static struct sampling sampling;
static struct target *target;

static inline int set_up(void **state)
{
	return fake_set_up(&sampling, &target);
}

static inline int tear_down(void **state)
{
	if (target)
		target_free(target, &sampling);
	sampling_deinit(&sampling);
	return 0;
}

/* The target lives, and all books are balanced. */
static inline void tick(void)
{
	assert_int_equal(fake_tick(target, &sampling), TARGET_LIVES);
	assert_true(accounting_is_balanced(&target->accounting));
	assert_true(accounting_is_balanced(&target->window_accounting));
	assert_true(accounting_is_balanced(&target->unit.labels.accounting));
	assert_true(accounting_is_balanced(&sampling.accounting));
}

/* Runs for @ns in @function until the tick. */
static inline void work(const char *function, uint64_t ns)
{
	fake_in_function(&sampling, function);
	fake_run(ns);
	tick();
}

/* The unit that ended last. */
static inline const struct unit_result *ended(void)
{
	struct unit_result *unit = retention_nth(sampling.retention, 0);

	assert_non_null(unit);
	assert_int_equal(unit_result_settle(unit), 0);
	return unit;
}

/* Its client says finish(), and wants to see the profile. */
static inline enum order_error finish_target(const struct finish_call *call, struct unit_result **ret_unit)
{
	enum order_error error = target_finish(target, &sampling, call, ret_unit);

	if (error == ORDER_OK)
		assert_int_equal(unit_result_settle(*ret_unit), 0);
	return error;
}

/* What the target's window has; freed by the caller. */
static inline struct profile *window(void)
{
	_cleanup_(window_freep) struct window *copy = window_new(target, &sampling, NULL);
	struct profile *profile = NULL;
	uint32_t copied;

	assert_int_equal(window_copy(copy, target, &sampling, UINT32_MAX, &copied), 1);
	assert_int_equal(weighed_tree_settle(&copy->tree), 0);
	assert_int_equal(weighed_tree_profile(&copy->tree, &profile), 0);
	return profile;
}
