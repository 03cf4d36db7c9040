/* SPDX-License-Identifier: MIT
 *
 * finish: which unit it ends, with what in it, and what may open afterwards.
 */
#include <inttypes.h>

#include "target_fixture.h"

#define TRACE_A "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define TRACE_B "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define ID_A "0af7651916cd43dd8448eb211c80319c"
#define ID_B "1af7651916cd43dd8448eb211c80319c"

/* A request that has run for 6 ms when the tick finds it. */
static void begin_request(void)
{
	fake_idle();
	tick();
	fake_request("/cart", fake.now_ns);
	fake_in_function(&sampling, "hot");
	fake_run(6 * MS);
	tick();
}

/* A context with a handle that says now; its handle. */
static uint64_t begin(const char *trace, char text[static 200])
{
	snprintf(text, 200, "%s;h=%" PRIu64, trace, fake.now_ns);
	fake_set_global(text);
	return fake.now_ns;
}

/* The client has unset the global and asks. @text NULL: it does not say what it was. */
static enum order_error finish(uint64_t handle, const char *text, struct unit_result **ret_unit)
{
	struct trace_context context;

	fake_set_global(NULL);
	fake_sleep(0);
	if (text)
		context = fake_context(text);
	return finish_target(
		&(struct finish_call){
			.handle = handle, .context = text ? &context : NULL, .asked_ns = fake.now_ns},
		ret_unit);
}

static void assert_no_unit(uint64_t handle, const char *text)
{
	struct unit_result *none = NULL;

	assert_int_equal(finish(handle, text, &none), ORDER_E_NO_UNIT);
	assert_null(none);
}

/* ---- which unit ---- */

static void zero_ends_the_automatic_unit_that_nobody_adopted(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;

	begin_request();
	fake_run(3 * MS);
	assert_int_equal(finish(0, NULL, &unit), ORDER_OK);
	assert_int_equal(unit->duration_ns, 9 * MS);
	assert_int_equal(unit->cpu_ns, 9 * MS);
	assert_int_equal(unit->handle, 0);
	assert_true(unit->finished_by_client);
	assert_conserved(unit);
}

static void its_own_handle_ends_the_unit_it_adopted(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;
	char text[200];

	begin_request();
	uint64_t handle = begin(TRACE_A, text);
	work("hot", 10 * MS);
	fake_run(1 * MS);
	assert_int_equal(finish(handle, text, &unit), ORDER_OK);
	assert_int_equal(unit->handle, handle);
	assert_int_equal(unit->duration_ns, 17 * MS);
	assert_string_equal(unit->trace_id, ID_A);
	assert_conserved(unit);
}

static void a_handle_no_sample_has_seen_adopts_the_automatic_unit(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;
	char text[200];

	begin_request();
	fake_run(1 * MS);
	uint64_t handle = begin(TRACE_A, text);
	fake_run(1 * MS);
	assert_int_equal(finish(handle, text, &unit), ORDER_OK);
	assert_true(unit->automatic);
	assert_true(unit->adopted);
	assert_int_equal(unit->handle, handle);
	assert_int_equal(unit->duration_ns, 8 * MS);
	assert_string_equal(unit->trace_id, ID_A);
	assert_conserved(unit);
}

static void a_newer_unit_no_sample_has_seen_begins_at_its_handle(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;
	char first[200], second[200];

	begin_request();
	begin(TRACE_A, first);
	work("hot", 10 * MS);
	fake_run(2 * MS);
	uint64_t handle = begin(TRACE_B, second);
	fake_run(3 * MS);
	assert_int_equal(finish(handle, second, &unit), ORDER_OK);
	assert_int_equal(unit->duration_ns, 3 * MS);
	assert_int_equal(unit->cpu_ns, 3 * MS);
	assert_false(unit->automatic);
	assert_string_equal(unit->trace_id, ID_B);
	assert_conserved(unit);
	/* The one it took the place of ended there. */
	const struct unit_result *abandoned = ended();
	assert_string_equal(abandoned->trace_id, ID_A);
	assert_int_equal(abandoned->duration_ns, 18 * MS);
	assert_conserved(abandoned);
}

static void zero_means_the_newest_context_where_the_client_tells_it(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;
	char first[200], second[200];

	begin_request();
	begin(TRACE_A, first);
	work("hot", 10 * MS);
	fake_run(2 * MS);
	uint64_t handle = begin(TRACE_B, second);
	fake_run(3 * MS);
	assert_int_equal(finish(0, second, &unit), ORDER_OK);
	assert_int_equal(unit->handle, handle);
	assert_int_equal(unit->duration_ns, 3 * MS);
}

static void zero_with_an_older_context_ends_whichever_is_open(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;
	char first[200], second[200];

	begin_request();
	begin(TRACE_A, first);
	work("hot", 10 * MS);
	begin(TRACE_B, second);
	work("hot", 10 * MS);
	assert_int_equal(finish(0, first, &unit), ORDER_OK);
	assert_string_equal(unit->trace_id, ID_B);
}

static void a_context_written_by_hand_labels_the_unit_no_sample_saw_it_in(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;

	begin_request();
	fake_run(1 * MS);
	assert_int_equal(finish(0, TRACE_A ";n=cart.show", &unit), ORDER_OK);
	assert_string_equal(unit->trace_id, ID_A);
	assert_string_equal(unit->name, "cart.show");
	assert_true(unit->automatic);
}

static void an_older_handle_ends_nothing(void **state)
{
	char first[200], second[200];

	begin_request();
	uint64_t older = begin(TRACE_A, first);
	work("hot", 10 * MS);
	uint64_t newer = begin(TRACE_B, second);
	work("hot", 10 * MS);
	assert_no_unit(older, first);
	assert_true(target->unit.open);
	assert_int_equal(target->unit.labels.handle, newer);
}

static void a_handle_without_its_context_or_from_the_future_ends_nothing(void **state)
{
	char text[200];

	begin_request();
	uint64_t handle = begin(TRACE_A, text);
	assert_no_unit(handle, NULL);
	assert_no_unit(handle + 1000 * MS, TRACE_A ";h=99999999999999999");
	assert_true(target->unit.open);
	assert_false(target->unit.adopted);
}

static void nothing_can_be_finished_twice(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;
	char text[200];

	begin_request();
	uint64_t handle = begin(TRACE_A, text);
	work("hot", 10 * MS);
	assert_int_equal(finish(handle, text, &unit), ORDER_OK);
	assert_no_unit(handle, text);
	assert_no_unit(0, text);
	assert_no_unit(0, NULL);
}

static void between_requests_there_is_nothing_to_finish(void **state)
{
	tick();
	assert_no_unit(0, NULL);
	assert_int_equal(target->requests_seen, 0);
}

static void a_process_never_looked_at_before_has_its_unit_finished_all_the_same(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;
	char text[200];

	fake_request("/cart", fake.now_ns - 4 * MS);
	fake_in_function(&sampling, "hot");
	fake.now_ns -= 1 * MS;
	uint64_t handle = begin(TRACE_A, text);
	fake.now_ns += 1 * MS;
	assert_int_equal(finish(handle, text, &unit), ORDER_OK);
	assert_int_equal(unit->duration_ns, 4 * MS);
	assert_true(unit->automatic);
	assert_string_equal(unit->trace_id, ID_A);
	assert_int_equal(unit->accounting.expected, 0);
	assert_conserved(unit);
}

/* A client that gave up waiting: its request has ended, and another is on by the time its order is read. */
static void a_finish_that_comes_late_leaves_the_next_request_alone(void **state)
{
	char text[200];
	uint64_t handle, asked_ns;
	struct trace_context context;
	struct unit_result *none = NULL;

	begin_request();
	handle = begin(TRACE_A, text);
	work("hot", 10 * MS);
	context = fake_context(text);
	asked_ns = fake.now_ns;
	fake_set_global(NULL);
	fake_run(2 * MS);
	fake_request("/next", fake.now_ns);
	work("secret", 10 * MS);

	/* by its handle, which is older than the request, even if the order waited before it was stamped */
	assert_int_equal(
		target_finish(target, &sampling, &(struct finish_call){handle, &context, fake.now_ns}, &none),
		ORDER_E_NO_UNIT);
	/* by the time it was asked, where no handle says */
	assert_int_equal(target_finish(target, &sampling, &(struct finish_call){0, NULL, asked_ns}, &none),
		ORDER_E_NO_UNIT);
	assert_null(none);
	/* the next request's unit is open still and nobody's */
	assert_true(target->unit.open);
	assert_false(target->unit.adopted);
	assert_string_equal(target->unit.labels.trace_id, "");
	/* and the first one's is kept under its handle */
	assert_int_equal(
		retention_find_handle(sampling.retention, 4711, target->identity.uid, handle)->handle,
		handle);
}

static void a_finish_that_comes_late_to_an_idle_worker_begins_nothing(void **state)
{
	char text[200];
	uint64_t handle;
	struct trace_context context;
	struct unit_result *none = NULL;

	begin_request();
	handle = begin(TRACE_A, text);
	work("hot", 10 * MS);
	context = fake_context(text);
	fake_idle();
	tick();
	fake_sleep(5 * MS);
	tick();
	assert_int_equal(target_finish(target, &sampling,
				 &(struct finish_call){handle + 1, &context, fake.now_ns}, &none),
		ORDER_E_NO_UNIT);
	assert_null(none);
	assert_false(target->unit.open);
}

static void a_process_that_has_ended_is_no_target(void **state)
{
	struct unit_result *none = NULL;

	begin_request();
	fake.clocks_error = -ESRCH;
	assert_int_equal(finish(0, NULL, &none), ORDER_E_NOT_A_TARGET);
	assert_null(none);
}

static void a_look_that_fails_does_not_keep_a_unit_from_being_finished(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;

	begin_request();
	fake.answer = PHP_PROCESS_E_UNREADABLE;
	assert_int_equal(finish(0, NULL, &unit), ORDER_OK);
	assert_int_equal(unit->duration_ns, 6 * MS);
}

/* ---- afterwards ---- */

static void after_it_no_unit_opens_in_this_request(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;

	begin_request();
	assert_int_equal(finish(0, NULL, &unit), ORDER_OK);
	work("hot", 10 * MS);
	work("hot", 10 * MS);
	assert_false(target->unit.open);
	/* The window goes on. */
	assert_true(target->window.open);
	assert_int_equal(target->window_accounting.taken, 3);
	fake_request("/next", fake.now_ns);
	work("hot", 10 * MS);
	assert_true(target->unit.open);
	assert_true(target->unit.automatic);
}

static void a_stale_context_begins_nothing(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;
	char text[200];

	begin_request();
	uint64_t handle = begin(TRACE_A, text);
	work("hot", 10 * MS);
	assert_int_equal(finish(handle, text, &unit), ORDER_OK);
	/* The client did not unset it. */
	fake_set_global(text);
	work("hot", 10 * MS);
	assert_false(target->unit.open);
}

static void a_context_from_within_the_finished_unit_is_stale_too(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;
	char text[200];

	begin_request();
	fake_run(1 * MS);
	begin(TRACE_A, text);
	fake_run(1 * MS);
	/* No look has seen it, and finish does not tell of it. */
	assert_int_equal(finish(0, NULL, &unit), ORDER_OK);
	fake_set_global(text);
	work("hot", 10 * MS);
	assert_false(target->unit.open);
}

static void a_stale_context_without_a_handle_begins_nothing_and_another_does(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;

	begin_request();
	fake_set_global(TRACE_A);
	work("hot", 10 * MS);
	assert_int_equal(finish(0, NULL, &unit), ORDER_OK);
	fake_set_global(TRACE_A);
	work("hot", 10 * MS);
	assert_false(target->unit.open);
	fake_set_global(TRACE_B);
	work("hot", 10 * MS);
	assert_true(target->unit.open);
	assert_string_equal(target->unit.labels.trace_id, ID_B);
}

static void a_worker_of_many_jobs_has_a_unit_for_each(void **state)
{
	char text[200];

	snprintf(fake.sapi, sizeof(fake.sapi), "cli");
	begin_request();
	for (int job = 0; job < 3; job++) {
		_cleanup_(unit_result_freep) struct unit_result *unit = NULL;
		uint64_t handle;

		fake_sleep(20 * MS);
		handle = begin(TRACE_A ";u=queue", text);
		work("job", 10 * MS);
		fake_run(2 * MS);
		assert_int_equal(finish(handle, text, &unit), ORDER_OK);
		assert_int_equal(unit->type, UNIT_QUEUE);
		/* The first adopts the process's own unit. */
		assert_int_equal(unit->duration_ns, job == 0 ? 38 * MS : 12 * MS);
		assert_int_equal(unit->cpu_ns, job == 0 ? 18 * MS : 12 * MS);
		assert_conserved(unit);
	}
}

static void the_period_it_asked_for_ends_with_it(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;

	begin_request();
	fake_set_global(TRACE_A ";r=1000");
	work("hot", 10 * MS);
	assert_int_equal(target->period_ns, 1 * MS);
	assert_int_equal(finish(0, NULL, &unit), ORDER_OK);
	assert_int_equal(unit->period_ns, 1 * MS);
	assert_int_equal(target->period_ns, 10 * MS);
}

static void counters_are_those_of_the_moment(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL;

	begin_request();
	fake.counters = (struct counters){.has_gc = true,
		.gc_runs = 4,
		.gc_collected = 40,
		.has_memory = true,
		.memory_peak_bytes = 99};
	assert_int_equal(finish(0, NULL, &unit), ORDER_OK);
	assert_int_equal(unit->counters.gc_runs, 4);
	assert_int_equal(unit->counters.memory_peak_bytes, 99);
}

int main(void)
{
#define FINISH_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		FINISH_TEST(zero_ends_the_automatic_unit_that_nobody_adopted),
		FINISH_TEST(its_own_handle_ends_the_unit_it_adopted),
		FINISH_TEST(a_handle_no_sample_has_seen_adopts_the_automatic_unit),
		FINISH_TEST(a_newer_unit_no_sample_has_seen_begins_at_its_handle),
		FINISH_TEST(zero_means_the_newest_context_where_the_client_tells_it),
		FINISH_TEST(zero_with_an_older_context_ends_whichever_is_open),
		FINISH_TEST(a_context_written_by_hand_labels_the_unit_no_sample_saw_it_in),
		FINISH_TEST(an_older_handle_ends_nothing),
		FINISH_TEST(a_handle_without_its_context_or_from_the_future_ends_nothing),
		FINISH_TEST(nothing_can_be_finished_twice),
		FINISH_TEST(between_requests_there_is_nothing_to_finish),
		FINISH_TEST(a_process_never_looked_at_before_has_its_unit_finished_all_the_same),
		FINISH_TEST(a_finish_that_comes_late_leaves_the_next_request_alone),
		FINISH_TEST(a_finish_that_comes_late_to_an_idle_worker_begins_nothing),
		FINISH_TEST(a_process_that_has_ended_is_no_target),
		FINISH_TEST(a_look_that_fails_does_not_keep_a_unit_from_being_finished),
		FINISH_TEST(after_it_no_unit_opens_in_this_request),
		FINISH_TEST(a_stale_context_begins_nothing),
		FINISH_TEST(a_context_from_within_the_finished_unit_is_stale_too),
		FINISH_TEST(a_stale_context_without_a_handle_begins_nothing_and_another_does),
		FINISH_TEST(a_worker_of_many_jobs_has_a_unit_for_each),
		FINISH_TEST(the_period_it_asked_for_ends_with_it),
		FINISH_TEST(counters_are_those_of_the_moment),
	};

	return cmocka_run_group_tests_name("finish", tests, NULL, NULL);
}
