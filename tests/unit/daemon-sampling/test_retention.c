/* SPDX-License-Identifier: MIT
 *
 * Ended units, kept for a while.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "daemon/sampling/engine.h"
#include "daemon/sampling/retention.h"

#define SECOND 1000000000ull

static struct retention *retention;
static const struct retention_limits roomy = {.units = 1000, .bytes = 1 << 30, .age_ns = 3600 * SECOND};

static int set_up(void **state)
{
	return retention_new(&retention);
}

static int tear_down(void **state)
{
	retention_free(retention);
	return 0;
}

/* Keeps a unit and gives up the own reference. */
static void keep(struct unit_result value, uint64_t now_ns, const struct retention_limits *limits)
{
	struct unit_result *unit = unit_result_new(&value);

	retention_keep(retention, unit, now_ns, limits);
	unit_result_free(unit);
}

static struct unit_result unit_of(uint64_t id, pid_t pid, uint64_t handle)
{
	return (struct unit_result){.unit_id = id, .pid = pid, .uid = 33, .handle = handle};
}

static void the_newest_comes_first(void **state)
{
	for (uint64_t id = 1; id <= 3; id++)
		keep(unit_of(id, 10, 0), id, &roomy);
	assert_int_equal(retention_count(retention), 3);
	assert_int_equal(retention_nth(retention, 0)->unit_id, 3);
	assert_int_equal(retention_nth(retention, 2)->unit_id, 1);
	assert_null(retention_nth(retention, 3));
}

static void past_the_number_the_oldest_goes(void **state)
{
	struct retention_limits limits = roomy;

	limits.units = 2;
	for (uint64_t id = 1; id <= 5; id++)
		keep(unit_of(id, 10, 0), id, &limits);
	assert_int_equal(retention_count(retention), 2);
	assert_int_equal(retention_nth(retention, 0)->unit_id, 5);
	assert_int_equal(retention_nth(retention, 1)->unit_id, 4);
}

static void past_the_bytes_the_oldest_goes(void **state)
{
	struct retention_limits limits = roomy;

	limits.bytes = 3 * sizeof(struct unit_result);
	for (uint64_t id = 1; id <= 5; id++)
		keep(unit_of(id, 10, 0), id, &limits);
	assert_int_equal(retention_count(retention), 3);
	assert_int_equal(retention_nth(retention, 2)->unit_id, 3);
}

static void a_unit_larger_than_all_the_bytes_is_not_kept(void **state)
{
	struct retention_limits limits = roomy;

	limits.bytes = sizeof(struct unit_result) - 1;
	keep(unit_of(1, 10, 0), 0, &limits);
	assert_int_equal(retention_count(retention), 0);
}

static void what_is_too_old_goes(void **state)
{
	struct retention_limits limits = roomy;

	limits.age_ns = 60 * SECOND;
	keep(unit_of(1, 10, 0), 0, &limits);
	keep(unit_of(2, 10, 0), 30 * SECOND, &limits);
	retention_expire(retention, 60 * SECOND, &limits);
	assert_int_equal(retention_count(retention), 2);
	retention_expire(retention, 60 * SECOND + 1, &limits);
	assert_int_equal(retention_count(retention), 1);
	assert_int_equal(retention_nth(retention, 0)->unit_id, 2);
}

static void the_ring_bounds_what_the_limits_do_not(void **state)
{
	struct retention_limits limits = roomy;

	limits.units = UINT32_MAX;
	for (uint64_t id = 1; id <= RETENTION_MAX_UNITS + 10; id++)
		keep(unit_of(id, 10, 0), id, &limits);
	assert_int_equal(retention_count(retention), RETENTION_MAX_UNITS);
	assert_int_equal(retention_nth(retention, 0)->unit_id, RETENTION_MAX_UNITS + 10);
	assert_int_equal(retention_nth(retention, RETENTION_MAX_UNITS - 1)->unit_id, 11);
}

static void who_holds_a_reference_keeps_what_was_let_go(void **state)
{
	struct retention_limits none = roomy;
	struct unit_result *held;

	keep(unit_of(7, 10, 0), 0, &roomy);
	held = unit_result_ref(retention_nth(retention, 0));
	none.units = 0;
	retention_expire(retention, 0, &none);
	assert_int_equal(retention_count(retention), 0);
	assert_int_equal(held->unit_id, 7);
	unit_result_free(held);
}

static void a_late_finish_finds_the_newest_unit_with_its_handle(void **state)
{
	keep(unit_of(1, 10, 500), 0, &roomy);
	keep(unit_of(2, 11, 500), 0, &roomy);
	keep(unit_of(3, 10, 600), 0, &roomy);
	keep(unit_of(4, 10, 500), 0, &roomy);
	assert_int_equal(retention_find_handle(retention, 10, 33, 500)->unit_id, 4);
	assert_int_equal(retention_find_handle(retention, 11, 33, 500)->unit_id, 2);
	assert_null(retention_find_handle(retention, 10, 33, 700));
}

static void a_process_number_used_again_by_another_user_finds_nothing(void **state)
{
	keep(unit_of(1, 10, 500), 0, &roomy);
	assert_null(retention_find_handle(retention, 10, 1000, 500));
}

static void what_a_client_has_finished_is_not_found_by_its_handle_again(void **state)
{
	struct unit_result finished = unit_of(1, 10, 500);

	finished.finished_by_client = true;
	keep(finished, 0, &roomy);
	assert_null(retention_find_handle(retention, 10, 33, 500));
	assert_int_equal(retention_find(retention, 1, "", ORDER_ANY_UID)->unit_id, 1);
}

static void readers_find_by_id_or_trace_and_only_what_is_theirs(void **state)
{
	struct unit_result unit = unit_of(1, 10, 0);

	snprintf(unit.trace_id, sizeof(unit.trace_id), "%s", "0af7651916cd43dd8448eb211c80319c");
	keep(unit, 0, &roomy);
	unit.unit_id = 2;
	keep(unit, 0, &roomy);
	keep(unit_of(3, 10, 0), 0, &roomy);
	assert_int_equal(retention_find(retention, 0, unit.trace_id, ORDER_ANY_UID)->unit_id, 2);
	assert_int_equal(retention_find(retention, 1, "", 33)->unit_id, 1);
	assert_int_equal(retention_find(retention, 1, unit.trace_id, 33)->unit_id, 1);
	assert_null(retention_find(retention, 3, unit.trace_id, 33));
	assert_null(retention_find(retention, 1, "", 1000));
}

static void a_walk_goes_on_where_it_was_while_units_come_and_go(void **state)
{
	struct retention_limits limits = roomy;
	uint64_t before = UINT64_MAX;

	assert_null(retention_walk(retention, &before));
	for (uint64_t id = 1; id <= 5; id++)
		keep(unit_of(id, 10, 0), id, &roomy);
	before = UINT64_MAX;
	assert_int_equal(retention_walk(retention, &before)->unit_id, 5);
	assert_int_equal(retention_walk(retention, &before)->unit_id, 4);
	/* What is newer is none of its business, what is gone it does not meet. */
	limits.units = 4;
	keep(unit_of(6, 10, 0), 6, &limits);
	assert_int_equal(retention_walk(retention, &before)->unit_id, 3);
	assert_null(retention_walk(retention, &before));
	assert_null(retention_walk(retention, &before));
}

static void a_unit_that_has_grown_counts_for_what_it_holds_now(void **state)
{
	struct retention_limits limits = roomy;

	keep(unit_of(1, 10, 0), 0, &roomy);
	keep(unit_of(2, 10, 0), 0, &roomy);
	limits.bytes = 2 * sizeof(struct unit_result) + 500;
	retention_expire(retention, 0, &limits);
	assert_int_equal(retention_count(retention), 2);
	atomic_fetch_add(&retention_nth(retention, 0)->bytes, 501);
	retention_expire(retention, 0, &limits);
	assert_int_equal(retention_count(retention), 1);
	assert_int_equal(retention_nth(retention, 0)->unit_id, 2);
}

int main(void)
{
#define RETENTION_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		RETENTION_TEST(the_newest_comes_first),
		RETENTION_TEST(past_the_number_the_oldest_goes),
		RETENTION_TEST(past_the_bytes_the_oldest_goes),
		RETENTION_TEST(a_unit_larger_than_all_the_bytes_is_not_kept),
		RETENTION_TEST(what_is_too_old_goes),
		RETENTION_TEST(the_ring_bounds_what_the_limits_do_not),
		RETENTION_TEST(who_holds_a_reference_keeps_what_was_let_go),
		RETENTION_TEST(a_late_finish_finds_the_newest_unit_with_its_handle),
		RETENTION_TEST(a_process_number_used_again_by_another_user_finds_nothing),
		RETENTION_TEST(what_a_client_has_finished_is_not_found_by_its_handle_again),
		RETENTION_TEST(readers_find_by_id_or_trace_and_only_what_is_theirs),
		RETENTION_TEST(a_walk_goes_on_where_it_was_while_units_come_and_go),
		RETENTION_TEST(a_unit_that_has_grown_counts_for_what_it_holds_now),
	};

	return cmocka_run_group_tests_name("retention", tests, NULL, NULL);
}
