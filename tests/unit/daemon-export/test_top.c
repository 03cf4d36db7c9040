/* SPDX-License-Identifier: MIT
 *
 * The table for people and its JSON, and folded stacks.
 */
#include "tests/unit/daemon-export/sample_profile.h"

#include "daemon/export/export.h"
#include "daemon/export/json.h"

static const char *line_with(const struct text *text, const char *needle, char into[256])
{
	const char *found = strstr(text->bytes, needle);

	if (!found)
		fail_msg("\"%s\" is not in:\n%s", needle, text->bytes);
	while (found > text->bytes && found[-1] != '\n')
		found--;
	snprintf(into, 256, "%.*s", (int)strcspn(found, "\n"), found);
	return into;
}

static void self_and_total_stand_side_by_side(void **state)
{
	_cleanup_(profile_freep) struct profile *profile =
		PROFILE_OF({"main|hot", 30, 300, 290}, {"main|wait|usleep", 20, 200, 10});
	_cleanup_text_ struct text text = {0};
	char line[256];

	profile->accounting = (struct accounting){.expected = 55, .taken = 31, .unchanged = 19, .idle = 5};
	assert_int_equal(export_top_text(profile, PROFILE_BY_SELF_WALL, 10, &text), 0);
	assert_string_equal(line_with(&text, "on a processor;", line),
		"500.0 ms of PHP, 300.0 ms of it on a processor; 50 samples, one each 10.0 ms");
	assert_string_equal(line_with(&text, "  hot", line),
		"   300.0  60%    290.0  97%     300.0  60%    290.0  97%      30  hot  hot.php:10");
	assert_string_equal(line_with(&text, "  wait", line),
		"     0.0    -      0.0    -     200.0  40%     10.0 3.3%       0  wait  wait.php:10");
	assert_string_equal(line_with(&text, "  main", line),
		"     0.0    -      0.0    -     500.0 100%    300.0 100%       0  main  main.php:10");
	assert_string_equal(line_with(&text, "ticks expected", line),
		"55 ticks expected: 31 taken, 19 unchanged, 0 torn, 0 unreadable, 5 idle, 0 missed");
	assert_non_null(strstr(text.bytes, "recursion"));
}

static void the_order_decides_which_columns_lead(void **state)
{
	_cleanup_(profile_freep) struct profile *profile =
		PROFILE_OF({"main|hot", 30, 300, 290}, {"main|wait|usleep", 20, 200, 10});
	_cleanup_text_ struct text text = {0};
	char line[256];

	assert_int_equal(export_top_text(profile, PROFILE_BY_TOTAL_CPU, 10, &text), 0);
	assert_string_equal(line_with(&text, "  wait", line),
		"    10.0 3.3%    200.0  40%       0.0    -      0.0    -       0  wait  wait.php:10");
	assert_true(strstr(text.bytes, "- total -") < strstr(text.bytes, "- self -"));
	assert_true(strstr(text.bytes, "main.php") < strstr(text.bytes, "hot.php"));
	assert_true(strstr(text.bytes, "hot.php") < strstr(text.bytes, "usleep.php"));
}

static void no_line_is_wider_than_100_columns(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = PROFILE_OF(
		{"main|App\\Infrastructure\\Persistence\\Doctrine\\ProductRepository::findAllWithCategories",
			3000000, 400000000, 90000000},
		{"main|höhöhöhöhöhöhöhöhöhöhöhöhöhöhöhö", 1, 10, 1});
	_cleanup_text_ struct text text = {0};
	char line[256];

	profile->accounting = (struct accounting){.expected = 123456789, .taken = 123456789};
	assert_int_equal(export_top_text(profile, PROFILE_BY_SELF_WALL, 10, &text), 0);
	for (const char *at = text.bytes; *at; at += strcspn(at, "\n") + 1)
		assert_in_range(strcspn(at, "\n"), 0, 100);
	/* Both ends of a long name are there, and no character is cut in two. */
	line_with(&text, "App\\Infr..", line);
	assert_string_equal(line + strlen(line) - 24, "y::findAllWithCategories");
	assert_non_null(strstr(text.bytes, "  höhöh.."));
}

static void names_can_not_steer_the_terminal(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = PROFILE_OF({"main|a\x1b[2Jb\nc", 1, 10, 1});
	_cleanup_text_ struct text text = {0};

	assert_int_equal(export_top_text(profile, PROFILE_BY_SELF_WALL, 10, &text), 0);
	assert_null(strchr(text.bytes, '\x1b'));
	assert_non_null(strstr(text.bytes, "  a?[2Jb?c"));
}

static void rows_left_out_are_counted(void **state)
{
	_cleanup_(profile_freep) struct profile *profile =
		PROFILE_OF({"one", 1, 1, 1}, {"two", 2, 2, 2}, {"three", 3, 3, 3});
	_cleanup_text_ struct text text = {0};

	assert_int_equal(export_top_text(profile, PROFILE_BY_SELF_WALL, 1, &text), 0);
	assert_non_null(strstr(text.bytes, "three.php"));
	assert_null(strstr(text.bytes, "two.php"));
	assert_non_null(strstr(text.bytes, "... and 2 more functions"));
}

static void an_empty_profile_says_why(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = profile_of(NULL, 0);
	_cleanup_text_ struct text text = {0};

	profile->accounting = (struct accounting){.expected = 200, .idle = 200};
	assert_int_equal(export_top_text(profile, PROFILE_BY_SELF_WALL, 10, &text), 0);
	assert_non_null(strstr(text.bytes, "idle at 200 of 200 ticks. Send it some requests"));
}

static void top_as_json_has_self_and_total_of_the_rows_asked_for(void **state)
{
	_cleanup_(profile_freep) struct profile *profile =
		PROFILE_OF({"main|hot", 30, 300, 290}, {"main|wait|usleep", 20, 200, 10});
	_cleanup_(cJSON_Deletep) cJSON *json = export_top_json(profile, PROFILE_BY_TOTAL_WALL, 2);

	const cJSON *functions = cJSON_GetObjectItem(json, "functions");
	assert_int_equal(cJSON_GetArraySize(functions), 2);
	const cJSON *first = cJSON_GetArrayItem(functions, 0), *second = cJSON_GetArrayItem(functions, 1);
	assert_string_equal(cJSON_GetObjectItem(first, "function")->valuestring, "main");
	assert_int_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(first, "self"), "samples")->valuedouble, 0);
	assert_int_equal(
		cJSON_GetObjectItem(cJSON_GetObjectItem(first, "total"), "wall_ns")->valuedouble, 500 * MS);
	assert_string_equal(cJSON_GetObjectItem(second, "function")->valuestring, "hot");
	assert_string_equal(cJSON_GetObjectItem(second, "file")->valuestring, "/srv/app/hot.php");
	assert_int_equal(
		cJSON_GetObjectItem(cJSON_GetObjectItem(json, "total"), "cpu_ns")->valuedouble, 300 * MS);
	assert_non_null(cJSON_GetObjectItem(json, "accounting"));
}

static void folded_stacks_join_lines_unless_they_are_asked_for(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = PROFILE_OF({"main@3|hot@11", 3, 30, 30},
		{"main@3|hot@12", 4, 40, 40}, {"main@5|hot@12", 1, 10, 10}, {"main@5", 2, 20, 20});
	_cleanup_text_ struct text plain = {0}, with_lines = {0};

	assert_int_equal(export_folded(profile, false, &plain), 0);
	assert_string_equal(plain.bytes, "main 2\nmain;hot 8\n");
	assert_int_equal(export_folded(profile, true, &with_lines), 0);
	assert_string_equal(
		with_lines.bytes, "main:3;hot:11 3\nmain:3;hot:12 4\nmain:5 2\nmain:5;hot:12 1\n");
}

static void folded_names_can_not_break_the_format(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = PROFILE_OF({"a;b\nc|{closure}", 2, 20, 20});
	_cleanup_text_ struct text text = {0};

	assert_int_equal(export_folded(profile, false, &text), 0);
	assert_string_equal(text.bytes, "a:b c;{closure} 2\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(self_and_total_stand_side_by_side),
		cmocka_unit_test(the_order_decides_which_columns_lead),
		cmocka_unit_test(no_line_is_wider_than_100_columns),
		cmocka_unit_test(names_can_not_steer_the_terminal),
		cmocka_unit_test(rows_left_out_are_counted),
		cmocka_unit_test(an_empty_profile_says_why),
		cmocka_unit_test(top_as_json_has_self_and_total_of_the_rows_asked_for),
		cmocka_unit_test(folded_stacks_join_lines_unless_they_are_asked_for),
		cmocka_unit_test(folded_names_can_not_break_the_format),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
