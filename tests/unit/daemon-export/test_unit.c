/* SPDX-License-Identifier: MIT
 *
 * The result of a unit, to the letter of what consumers of the cbox_telemetry extension read; and the other
 * JSON outputs, which share its number and string rules.
 */
#include "tests/unit/daemon-export/sample_profile.h"

#include "daemon/export/export.h"
#include "daemon/export/json.h"

/* What a reader of the printed text gets: numbers included that were written as raw text. */
static cJSON *reread(cJSON *json)
{
	assert_non_null(json);
	char *text = cJSON_PrintUnformatted(json);
	cJSON *read = cJSON_Parse(text);

	assert_non_null(read);
	free(text);
	cJSON_Delete(json);
	return read;
}

static double number(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	if (!cJSON_IsNumber(item))
		fail_msg("%s is no number", key);
	return item->valuedouble;
}

static bool is_bool(const cJSON *object, const char *key)
{
	return cJSON_IsBool(cJSON_GetObjectItemCaseSensitive(object, key));
}

static bool is_null(const cJSON *object, const char *key)
{
	return cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, key));
}

static const char *string(const cJSON *object, const char *key)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	if (!cJSON_IsString(item))
		fail_msg("%s is no string", key);
	return item->valuestring;
}

/* hot in two lines, and waiting below another function. */
static void make_unit(struct unit_result *unit)
{
	*unit = (struct unit_result){
		.unit_id = 7,
		.handle = 18446744073709551557ull,
		.pid = 4711,
		.uid = 33,
		.pool = "www",
		.type = UNIT_HTTP,
		.automatic = true,
		.adopted = true,
		.sampled = true,
		.profiling = true,
		.trace_id = "0af7651916cd43dd8448eb211c80319c",
		.method = "GET",
		.path = "/shop",
		.start_realtime_ns = 1764451791123456789,
		.duration_ns = 500 * MS,
		.cpu_ns = 300 * MS,
		.period_ns = 10 * MS,
		.counters = {.has_memory = true,
			.memory_peak_bytes = 2097152,
			.has_gc = true,
			.gc_runs = 2,
			.gc_collected = 20001},
		.tree_peak_bytes = 65536,
		.node_count = 5,
		.accounting = {.expected = 56,
			.taken = 30,
			.unchanged = 18,
			.torn_lost = 2,
			.unreadable = 1,
			.missed = 5},
	};
	unit->profile = PROFILE_OF({"main@3|hot@11", 20, 200, 195}, {"main@3|hot@12", 10, 100, 95},
		{"main@4|wait|usleep", 18, 180, 1}, {"main@4|<torn>", 2, 20, 9});
}

static void unmake_unit(struct unit_result *unit)
{
	if (unit->profile)
		profile_free(unit->profile);
}

static void every_key_of_the_contract_is_there_with_its_type(void **state)
{
	_cleanup_(unmake_unit) struct unit_result unit;
	make_unit(&unit);
	_cleanup_(cJSON_Deletep) cJSON *json = reread(export_unit_json(&unit, true, true));

	assert_int_equal(number(json, "duration_ns"), 500 * MS);
	assert_string_equal(string(json, "unit"), "http");
	assert_string_equal(string(json, "trace_id"), "0af7651916cd43dd8448eb211c80319c");
	assert_true(is_null(json, "span_id"));
	assert_true(is_bool(json, "sampled") && is_bool(json, "profiling") && is_bool(json, "automatic"));
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(json, "automatic")));
	assert_true(cJSON_IsObject(cJSON_GetObjectItem(json, "operations")));
	assert_true(cJSON_IsObject(cJSON_GetObjectItem(json, "waits")));

	const cJSON *counters = cJSON_GetObjectItem(json, "counters");
	assert_int_equal(number(counters, "profiler.samples"), 50);
	assert_int_equal(number(counters, "profiler.dropped"), 3);
	assert_int_equal(number(counters, "profiler.torn"), 2);
	assert_int_equal(number(counters, "profiler.deferred_samples"), 0);
	assert_int_equal(number(counters, "profiler.deferred_events"), 0);
	assert_int_equal(number(counters, "profiler.max_deferred"), 0);
	assert_int_equal(number(counters, "profiler.timer_overruns"), 5);
	assert_int_equal(number(counters, "profiler.period_ns"), 10 * MS);
	assert_int_equal(number(counters, "gc.runs"), 2);
	assert_int_equal(number(counters, "gc.collected"), 20001);
	assert_int_equal(number(counters, "memory.peak_bytes"), 2097152);
	assert_int_equal(number(counters, "ops.overflow"), 0);
	assert_int_equal(number(counters, "breadcrumbs.written_total"), 0);
	assert_int_equal(number(counters, "arena.peak_bytes_total"), 65536);
	assert_int_equal(number(counters, "profiler.frame_capacity_hits"), 0);
	assert_int_equal(number(counters, "profiler.node_capacity_hits"), 0);
	assert_true(is_bool(counters, "profiler.capped"));
	assert_int_equal(number(counters, "profiler.frames"), 5);
	assert_int_equal(number(counters, "profiler.nodes"), 5);

	const cJSON *told = cJSON_GetObjectItem(json, "profile");
	assert_string_equal(string(told, "clock"), "wall");
	assert_int_equal(number(told, "period_ns"), 10 * MS);
	assert_int_equal(number(told, "dropped"), 3);
	assert_int_equal(number(told, "truncated"), 0);
	assert_int_equal(number(told, "deferred_samples"), 0);
	assert_int_equal(number(told, "deferred_events"), 0);
	assert_int_equal(number(told, "max_deferred"), 0);
	assert_int_equal(number(told, "timer_overruns"), 5);
}

static void sample_count_is_the_sum_over_top_functions(void **state)
{
	_cleanup_(unmake_unit) struct unit_result unit;
	make_unit(&unit);
	_cleanup_(cJSON_Deletep) cJSON *json = reread(export_unit_json(&unit, true, false));
	const cJSON *told = cJSON_GetObjectItem(json, "profile"), *function;
	const cJSON *frames = cJSON_GetObjectItem(told, "frames");
	static const struct {
		const char *name;
		uint64_t samples, wall_ms, cpu_ms;
	} expected[] = {{"hot", 30, 300, 290}, {"usleep", 18, 180, 1}, {"<torn>", 2, 20, 9}};
	uint64_t sum = 0;
	size_t i = 0;

	cJSON_ArrayForEach(function, cJSON_GetObjectItem(told, "top_functions"))
	{
		assert_in_range(i, 0, 2);
		const cJSON *frame = cJSON_GetArrayItem(frames, (int)number(function, "frame_id"));
		assert_string_equal(string(frame, "function"), expected[i].name);
		assert_int_equal(number(function, "samples"), expected[i].samples);
		assert_int_equal(number(function, "wall_ns"), expected[i].wall_ms * MS);
		assert_int_equal(number(function, "cpu_ns"), expected[i].cpu_ms * MS);
		sum += (uint64_t)number(function, "samples");
		i++;
	}
	assert_int_equal(i, 3);
	assert_int_equal(sum, 50);
	assert_int_equal(number(told, "sample_count"), 50);
	assert_true(is_null(told, "stacks"));
	const cJSON *hot = cJSON_GetArrayItem(frames, 1);
	assert_string_equal(string(hot, "file"), "/srv/app/hot.php");
	assert_int_equal(number(hot, "line"), 10);
}

static void stacks_join_lines_and_number_nodes_by_position(void **state)
{
	_cleanup_(unmake_unit) struct unit_result unit;
	make_unit(&unit);
	_cleanup_(cJSON_Deletep) cJSON *json = reread(export_unit_json(&unit, true, true));
	const cJSON *told = cJSON_GetObjectItem(json, "profile");
	_cleanup_free_ char *stacks = cJSON_PrintUnformatted(cJSON_GetObjectItem(told, "stacks"));

	/* Frames in order of appearance: main 0, hot 1, wait 2, usleep 3, <torn> 4. Nodes: 1 main, 2
	 * main;hot, 3 main;wait, 4 main;wait;usleep, 5 main;<torn>. */
	assert_string_equal(stacks, "[[0,0,0,0,0],[1,1,30,300000000,290000000],[1,2,0,0,0],"
				    "[3,3,18,180000000,1000000],[1,4,2,20000000,9000000]]");
}

static void a_profile_is_told_only_when_asked_for_and_there_is_one(void **state)
{
	_cleanup_(unmake_unit) struct unit_result unit;
	make_unit(&unit);
	_cleanup_(cJSON_Deletep) cJSON *not_asked = reread(export_unit_json(&unit, false, true));
	unit.profiling = false;
	_cleanup_(cJSON_Deletep) cJSON *not_profiling = reread(export_unit_json(&unit, true, true));
	unit.profiling = true;
	profile_free(unit.profile);
	unit.profile = profile_of(NULL, 0);
	_cleanup_(cJSON_Deletep) cJSON *no_sample = reread(export_unit_json(&unit, true, true));
	profile_free(TAKE(unit.profile));
	_cleanup_(cJSON_Deletep) cJSON *none_kept = reread(export_unit_json(&unit, true, true));

	assert_true(is_null(not_asked, "profile"));
	assert_true(is_null(not_profiling, "profile"));
	assert_true(is_null(no_sample, "profile"));
	assert_true(is_null(none_kept, "profile"));
	/* 30 taken, 18 unchanged, 2 torn: known without the profile too. */
	assert_int_equal(number(cJSON_GetObjectItem(none_kept, "counters"), "profiler.samples"), 50);
}

static void numbers_beyond_a_double_keep_all_digits(void **state)
{
	_cleanup_(unmake_unit) struct unit_result unit;
	make_unit(&unit);
	_cleanup_(cJSON_Deletep) cJSON *json = export_unit_json(&unit, false, false);
	_cleanup_free_ char *text = cJSON_PrintUnformatted(json);

	assert_non_null(strstr(text, "\"handle\":18446744073709551557,"));
	assert_non_null(strstr(text, "\"start_realtime_ns\":1764451791123456789,"));
}

static void what_php_does_not_tell_is_absent_or_0(void **state)
{
	_cleanup_(unmake_unit) struct unit_result unit;
	make_unit(&unit);
	unit.counters = (struct counters){.memory_peak_bytes = 1, .gc_runs = 99};
	_cleanup_(cJSON_Deletep) cJSON *json = reread(export_unit_json(&unit, false, false));
	const cJSON *counters = cJSON_GetObjectItem(json, "counters");

	assert_null(cJSON_GetObjectItemCaseSensitive(counters, "memory.peak_bytes"));
	assert_int_equal(number(counters, "gc.runs"), 0);
}

static void bytes_that_are_no_utf8_do_not_spoil_the_answer(void **state)
{
	static const struct {
		const char *bytes, *told;
	} cases[] = {
		{"/caf\xc3\xa9", "/caf\xc3\xa9"}, {"/caf\xe9", "/caf\\xE9"}, {"\xc3", "\\xC3"},
		{"\xe2\x82\xac", "\xe2\x82\xac"}, {"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
		{"\xc0\xaf", "\\xC0\\xAF"},                   /* overlong "/" */
		{"\xed\xa0\x80", "\\xED\\xA0\\x80"},          /* half a surrogate pair */
		{"\xf4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"}, /* past U+10FFFF */
	};
	struct target_report target = {.pid = 1};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(target.path, sizeof(target.path), "%s", cases[i].bytes);
		_cleanup_(cJSON_Deletep) cJSON *json = reread(export_target_json(&target));
		assert_string_equal(string(json, "path"), cases[i].told);
	}
}

static void a_profile_as_json_has_frames_nodes_and_a_total_that_is_their_sum(void **state)
{
	_cleanup_(profile_freep) struct profile *profile =
		PROFILE_OF({"main@3|hot@11", 3, 30, 20}, {"main@3|<torn>@0", 1, 10, 0});
	profile->duration_ns = 40 * MS;
	_cleanup_(cJSON_Deletep) cJSON *json = reread(export_profile_json(profile));
	_cleanup_free_ char *nodes = cJSON_PrintUnformatted(cJSON_GetObjectItem(json, "nodes"));
	const cJSON *frames = cJSON_GetObjectItem(json, "frames");
	const cJSON *total = cJSON_GetObjectItem(json, "total");

	assert_string_equal(nodes, "[[0,0,0,0,0,0,0],[0,1,3,0,0,0,0],[1,2,11,3,30000000,20000000,0],"
				   "[1,3,0,1,10000000,0,0]]");
	assert_string_equal(string(cJSON_GetArrayItem(frames, 0), "kind"), "synthetic");
	assert_string_equal(string(cJSON_GetArrayItem(frames, 1), "kind"), "user");
	assert_string_equal(string(cJSON_GetArrayItem(frames, 2), "function"), "hot");
	assert_string_equal(string(cJSON_GetArrayItem(frames, 3), "kind"), "synthetic");
	assert_int_equal(number(json, "sample_count"), 4);
	assert_int_equal(number(total, "wall_ns"), 40 * MS);
	assert_int_equal(number(total, "cpu_ns"), 20 * MS);
}

static void accounting_as_text_groups_thousands_and_names_every_part(void **state)
{
	const struct accounting accounting = {.expected = 1234567,
		.taken = 1234000,
		.unchanged = 500,
		.torn_lost = 7,
		.idle = 60,
		.truncated = 1000,
		.node_overflow = 2};
	_cleanup_text_ struct text text = {0};

	assert_int_equal(export_accounting_text(&accounting, &text), 0);
	assert_string_equal(text.bytes, "1,234,567 ticks expected: 1,234,000 taken, 500 unchanged, 7 torn, 0 "
					"unreadable, 60 idle, 0 missed"
					"; 1,000 stacks truncated; 2 in <other>: the tree was full\n");
}

static void metrics_and_targets_carry_their_accounting(void **state)
{
	struct metrics metrics = {.ticks_total = 12,
		.cpu_budget_ppm = 100000,
		.cpu_share_ppm = 99000,
		.cpu_demand_ppm = 250000,
		.stretch_ppm = 2500000,
		.realtime = true,
		.accounting = {.expected = 12, .idle = 12},
		.samplers = {{.targets = 3, .ticks_total = 5, .expected = 5},
			{.targets = 4, .ticks_total = 7, .cpu_ns = 8, .expected = 7, .missed = 1, .late = 2}},
		.sampler_count = 2};
	struct target_report target = {.pid = 4711,
		.state = "idle",
		.period_ns = 25 * MS,
		.asked_period_ns = 10 * MS,
		.accounting = {.expected = 3, .idle = 3}};
	_cleanup_(cJSON_Deletep) cJSON *told = reread(export_metrics_json(&metrics));
	_cleanup_(cJSON_Deletep) cJSON *worker = reread(export_target_json(&target));

	assert_int_equal(number(told, "ticks_total"), 12);
	assert_true(is_bool(told, "realtime"));
	assert_int_equal(number(cJSON_GetObjectItem(told, "accounting"), "idle"), 12);
	assert_int_equal(number(told, "cpu_budget_ppm"), 100000);
	assert_int_equal(number(told, "cpu_share_ppm"), 99000);
	assert_int_equal(number(told, "cpu_demand_ppm"), 250000);
	assert_int_equal(number(told, "stretch_ppm"), 2500000);
	const cJSON *samplers = cJSON_GetObjectItem(told, "samplers");
	assert_int_equal(cJSON_GetArraySize(samplers), 2);
	assert_int_equal(number(cJSON_GetArrayItem(samplers, 0), "targets"), 3);
	assert_int_equal(number(cJSON_GetArrayItem(samplers, 1), "ticks_total"), 7);
	assert_int_equal(number(cJSON_GetArrayItem(samplers, 1), "cpu_ns"), 8);
	assert_int_equal(number(cJSON_GetArrayItem(samplers, 1), "missed"), 1);
	assert_int_equal(number(cJSON_GetArrayItem(samplers, 1), "late"), 2);
	assert_int_equal(number(worker, "pid"), 4711);
	assert_int_equal(number(worker, "period_ns"), 25 * MS);
	assert_int_equal(number(worker, "asked_period_ns"), 10 * MS);
	assert_true(is_null(worker, "trace_id"));
	assert_true(is_bool(cJSON_GetObjectItem(worker, "unit"), "open"));
	assert_int_equal(number(cJSON_GetObjectItem(worker, "accounting"), "expected"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_of_the_contract_is_there_with_its_type),
		cmocka_unit_test(sample_count_is_the_sum_over_top_functions),
		cmocka_unit_test(stacks_join_lines_and_number_nodes_by_position),
		cmocka_unit_test(a_profile_is_told_only_when_asked_for_and_there_is_one),
		cmocka_unit_test(numbers_beyond_a_double_keep_all_digits),
		cmocka_unit_test(what_php_does_not_tell_is_absent_or_0),
		cmocka_unit_test(bytes_that_are_no_utf8_do_not_spoil_the_answer),
		cmocka_unit_test(a_profile_as_json_has_frames_nodes_and_a_total_that_is_their_sum),
		cmocka_unit_test(accounting_as_text_groups_thousands_and_names_every_part),
		cmocka_unit_test(metrics_and_targets_carry_their_accounting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
