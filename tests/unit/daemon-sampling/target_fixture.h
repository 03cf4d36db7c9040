/* SPDX-License-Identifier: MIT
 *
 * A target on a process and a clock of the test's own, and what is looked at after its ticks.
 */
#pragma once

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
	const struct unit_result *unit = retention_nth(sampling.retention, 0);

	assert_non_null(unit);
	return unit;
}

/* What the target's window has; freed by the caller. */
static inline struct profile *window(void)
{
	_cleanup_(calltree_freep) struct calltree *tree = NULL;
	struct profile *profile = NULL;

	assert_int_equal(calltree_new(1000, &tree), 0);
	assert_int_equal(target_add_window_to(target, tree), 0);
	assert_int_equal(profile_from_calltree(tree, sampling.frames, &profile), 0);
	return profile;
}
