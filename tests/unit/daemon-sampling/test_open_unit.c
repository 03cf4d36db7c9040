/* SPDX-License-Identifier: MIT
 *
 * A unit from its beginning to its result: labels, adoption, what is thrown away, and sums that are exact.
 */
#include "fake_process.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static struct sampling sampling;
static struct target *target;
static struct open_unit unit;
static const struct unit_owner owner = {
	.pid = 4711, .uid = 33, .pool = "www", .period_ns = 10 * MS, .automatic_type = UNIT_HTTP};

static int set_up(void **state)
{
	unit = (struct open_unit){0};
	return fake_set_up(&sampling, &target);
}

static int tear_down(void **state)
{
	if (unit.open)
		open_unit_drop(&unit, &sampling);
	target_free(target, &sampling);
	sampling_deinit(&sampling);
	return 0;
}

static void begin(bool automatic)
{
	assert_int_equal(open_unit_begin(&unit, &sampling, &owner, automatic, fake.now_ns, &fake.clocks), 0);
}

/* A sample in @function now. */
static void sample(const char *function, bool running)
{
	bool overflow;
	uint32_t node;

	fake_in_function(&sampling, function);
	node = calltree_descend(unit.tree,
		&(struct calltree_stack){
			.frames = fake.sample.frames, .count = fake.sample.count, .outer = fake.sample.count},
		&overflow);
	calltree_node(unit.tree, node)->samples++;
	ledger_sample(&unit.ledger, node, running ? PRESENCE_RUNNING : PRESENCE_WAITING, fake.now_ns);
	unit.labels.accounting.expected++;
	unit.labels.accounting.taken++;
}

static struct unit_result *end(void)
{
	struct unit_result *result = NULL;

	assert_int_equal(
		open_unit_end(&unit, &sampling, fake.now_ns, &fake.clocks, &fake.counters, &result), 0);
	assert_false(unit.open);
	assert_int_equal(unit_result_settle(result), 0);
	return result;
}

static void a_unit_lasts_from_its_beginning_to_its_end_and_its_tree_adds_up(void **state)
{
	begin(true);
	fake_run(10 * MS);
	sample("hot", true);
	fake_run(7 * MS);
	fake.clocks.queue_ns += 2 * MS;
	fake.now_ns += 2 * MS;
	sample("hot", true);
	fake_sleep(5 * MS);
	sample("wait", false);
	fake_sleep(3 * MS);

	_cleanup_(unit_result_freep) struct unit_result *result = end();
	assert_int_equal(result->duration_ns, 27 * MS);
	assert_int_equal(result->cpu_ns, 17 * MS);
	assert_int_equal(result->queue_ns, 2 * MS);
	assert_int_equal(time_of(result->profile, "hot").wall_ns, 19 * MS);
	assert_int_equal(time_of(result->profile, "hot").cpu_ns, 17 * MS);
	assert_int_equal(time_of(result->profile, "wait").wall_ns, 8 * MS);
	assert_int_equal(time_of(result->profile, "wait").cpu_ns, 0);
	assert_int_equal(profile_sum(result->profile).samples, 3);
	assert_int_equal(result->profile->duration_ns, 27 * MS);
	assert_int_equal(result->profile->period_ns, 10 * MS);
	assert_true(accounting_is_balanced(&result->profile->accounting));
	assert_conserved(result);
}

static void a_new_unit_says_whose_it_is_and_when_it_began(void **state)
{
	uint64_t begin_ns = fake.now_ns;

	fake.now_ns += 4 * MS;
	assert_int_equal(open_unit_begin(&unit, &sampling, &owner, true, begin_ns, &fake.clocks), 0);
	assert_int_equal(unit.labels.pid, 4711);
	assert_int_equal(unit.labels.uid, 33);
	assert_string_equal(unit.labels.pool, "www");
	assert_int_equal(unit.labels.start_realtime_ns, START_NS + 1700000000000 * MS);
	assert_true(unit.labels.automatic);
	assert_true(unit.labels.sampled);
	assert_true(unit.labels.profiling);
	assert_int_equal(unit.labels.type, UNIT_HTTP);
	assert_int_equal(unit.labels.unit_id, 1);
}

static void an_explicit_unit_is_of_the_type_it_says_or_other(void **state)
{
	struct trace_context plain = fake_context("00-" TRACE "-" SPAN "-01;h=5");
	struct trace_context queue = fake_context("00-" TRACE "-" SPAN "-01;h=5;u=queue");

	begin(false);
	open_unit_adopt(&unit, &sampling, &plain);
	assert_int_equal(unit.labels.type, UNIT_OTHER);
	open_unit_adopt(&unit, &sampling, &queue);
	assert_int_equal(unit.labels.type, UNIT_QUEUE);
}

static void adoption_keeps_what_was_collected_and_applies_the_labels(void **state)
{
	struct trace_context context =
		fake_context("00-" TRACE "-" SPAN "-01;h=123;u=schedule;d=7;n=nightly");

	begin(true);
	fake_run(10 * MS);
	sample("before", true);
	open_unit_adopt(&unit, &sampling, &context);
	fake_run(10 * MS);
	sample("after", true);

	_cleanup_(unit_result_freep) struct unit_result *result = end();
	assert_true(result->automatic);
	assert_true(result->adopted);
	assert_int_equal(result->handle, 123);
	assert_string_equal(result->trace_id, TRACE);
	assert_string_equal(result->span_id, SPAN);
	assert_string_equal(result->name, "nightly");
	assert_int_equal(result->type, UNIT_SCHEDULE);
	assert_int_equal(result->max_depth, 7);
	assert_int_equal(result->duration_ns, 20 * MS);
	assert_int_equal(time_of(result->profile, "before").samples, 1);
	assert_int_equal(time_of(result->profile, "after").samples, 1);
	assert_conserved(result);
}

static void a_deeper_depth_than_the_daemons_is_not_given(void **state)
{
	struct trace_context context = fake_context("00-" TRACE "-" SPAN "-01;h=123;d=5000");

	begin(true);
	open_unit_adopt(&unit, &sampling, &context);
	assert_int_equal(unit.labels.max_depth, 100);
}

static void assert_discards(const char *text, bool sampled)
{
	struct trace_context context = fake_context(text);

	begin(true);
	fake_run(10 * MS);
	sample("secret", true);
	open_unit_adopt(&unit, &sampling, &context);
	assert_false(unit.collecting);
	fake_run(10 * MS);

	_cleanup_(unit_result_freep) struct unit_result *result = end();
	assert_int_equal(result->sampled, sampled);
	assert_false(result->profiling);
	assert_null(result->profile);
	assert_int_equal(result->node_count, 0);
	assert_int_equal(result->accounting.expected, 0);
	/* What it took is known all the same. */
	assert_int_equal(result->duration_ns, 20 * MS);
	assert_int_equal(result->cpu_ns, 20 * MS);
}

static void a_declined_profile_throws_away_what_was_collected(void **state)
{
	assert_discards("00-" TRACE "-" SPAN "-01;h=123;p=0", true);
}

static void a_unit_not_sampled_throws_away_what_was_collected(void **state)
{
	assert_discards("00-" TRACE "-" SPAN "-00;h=123", false);
}

static void nothing_of_a_thrown_away_tree_is_left_for_the_next_unit(void **state)
{
	assert_discards("00-" TRACE "-" SPAN "-01;h=123;p=0", true);
	begin(true);
	fake_run(10 * MS);
	sample("mine", true);

	_cleanup_(unit_result_freep) struct unit_result *result = end();
	assert_int_equal(time_of(result->profile, "secret").samples, 0);
	assert_int_equal(time_of(result->profile, "mine").cpu_ns, 10 * MS);
	assert_conserved(result);
}

static void past_its_limit_an_automatic_unit_stops_collecting_and_keeps_what_it_has(void **state)
{
	begin(true);
	fake_run(10 * MS);
	sample("hot", true);
	open_unit_cap(&unit, fake.now_ns, &fake.clocks, 10 * MS);
	assert_true(unit.collecting);
	fake_run(1 * MS);
	sample("hot", true);
	open_unit_cap(&unit, fake.now_ns, &fake.clocks, 10 * MS);
	assert_false(unit.collecting);
	/* 30 ms nobody looks at, 20 of them on a CPU */
	fake_run(20 * MS);
	fake_sleep(10 * MS);

	_cleanup_(unit_result_freep) struct unit_result *result = end();
	assert_true(result->capped);
	assert_true(result->profiling);
	assert_int_equal(result->duration_ns, 41 * MS);
	assert_int_equal(result->cpu_ns, 31 * MS);
	assert_int_equal(time_of(result->profile, "hot").samples, 2);
	assert_int_equal(time_of(result->profile, "hot").wall_ns, 11 * MS);
	assert_int_equal(time_of(result->profile, "<unread>").wall_ns, 30 * MS);
	assert_int_equal(time_of(result->profile, "<unread>").cpu_ns, 20 * MS);
	assert_conserved(result);
}

static void only_automatic_units_that_nobody_adopted_have_a_limit(void **state)
{
	struct trace_context context = fake_context("00-" TRACE "-" SPAN "-01;h=123");

	begin(true);
	open_unit_adopt(&unit, &sampling, &context);
	open_unit_cap(&unit, fake.now_ns + 1000 * MS, &fake.clocks, 10 * MS);
	assert_true(unit.collecting);
	open_unit_drop(&unit, &sampling);
	begin(false);
	open_unit_cap(&unit, fake.now_ns + 1000 * MS, &fake.clocks, 10 * MS);
	assert_true(unit.collecting);
}

static void garbage_collections_count_from_the_units_beginning(void **state)
{
	begin(false);
	unit.gc_runs = 3;
	unit.gc_collected = 10000;
	fake.counters = (struct counters){
		.has_gc = true, .gc_runs = 5, .gc_collected = 10007, .has_memory = true, .memory_bytes = 42};

	_cleanup_(unit_result_freep) struct unit_result *result = end();
	assert_int_equal(result->counters.gc_runs, 2);
	assert_int_equal(result->counters.gc_collected, 7);
	assert_int_equal(result->counters.memory_bytes, 42);
}

static void garbage_collections_are_never_less_than_none(void **state)
{
	begin(false);
	unit.gc_runs = 3;
	unit.gc_collected = 10000;

	_cleanup_(unit_result_freep) struct unit_result *result = end();
	assert_int_equal(result->counters.gc_runs, 0);
	assert_int_equal(result->counters.gc_collected, 0);
}

static void an_incoming_trace_labels_a_unit_unless_it_is_not_trusted(void **state)
{
	struct request request = {.method = "GET", .path = "/cart", .has_traceparent = true};

	request.traceparent = fake_context("00-" TRACE "-" SPAN "-01");
	begin(true);
	open_unit_set_request(&unit, &request, false);
	assert_string_equal(unit.labels.path, "/cart");
	assert_string_equal(unit.labels.trace_id, "");
	open_unit_set_request(&unit, &request, true);
	assert_string_equal(unit.labels.trace_id, TRACE);
	assert_string_equal(unit.labels.span_id, SPAN);
}

static void begin_without_a_trace_means_none_whenever_the_request_becomes_known(void **state)
{
	struct request request = {.method = "GET", .path = "/cart", .has_traceparent = true};
	struct trace_context context =
		fake_context("00-00000000000000000000000000000000-0000000000000000-01;h=5");

	request.traceparent = fake_context("00-" TRACE "-" SPAN "-01");
	begin(true);
	open_unit_set_request(&unit, &request, true);
	open_unit_adopt(&unit, &sampling, &context);
	assert_string_equal(unit.labels.trace_id, "");
	open_unit_drop(&unit, &sampling);

	begin(true);
	open_unit_adopt(&unit, &sampling, &context);
	open_unit_set_request(&unit, &request, true);
	assert_string_equal(unit.labels.trace_id, "");
	assert_string_equal(unit.labels.path, "/cart");
}

static void frames_that_found_no_room_are_counted_for_the_unit(void **state)
{
	struct function_name name = {.name = "", .file = "/srv/a.php", .line = 1};
	char text[16];

	name.name = text;
	for (int i = 0; i < 1500; i++) {
		snprintf(text, sizeof(text), "f%d", i);
		if (i == 1200)
			begin(false);
		frame_table_intern(sampling.frames, &name);
	}
	_cleanup_(unit_result_freep) struct unit_result *result = end();
	assert_int_equal(result->frame_overflows, 300);
}

static void trees_of_ended_units_are_used_again(void **state)
{
	begin(true);
	struct calltree *tree = unit.tree;
	open_unit_drop(&unit, &sampling);
	begin(true);
	assert_ptr_equal(unit.tree, tree);
	assert_int_equal(calltree_count(unit.tree), 1);
}

int main(void)
{
#define UNIT_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_unit_lasts_from_its_beginning_to_its_end_and_its_tree_adds_up),
		UNIT_TEST(a_new_unit_says_whose_it_is_and_when_it_began),
		UNIT_TEST(an_explicit_unit_is_of_the_type_it_says_or_other),
		UNIT_TEST(adoption_keeps_what_was_collected_and_applies_the_labels),
		UNIT_TEST(a_deeper_depth_than_the_daemons_is_not_given),
		UNIT_TEST(a_declined_profile_throws_away_what_was_collected),
		UNIT_TEST(a_unit_not_sampled_throws_away_what_was_collected),
		UNIT_TEST(nothing_of_a_thrown_away_tree_is_left_for_the_next_unit),
		UNIT_TEST(past_its_limit_an_automatic_unit_stops_collecting_and_keeps_what_it_has),
		UNIT_TEST(only_automatic_units_that_nobody_adopted_have_a_limit),
		UNIT_TEST(garbage_collections_count_from_the_units_beginning),
		UNIT_TEST(garbage_collections_are_never_less_than_none),
		UNIT_TEST(an_incoming_trace_labels_a_unit_unless_it_is_not_trusted),
		UNIT_TEST(begin_without_a_trace_means_none_whenever_the_request_becomes_known),
		UNIT_TEST(frames_that_found_no_room_are_counted_for_the_unit),
		UNIT_TEST(trees_of_ended_units_are_used_again),
	};

	return cmocka_run_group_tests_name("open_unit", tests, NULL, NULL);
}
