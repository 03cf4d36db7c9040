/* SPDX-License-Identifier: MIT
 *
 * How requests and units come and go on a target, told by ticks on a process and a clock of the test's own.
 */
#include <inttypes.h>

#include "target_fixture.h"

#define TRACE_A "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define TRACE_B "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

/* An idle tick, then 4 ms later a request begins, which the tick 6 ms after that finds in @function. */
static void begin_request(const char *path, const char *function)
{
	fake_idle();
	tick();
	fake_sleep(4 * MS);
	fake_request(path, fake.now_ns);
	fake_in_function(&sampling, function);
	fake_run(6 * MS);
	tick();
}

/* @more: further fields, or "". */
static void set_global(const char *trace, uint64_t handle, const char *more)
{
	char text[200];

	snprintf(text, sizeof(text), "%s;h=%" PRIu64 "%s", trace, handle, more);
	fake_set_global(text);
}

/* ---- requests ---- */

static void an_automatic_unit_begins_with_its_request_and_ends_with_it(void **state)
{
	begin_request("/cart", "hot");
	assert_true(target->unit.open);
	assert_true(target->unit.automatic);
	assert_int_equal(target->unit.begin_ns, START_NS + 4 * MS);
	assert_int_equal(target->requests_seen, 1);
	work("hot", 10 * MS);
	/* 3 ms more of work, then nothing: the end is where the CPU was left */
	fake_idle();
	fake_run(3 * MS);
	fake_sleep(7 * MS);
	tick();
	assert_false(target->unit.open);
	assert_true(target->idle);
	assert_int_equal(ended()->duration_ns, 19 * MS);
	assert_int_equal(ended()->cpu_ns, 19 * MS);
	assert_int_equal(ended()->handle, 0);
	assert_true(ended()->automatic);
	assert_false(ended()->adopted);
	assert_false(ended()->finished_by_client);
	assert_int_equal(ended()->type, UNIT_HTTP);
	assert_string_equal(ended()->path, "/cart");
	assert_int_equal(ended()->accounting.expected, 2);
	assert_int_equal(time_of(ended()->profile, "hot").samples, 2);
	assert_conserved(ended());
}

static void a_command_of_the_cli_is_no_http_request(void **state)
{
	snprintf(fake.sapi, sizeof(fake.sapi), "cli");
	begin_request("/srv/artisan.php", "hot");
	assert_int_equal(target->unit.labels.type, UNIT_COMMAND);
}

static void a_request_seen_first_in_its_middle_says_how_long_it_was_before(void **state)
{
	/* attached 50 ms into a request, of which the process's clocks don't say how much was CPU */
	fake_request("/slow", START_NS - 50 * MS);
	fake_in_function(&sampling, "hot");
	tick();
	assert_int_equal(target->unit.begin_ns, START_NS - 50 * MS);
	work("hot", 10 * MS);
	fake_idle();
	tick();
	assert_int_equal(ended()->duration_ns, 60 * MS);
	assert_int_equal(ended()->cpu_ns, 10 * MS);
	assert_int_equal(time_of(ended()->profile, "<unread>").wall_ns, 50 * MS);
	assert_int_equal(time_of(ended()->profile, "hot").wall_ns, 10 * MS);
	assert_conserved(ended());
}

static void a_request_whose_beginning_is_not_known_begins_after_the_last_look(void **state)
{
	tick();
	fake_sleep(10 * MS);
	fake_request("/cart", 0);
	fake_in_function(&sampling, "hot");
	tick();
	assert_int_equal(target->unit.begin_ns, START_NS);
}

static void a_beginning_before_the_last_look_is_not_believed(void **state)
{
	tick();
	fake_sleep(10 * MS);
	fake_request("/cart", START_NS - 1 * MS);
	fake_in_function(&sampling, "hot");
	tick();
	assert_int_equal(target->unit.begin_ns, START_NS);
}

static void phps_own_start_time_is_turned_into_the_monotonic_clocks(void **state)
{
	tick();
	fake_request("/cart", 0);
	/* 4 ms from now; a double holds such a time to within half a microsecond */
	fake.sample.request.start_time_s = (double)(realtime_now_ns() + 4 * (int64_t)MS) / 1e9;
	fake_in_function(&sampling, "hot");
	fake_run(10 * MS);
	tick();
	assert_in_range(target->unit.begin_ns, START_NS + 4 * MS - 1000, START_NS + 4 * MS + 1000);
}

static void two_requests_in_a_row_are_two_units_and_their_cpu_adds_up(void **state)
{
	uint64_t run_ns = fake.clocks.run_ns;

	begin_request("/one", "a");
	work("a", 10 * MS);
	/* 3 ms more of the first, then the second, all on the CPU: no look in between found it idle */
	fake_run(3 * MS);
	fake_request("/two", fake.now_ns);
	work("b", 7 * MS);
	assert_int_equal(target->requests_seen, 2);
	assert_int_equal(ended()->duration_ns, 19 * MS);
	assert_int_equal(ended()->cpu_ns, 19 * MS);
	assert_string_equal(ended()->path, "/one");
	assert_int_equal(time_of(ended()->profile, "b").samples, 0);
	assert_conserved(ended());
	fake_idle();
	tick();
	assert_string_equal(ended()->path, "/two");
	assert_int_equal(ended()->duration_ns, 7 * MS);
	assert_int_equal(ended()->cpu_ns, 7 * MS);
	assert_int_equal(time_of(ended()->profile, "a").samples, 0);
	assert_conserved(ended());
	assert_int_equal(fake.clocks.run_ns - run_ns, 26 * MS);
}

static void php_at_work_without_a_function_does_not_end_a_request(void **state)
{
	begin_request("/cart", "hot");
	fake_idle();
	fake.sample.request.active = true;
	fake_run(10 * MS);
	tick();
	assert_true(target->unit.open);
	fake_idle();
	tick();
	assert_int_equal(time_of(ended()->profile, "<engine>").samples, 1);
	assert_conserved(ended());
}

static void a_request_of_which_no_php_code_was_seen_yet_has_not_begun(void **state)
{
	tick();
	fake_request("/cart", fake.now_ns);
	fake_idle();
	fake.sample.request.active = true;
	fake_run(10 * MS);
	tick();
	assert_false(target->unit.open);
	assert_int_equal(target->accounting.idle, 2);
}

static void a_unit_ends_when_its_process_is_let_go(void **state)
{
	begin_request("/cart", "hot");
	fake_run(3 * MS);
	target_free(target, &sampling);
	assert_int_equal(ended()->duration_ns, 6 * MS);
	assert_conserved(ended());
	target = fake_target(&sampling);
}

/* ---- contexts ---- */

static void the_first_context_adopts_the_automatic_unit(void **state)
{
	uint64_t handle;

	begin_request("/cart", "hot");
	fake_run(4 * MS);
	handle = fake.now_ns;
	set_global(TRACE_A, handle, ";u=http;n=cart.show");
	work("hot", 6 * MS);
	assert_int_equal(retention_count(sampling.retention), 0);
	assert_int_equal(target->unit.begin_ns, START_NS + 4 * MS);
	assert_int_equal(target->unit.labels.handle, handle);
	assert_string_equal(target->unit.labels.trace_id, "0af7651916cd43dd8448eb211c80319c");
	assert_string_equal(target->unit.labels.name, "cart.show");
	fake_set_global(NULL);
	fake_idle();
	tick();
	assert_int_equal(ended()->duration_ns, 16 * MS);
	assert_true(ended()->automatic);
	assert_true(ended()->adopted);
	assert_int_equal(time_of(ended()->profile, "hot").samples, 2);
	assert_conserved(ended());
}

static void a_second_context_abandons_the_first_unit_where_its_handle_says(void **state)
{
	uint64_t second;

	begin_request("/cart", "hot");
	set_global(TRACE_A, fake.now_ns, "");
	work("a", 10 * MS);
	fake_run(4 * MS);
	second = fake.now_ns;
	set_global(TRACE_B, second, ";u=queue");
	work("b", 6 * MS);

	assert_int_equal(ended()->duration_ns, 20 * MS);
	assert_int_equal(ended()->cpu_ns, 20 * MS);
	assert_string_equal(ended()->trace_id, "0af7651916cd43dd8448eb211c80319c");
	assert_false(ended()->finished_by_client);
	assert_conserved(ended());
	assert_int_equal(target->unit.begin_ns, second);
	assert_false(target->unit.automatic);
	assert_string_equal(target->unit.labels.path, "/cart");
	fake_idle();
	tick();
	assert_int_equal(ended()->duration_ns, 6 * MS);
	assert_int_equal(ended()->type, UNIT_QUEUE);
	assert_string_equal(ended()->trace_id, "1af7651916cd43dd8448eb211c80319c");
	assert_int_equal(time_of(ended()->profile, "a").samples, 0);
	assert_conserved(ended());
}

static void a_context_that_stays_or_goes_changes_nothing(void **state)
{
	begin_request("/cart", "hot");
	set_global(TRACE_A, fake.now_ns, "");
	work("hot", 10 * MS);
	work("hot", 10 * MS);
	fake_set_global(NULL);
	work("hot", 10 * MS);
	assert_int_equal(retention_count(sampling.retention), 0);
	assert_int_equal(target->unit.begin_ns, START_NS + 4 * MS);
}

static void a_handle_that_can_be_no_time_is_only_a_name(void **state)
{
	begin_request("/cart", "hot");
	fake_set_global(TRACE_A ";h=7");
	work("hot", 10 * MS);
	fake_set_global(TRACE_A ";h=8");
	work("hot", 10 * MS);
	assert_int_equal(ended()->handle, 7);
	assert_int_equal(target->unit.labels.handle, 8);
	assert_int_equal(target->unit.begin_ns, fake.now_ns);
}

static void without_handles_trace_and_span_tell_units_apart(void **state)
{
	begin_request("/cart", "hot");
	fake_set_global(TRACE_A ";n=one");
	work("hot", 10 * MS);
	fake_set_global(TRACE_A ";n=two");
	work("hot", 10 * MS);
	assert_int_equal(retention_count(sampling.retention), 0);
	fake_set_global(TRACE_B);
	work("hot", 10 * MS);
	assert_string_equal(ended()->trace_id, "0af7651916cd43dd8448eb211c80319c");
}

static void a_context_that_declines_leaves_no_profile(void **state)
{
	begin_request("/cart", "hot");
	set_global(TRACE_A, fake.now_ns, ";p=0");
	work("hot", 10 * MS);
	work("hot", 10 * MS);
	fake_idle();
	tick();
	assert_false(ended()->profiling);
	assert_null(ended()->profile);
	assert_int_equal(ended()->accounting.expected, 0);
	assert_int_equal(ended()->duration_ns, 26 * MS);
	assert_int_equal(ended()->cpu_ns, 26 * MS);
}

static void an_invalid_context_is_counted_each_time_it_appears(void **state)
{
	begin_request("/cart", "hot");
	fake_set_global("?");
	work("hot", 10 * MS);
	work("hot", 10 * MS);
	assert_int_equal(target->accounting.context_invalid, 1);
	fake_set_global(NULL);
	work("hot", 10 * MS);
	fake_set_global("?");
	work("hot", 10 * MS);
	assert_int_equal(target->accounting.context_invalid, 2);
	assert_int_equal(target->window_accounting.context_invalid, 2);
	assert_int_equal(target->unit.labels.accounting.context_invalid, 2);
	assert_int_equal(sampling.accounting.context_invalid, 2);
	assert_false(target->unit.adopted);
}

static void a_context_that_was_not_looked_for_has_not_gone(void **state)
{
	begin_request("/cart", "hot");
	fake_set_global("?");
	work("hot", 10 * MS);
	/* PHP flushes its output: no function on the stack, the global is not read */
	fake_idle();
	fake.sample.request.active = true;
	fake_run(10 * MS);
	tick();
	fake_set_global("?");
	work("hot", 10 * MS);
	assert_int_equal(target->accounting.context_invalid, 1);
}

/* ---- periods (docs/DECISIONS.md, 7) ---- */

static void an_adopting_begin_does_not_change_the_period(void **state)
{
	begin_request("/cart", "hot");
	set_global(TRACE_A, fake.now_ns, ";r=1000");
	work("hot", 10 * MS);
	assert_int_equal(target->period_ns, 10 * MS);
	assert_int_equal(target->unit.labels.period_ns, 10 * MS);
}

static void a_global_written_by_hand_gets_the_period_it_asks_for(void **state)
{
	begin_request("/cart", "hot");
	fake_set_global(TRACE_A ";r=1000");
	work("hot", 10 * MS);
	assert_int_equal(target->period_ns, 1 * MS);
	assert_int_equal(target->unit.labels.period_ns, 1 * MS);
	fake_idle();
	tick();
	assert_int_equal(target->period_ns, 10 * MS);
	assert_int_equal(ended()->period_ns, 1 * MS);
}

static void a_unit_of_its_own_gets_the_period_it_asks_for_within_the_bounds(void **state)
{
	begin_request("/cart", "hot");
	set_global(TRACE_A, fake.now_ns, "");
	work("hot", 10 * MS);
	set_global(TRACE_B, fake.now_ns, ";r=2000");
	work("hot", 10 * MS);
	assert_int_equal(target->period_ns, 2 * MS);
	set_global(TRACE_B, fake.now_ns, ";r=1");
	work("hot", 10 * MS);
	assert_int_equal(target->period_ns, MS / 10);
	set_global(TRACE_B, fake.now_ns, ";r=4000000000");
	work("hot", 10 * MS);
	assert_int_equal(target->period_ns, 1000 * MS);
	set_global(TRACE_B, fake.now_ns, "");
	work("hot", 10 * MS);
	assert_int_equal(target->period_ns, 10 * MS);
}

static void another_rate_leaves_a_unit_the_period_it_asked_for(void **state)
{
	begin_request("/cart", "hot");
	fake_set_global(TRACE_A ";r=1000");
	work("hot", 10 * MS);
	target_set_rate(target, 20 * MS);
	assert_int_equal(target->period_ns, 1 * MS);
	fake_idle();
	tick();
	assert_int_equal(target->period_ns, 20 * MS);
}

/* ---- garbage collections ---- */

static void an_automatic_unit_has_all_collections_of_its_request(void **state)
{
	/* PHP counts them from 0 in each request; two were before the first look */
	fake.counters = (struct counters){.has_gc = true, .gc_runs = 2, .gc_collected = 20};
	begin_request("/cart", "hot");
	assert_int_equal(target->unit.gc_runs, 0);
	set_global(TRACE_A, fake.now_ns, "");
	work("hot", 10 * MS);
	set_global(TRACE_B, fake.now_ns, "");
	work("hot", 10 * MS);
	assert_int_equal(target->unit.gc_runs, 2);
	assert_int_equal(target->unit.gc_collected, 20);
}

int main(void)
{
#define REQUEST_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		REQUEST_TEST(an_automatic_unit_begins_with_its_request_and_ends_with_it),
		REQUEST_TEST(a_command_of_the_cli_is_no_http_request),
		REQUEST_TEST(a_request_seen_first_in_its_middle_says_how_long_it_was_before),
		REQUEST_TEST(a_request_whose_beginning_is_not_known_begins_after_the_last_look),
		REQUEST_TEST(a_beginning_before_the_last_look_is_not_believed),
		REQUEST_TEST(phps_own_start_time_is_turned_into_the_monotonic_clocks),
		REQUEST_TEST(two_requests_in_a_row_are_two_units_and_their_cpu_adds_up),
		REQUEST_TEST(php_at_work_without_a_function_does_not_end_a_request),
		REQUEST_TEST(a_request_of_which_no_php_code_was_seen_yet_has_not_begun),
		REQUEST_TEST(a_unit_ends_when_its_process_is_let_go),
		REQUEST_TEST(the_first_context_adopts_the_automatic_unit),
		REQUEST_TEST(a_second_context_abandons_the_first_unit_where_its_handle_says),
		REQUEST_TEST(a_context_that_stays_or_goes_changes_nothing),
		REQUEST_TEST(a_handle_that_can_be_no_time_is_only_a_name),
		REQUEST_TEST(without_handles_trace_and_span_tell_units_apart),
		REQUEST_TEST(a_context_that_declines_leaves_no_profile),
		REQUEST_TEST(an_invalid_context_is_counted_each_time_it_appears),
		REQUEST_TEST(a_context_that_was_not_looked_for_has_not_gone),
		REQUEST_TEST(an_adopting_begin_does_not_change_the_period),
		REQUEST_TEST(a_global_written_by_hand_gets_the_period_it_asks_for),
		REQUEST_TEST(a_unit_of_its_own_gets_the_period_it_asks_for_within_the_bounds),
		REQUEST_TEST(another_rate_leaves_a_unit_the_period_it_asked_for),
		REQUEST_TEST(an_automatic_unit_has_all_collections_of_its_request),
	};

	return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
