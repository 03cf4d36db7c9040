/* SPDX-License-Identifier: MIT
 *
 * The budget on a clock of the test's own: a sampler whose ticks cost what the test says, at deadlines of the
 * real cadences.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/sampling/budget.h"
#include "daemon/sampling/cadences.h"

#define US 1000ull
#define MS 1000000ull
#define SECOND 1000000000ull
#define PERCENT (BUDGET_PPM / 100)

struct world {
	struct budget budget;
	struct cadences cadences;
	uint64_t now_ns, cpu_ns;
	uint64_t tick_ns; /* that one costs */
};

static struct world world;

static void start(uint64_t limit_ppm, uint64_t period_ns, uint64_t tick_ns)
{
	world = (struct world){.now_ns = 1000 * SECOND, .cpu_ns = 7 * SECOND, .tick_ns = tick_ns};
	budget_start(&world.budget, limit_ppm, world.now_ns, world.cpu_ns);
	cadences_init(&world.cadences);
	if (period_ns)
		cadences_join(&world.cadences, period_ns, world.now_ns);
}

static void use(uint64_t cpu_ns)
{
	world.now_ns += cpu_ns;
	world.cpu_ns += cpu_ns;
}

/* One turn of the sampler's loop. */
static void turn(void)
{
	uint64_t deadline_ns = cadences_deadline_ns(&world.cadences);
	unsigned served;

	if (!deadline_ns || deadline_ns > world.now_ns + SECOND)
		deadline_ns = world.now_ns + SECOND;
	if (world.now_ns < deadline_ns)
		world.now_ns = deadline_ns;
	served = cadences_turn(&world.cadences, world.now_ns);
	if (served) {
		use(world.tick_ns);
		budget_count_ticks(&world.budget, served);
	}
	if (!budget_is_due(&world.budget, world.now_ns))
		return;
	budget_settle(&world.budget, world.now_ns, world.cpu_ns, cadences_asked_mhz(&world.cadences));
	cadences_stretch(&world.cadences, world.budget.stretch_ppm);
}

static void run_for(uint64_t ns)
{
	uint64_t end_ns = world.now_ns + ns;

	while (world.now_ns < end_ns)
		turn();
}

/* In ppm of one CPU, of a while. */
static uint64_t share_of(uint64_t ns)
{
	uint64_t from_ns = world.now_ns, from_cpu_ns = world.cpu_ns;

	run_for(ns);
	return (world.cpu_ns - from_cpu_ns) * BUDGET_PPM / (world.now_ns - from_ns);
}

static void within_its_budget_nothing_is_stretched(void **state)
{
	/* 1 kHz at 40 us is 4 % */
	start(10 * PERCENT, MS, 40 * US);
	for (int i = 0; i < 3000; i++) {
		turn();
		assert_int_equal(world.budget.stretch_ppm, BUDGET_PPM);
	}
	assert_in_range(world.budget.share_ppm, 35 * PERCENT / 10, 45 * PERCENT / 10);
}

static void without_a_limit_nothing_is_stretched_and_all_is_measured(void **state)
{
	start(0, MS, 900 * US);
	run_for(2 * SECOND);
	assert_int_equal(world.budget.stretch_ppm, BUDGET_PPM);
	assert_in_range(world.budget.demand_ppm, 80 * PERCENT, 95 * PERCENT);
}

static void within_a_second_the_share_is_the_budget(void **state)
{
	/* 1 kHz at 400 us is 40 %: four times what it may have */
	start(10 * PERCENT, MS, 400 * US);
	run_for(SECOND);
	assert_in_range(world.budget.stretch_ppm, 36 * BUDGET_PPM / 10, 44 * BUDGET_PPM / 10);
	assert_in_range(share_of(5 * SECOND), 95 * PERCENT / 10, 105 * PERCENT / 10);
}

/* A tick takes longer than the period: what one costs is known by the first ones. */
static void overload_is_limited_within_a_second_too(void **state)
{
	/* 1 kHz at 3 ms is three CPUs: thirty times what it may have */
	start(10 * PERCENT, MS, 3 * MS);
	run_for(SECOND);
	assert_in_range(world.budget.demand_ppm, 295 * PERCENT, 305 * PERCENT);
	assert_in_range(share_of(5 * SECOND), 95 * PERCENT / 10, 105 * PERCENT / 10);
}

/* However random deadlines are: what a tick costs does not depend on how many there are. */
static void a_steady_load_has_a_steady_stretch(void **state)
{
	start(10 * PERCENT, MS, 400 * US);
	run_for(SECOND);
	for (int i = 0; i < 5000; i++) {
		turn();
		assert_in_range(world.budget.stretch_ppm, 399 * BUDGET_PPM / 100, 401 * BUDGET_PPM / 100);
	}
}

static void a_rising_load_is_followed_without_passing_the_mark(void **state)
{
	start(10 * PERCENT, MS, 20 * US);
	run_for(SECOND);
	world.tick_ns = 400 * US;
	for (uint64_t end_ns = world.now_ns + 3 * SECOND; world.now_ns < end_ns;) {
		turn();
		assert_in_range(world.budget.stretch_ppm, BUDGET_PPM, 401 * BUDGET_PPM / 100);
	}
	assert_in_range(world.budget.stretch_ppm, 399 * BUDGET_PPM / 100, 401 * BUDGET_PPM / 100);
}

static void it_relaxes_when_the_load_falls(void **state)
{
	start(10 * PERCENT, MS, 400 * US);
	run_for(2 * SECOND);
	world.tick_ns = 20 * US;
	run_for(SECOND);
	assert_int_equal(world.budget.stretch_ppm, BUDGET_PPM);
}

/* Also where ticks have become so rare that a window has hardly one. */
static void it_relaxes_from_a_large_stretch(void **state)
{
	/* 1 kHz at 10 ms, a hundredth: a tick a second */
	start(PERCENT, MS, 10 * MS);
	run_for(5 * SECOND);
	assert_in_range(world.budget.stretch_ppm, 990 * BUDGET_PPM, 1000 * BUDGET_PPM);
	world.tick_ns = 5 * US;
	run_for(5 * SECOND);
	assert_int_equal(world.budget.stretch_ppm, BUDGET_PPM);
}

static void it_relaxes_when_there_is_nothing_left_to_sample(void **state)
{
	start(10 * PERCENT, MS, 400 * US);
	run_for(2 * SECOND);
	cadences_leave(&world.cadences, CADENCES_MAX - 1);
	assert_int_equal(cadences_deadline_ns(&world.cadences), 0);
	run_for(2 * SECOND);
	assert_int_equal(world.budget.stretch_ppm, BUDGET_PPM);
}

static void another_rate_needs_no_new_measurement(void **state)
{
	start(10 * PERCENT, MS, 400 * US);
	run_for(2 * SECOND);
	cadences_leave(&world.cadences, CADENCES_MAX - 1);
	cadences_join(&world.cadences, 2 * MS, world.now_ns);
	run_for(100 * MS);
	assert_in_range(world.budget.stretch_ppm, 199 * BUDGET_PPM / 100, 201 * BUDGET_PPM / 100);
}

static void all_periods_that_are_asked_for_count(void **state)
{
	/* 1,000 and 500 Hz, each tick 100 us: 15 % */
	start(5 * PERCENT, MS, 100 * US);
	cadences_join(&world.cadences, 2 * MS, world.now_ns);
	run_for(SECOND);
	assert_in_range(world.budget.demand_ppm, 14 * PERCENT, 15 * PERCENT);
	assert_in_range(share_of(5 * SECOND), 45 * PERCENT / 10, 55 * PERCENT / 10);
}

static void rare_ticks_are_limited_as_well(void **state)
{
	/* 10 Hz at 20 ms is 20 %, twice what it may have; eight ticks take more than a second */
	start(10 * PERCENT, 100 * MS, 20 * MS);
	run_for(10 * SECOND);
	assert_in_range(share_of(60 * SECOND), 90 * PERCENT / 10, 110 * PERCENT / 10);
}

static void what_orders_take_does_not_make_samples_fewer(void **state)
{
	/* 4 % for ticks, and as long again thrice for orders after each */
	start(10 * PERCENT, MS, 40 * US);
	for (int i = 0; i < 3000; i++) {
		use(120 * US);
		budget_exempt(&world.budget, 120 * US);
		turn();
		assert_int_equal(world.budget.stretch_ppm, BUDGET_PPM);
	}
	assert_in_range(world.budget.share_ppm, 35 * PERCENT / 10, 45 * PERCENT / 10);
}

static void another_limit_holds_from_the_next_window_on(void **state)
{
	start(0, MS, 400 * US);
	run_for(2 * SECOND);
	budget_set_limit(&world.budget, 20 * PERCENT);
	run_for(100 * MS);
	assert_in_range(world.budget.stretch_ppm, 18 * BUDGET_PPM / 10, 22 * BUDGET_PPM / 10);
	budget_set_limit(&world.budget, 0);
	run_for(100 * MS);
	assert_int_equal(world.budget.stretch_ppm, BUDGET_PPM);
}

static void the_stretch_has_an_end(void **state)
{
	/* 10 kHz at a second each */
	start(PERCENT / 10, MS / 10, SECOND);
	run_for(10 * SECOND);
	assert_int_equal(world.budget.stretch_ppm, BUDGET_MAX_STRETCH_PPM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(within_its_budget_nothing_is_stretched),
		cmocka_unit_test(without_a_limit_nothing_is_stretched_and_all_is_measured),
		cmocka_unit_test(within_a_second_the_share_is_the_budget),
		cmocka_unit_test(overload_is_limited_within_a_second_too),
		cmocka_unit_test(a_steady_load_has_a_steady_stretch),
		cmocka_unit_test(a_rising_load_is_followed_without_passing_the_mark),
		cmocka_unit_test(it_relaxes_when_the_load_falls),
		cmocka_unit_test(it_relaxes_from_a_large_stretch),
		cmocka_unit_test(it_relaxes_when_there_is_nothing_left_to_sample),
		cmocka_unit_test(another_rate_needs_no_new_measurement),
		cmocka_unit_test(all_periods_that_are_asked_for_count),
		cmocka_unit_test(rare_ticks_are_limited_as_well),
		cmocka_unit_test(what_orders_take_does_not_make_samples_fewer),
		cmocka_unit_test(another_limit_holds_from_the_next_window_on),
		cmocka_unit_test(the_stretch_has_an_end),
	};

	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
