/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/sampling/cadence.h"

#define PERIOD 1000000u

static void a_tick_is_not_due_before_its_deadline(void **state)
{
	struct cadence cadence;
	struct cadence_due due;

	cadence_start(&cadence, PERIOD, 5000, 42);
	assert_false(cadence_due(&cadence, 5000, &due));
	assert_false(cadence_due(&cadence, cadence.deadline_ns - 1, &due));
	assert_true(cadence_due(&cadence, cadence.deadline_ns, &due));
	assert_int_equal(due.expected, 1);
	assert_int_equal(due.late_ns, 0);
}

static void intervals_are_half_to_one_and_a_half_periods_and_one_on_average(void **state)
{
	uint64_t origin = 123456789, last = origin, lowest = UINT64_MAX, highest = 0;
	struct cadence cadence;
	struct cadence_due due;

	cadence_start(&cadence, PERIOD, origin, 7);
	for (int i = 0; i < 100000; i++) {
		uint64_t interval = cadence.deadline_ns - last;

		assert_in_range(interval, PERIOD / 2, 3 * PERIOD / 2);
		lowest = interval < lowest ? interval : lowest;
		highest = interval > highest ? interval : highest;
		last = cadence.deadline_ns;
		assert_true(cadence_due(&cadence, cadence.deadline_ns, &due));
		assert_int_equal(due.expected, 1);
		assert_int_equal(due.late_ns, 0);
	}
	assert_true(lowest < PERIOD / 2 + PERIOD / 100);
	assert_true(highest > 3 * PERIOD / 2 - PERIOD / 100);
	/* 100,000 intervals of a standard deviation of 0.29 periods: 5 sigma are 457 periods */
	assert_in_range(last - origin, 99543ull * PERIOD, 100457ull * PERIOD);
}

static void deadlines_wander_over_every_phase_of_a_fixed_period(void **state)
{
	unsigned phases[10] = {0};
	struct cadence cadence;
	struct cadence_due due;

	cadence_start(&cadence, PERIOD, 0, 99);
	for (int i = 0; i < 100000; i++) {
		phases[cadence.deadline_ns % PERIOD / (PERIOD / 10)]++;
		cadence_due(&cadence, cadence.deadline_ns, &due);
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(phases[i], 9500, 10500);
}

static void missed_deadlines_are_counted_and_not_made_up(void **state)
{
	struct cadence cadence, twin;
	struct cadence_due due, one;
	uint64_t now, deadlines = 0;

	cadence_start(&cadence, PERIOD, 0, 9);
	cadence_start(&twin, PERIOD, 0, 9);
	now = cadence.deadline_ns + 7 * PERIOD;
	while (twin.deadline_ns <= now) {
		deadlines++;
		cadence_due(&twin, twin.deadline_ns, &one);
	}
	assert_in_range(deadlines, 5, 15);
	assert_true(cadence_due(&cadence, now, &due));
	assert_int_equal(due.expected, deadlines);
	assert_true(due.late_ns < 3 * PERIOD / 2);
	assert_true(cadence.deadline_ns > now);
	assert_false(cadence_due(&cadence, now, &due));
}

static void an_hour_asleep_is_an_hour_of_deadlines_and_no_catching_up(void **state)
{
	struct cadence cadence;
	struct cadence_due due;
	uint64_t hour = 3600000ull * PERIOD;

	cadence_start(&cadence, PERIOD, 0, 11);
	assert_true(cadence_due(&cadence, hour, &due));
	assert_in_range(due.expected, 3600000 - 2, 3600000 + 2);
	assert_in_range(cadence.deadline_ns, hour + 1, hour + 3 * PERIOD / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tick_is_not_due_before_its_deadline),
		cmocka_unit_test(intervals_are_half_to_one_and_a_half_periods_and_one_on_average),
		cmocka_unit_test(deadlines_wander_over_every_phase_of_a_fixed_period),
		cmocka_unit_test(missed_deadlines_are_counted_and_not_made_up),
		cmocka_unit_test(an_hour_asleep_is_an_hour_of_deadlines_and_no_catching_up),
	};

	return cmocka_run_group_tests_name("cadence", tests, NULL, NULL);
}
