/* SPDX-License-Identifier: MIT
 *
 * Command lines: what is taken, what is refused, and with which status.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/cli/ask.h"
#include "daemon/cli/cli.h"
#include "daemon/cli/options.h"

#define MS UINT64_C(1000000)

static void durations_have_a_unit(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} cases[] = {{"10s", 10000 * MS}, {"500ms", 500 * MS}, {"2m", 120000 * MS}, {"1h", 3600000 * MS},
		{"3s", 3000 * MS}, {"1.5s", 1500 * MS}, {"250us", 250000}, {"0.5ms", 500000},
		{"2min", 120000 * MS}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 0;

		assert_null(cli_take_duration(cases[i].text, &ns));
		assert_int_equal(ns, cases[i].ns);
	}
}

static void what_is_no_duration_is_refused_and_changes_nothing(void **state)
{
	static const char *const cases[] = {"", "s", "-3s", "+3s", "0s", "0", "1e3s", "0x10s", "inf", "nan",
		"10 s", "10sec", "1.2.3s", ".", "400d", "99999999h", "10s ", "3"};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t ns = 42;

		assert_non_null(cli_take_duration(cases[i], &ns));
		assert_int_equal(ns, 42);
	}
}

static void a_number_alone_is_no_time_and_the_missing_unit_is_named(void **state)
{
	uint64_t ns = 42;

	assert_non_null(strstr(cli_take_duration("10", &ns), "unit"));
	assert_non_null(strstr(cli_take_period("10", &ns), "unit"));
	assert_int_equal(ns, 42);
}

static void a_rate_becomes_a_period_within_its_bounds(void **state)
{
	uint64_t period_ns = 0;

	assert_null(cli_take_rate("100", &period_ns));
	assert_int_equal(period_ns, 10 * MS);
	assert_null(cli_take_rate("10000", &period_ns));
	assert_int_equal(period_ns, 100000);
	assert_null(cli_take_rate("1", &period_ns));
	assert_int_equal(period_ns, 1000 * MS);
	assert_non_null(cli_take_rate("0", &period_ns));
	assert_non_null(cli_take_rate("10001", &period_ns));
	assert_non_null(cli_take_rate("fast", &period_ns));
	assert_non_null(cli_take_rate("1.5", &period_ns));
	assert_non_null(cli_take_rate("18446744073709551617", &period_ns));
	assert_null(cli_take_period("10ms", &period_ns));
	assert_int_equal(period_ns, 10 * MS);
	assert_non_null(cli_take_period("99us", &period_ns));
	assert_non_null(cli_take_period("1001ms", &period_ns));
}

static void process_ids_are_positive_whole_numbers(void **state)
{
	static const char *const wrong[] = {"0", "-1", "php", "99999999999", "12x", "", " 1", "2147483648"};
	pid_t pid = 0;

	assert_null(cli_take_pid("4711", &pid));
	assert_int_equal(pid, 4711);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_non_null(cli_take_pid(wrong[i], &pid));
	assert_int_equal(pid, 4711);
}

struct taken {
	size_t rows;
	bool flag;
	const char *name;
};

static int parse(struct taken *taken, int *ret_first, int argc, char **argv)
{
	const struct cli_option options[] = {
		{"rows", 'n', "N", cli_take_rows, &taken->rows, "rows"},
		{"flag", 0, NULL, cli_take_flag, &taken->flag, "a flag"},
		{"name", 0, "NAME", cli_take_text, &taken->name, "a name"},
	};
	const struct cli_command command = {
		.verb = "test",
		.arguments = "PID",
		.summary = "Tests.",
		CLI_OPTIONS(options),
		.examples = "  cbox-profd test 1\n",
		.min_arguments = 1,
		.max_arguments = 1,
	};

	return cli_options_parse(&command, argc, argv, ret_first);
}

#define PARSE(taken, first, ...)                                                      \
	parse(taken, first, sizeof((char *[]){"test", __VA_ARGS__}) / sizeof(char *), \
		(char *[]){"test", __VA_ARGS__, NULL})

static void options_may_stand_before_and_behind_the_arguments(void **state)
{
	struct taken taken = {0};
	char *argv[] = {"test", "-n5", "4711", "--flag", "--name=x", NULL};
	int first = 0;

	assert_int_equal(parse(&taken, &first, 5, argv), CLI_GO_ON);
	assert_string_equal(argv[first], "4711");
	assert_int_equal(taken.rows, 5);
	assert_true(taken.flag);
	assert_string_equal(taken.name, "x");
}

static void a_wrong_command_line_has_its_own_status(void **state)
{
	struct taken taken = {0};
	int first;

	assert_int_equal(PARSE(&taken, &first, "1", "--bogus"), EXIT_USAGE);
	assert_int_equal(PARSE(&taken, &first, "1", "-x"), EXIT_USAGE);
	assert_int_equal(PARSE(&taken, &first, "1", "--rows"), EXIT_USAGE);
	assert_int_equal(PARSE(&taken, &first, "1", "--rows", "0"), EXIT_USAGE);
	assert_int_equal(PARSE(&taken, &first, "1", "--rows=1001"), EXIT_USAGE);
	assert_int_equal(PARSE(&taken, &first, "1", "--name="), EXIT_USAGE);
	assert_int_equal(PARSE(&taken, &first, "1", "--flag=yes"), EXIT_USAGE);
	assert_int_equal(PARSE(&taken, &first, "--flag"), EXIT_USAGE); /* PID is missing */
	assert_int_equal(PARSE(&taken, &first, "1", "2"), EXIT_USAGE);
	assert_int_equal(PARSE(&taken, &first, "1"), CLI_GO_ON);
}

static void help_is_no_failure(void **state)
{
	struct taken taken = {0};
	int first;

	assert_int_equal(PARSE(&taken, &first, "--help"), EXIT_OK);
	assert_int_equal(PARSE(&taken, &first, "-h"), EXIT_OK);
}

static void answers_of_another_shape_read_as_nothing(void **state)
{
	_cleanup_(cJSON_Deletep) cJSON *json =
		cJSON_Parse("{\"a\":-1,\"b\":1e300,\"c\":\"12\",\"d\":null,\"e\":true,\"f\":7}");

	assert_int_equal(answer_count(json, "a"), 0);
	assert_int_equal(answer_count(json, "b"), 0);
	assert_int_equal(answer_count(json, "c"), 0);
	assert_int_equal(answer_count(json, "missing"), 0);
	assert_int_equal(answer_count(NULL, "a"), 0);
	assert_int_equal(answer_count(json, "f"), 7);
	assert_string_equal(answer_string(json, "d"), "");
	assert_string_equal(answer_string(json, "c"), "12");
	assert_true(answer_flag(json, "e"));
	assert_false(answer_flag(json, "f"));
}

static void spans_are_told_in_two_units(void **state)
{
	char text[SPAN_BYTES];

	assert_string_equal(span_text(59999 * MS, text), "59 s");
	assert_string_equal(span_text(125000 * MS, text), "2 min 5 s");
	assert_string_equal(span_text((4 * 3600 + 600) * 1000 * MS, text), "4 h 10 min");
	assert_string_equal(span_text((uint64_t)(12 * 24 + 3) * 3600 * 1000 * MS, text), "12 d 3 h");
}

static void periods_are_told_to_three_digits(void **state)
{
	char text[SPAN_BYTES];

	assert_string_equal(period_text(MS / 10, text), "0.1 ms");
	assert_string_equal(period_text(10 * MS, text), "10 ms");
	assert_string_equal(period_text(59770000, text), "59.8 ms");
	assert_string_equal(period_text(999499999, text), "999 ms");
	assert_string_equal(period_text(1000 * MS, text), "1 s");
	assert_string_equal(period_text(1850 * MS, text), "1.85 s");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_a_unit),
		cmocka_unit_test(a_number_alone_is_no_time_and_the_missing_unit_is_named),
		cmocka_unit_test(what_is_no_duration_is_refused_and_changes_nothing),
		cmocka_unit_test(a_rate_becomes_a_period_within_its_bounds),
		cmocka_unit_test(process_ids_are_positive_whole_numbers),
		cmocka_unit_test(options_may_stand_before_and_behind_the_arguments),
		cmocka_unit_test(a_wrong_command_line_has_its_own_status),
		cmocka_unit_test(help_is_no_failure),
		cmocka_unit_test(answers_of_another_shape_read_as_nothing),
		cmocka_unit_test(spans_are_told_in_two_units),
		cmocka_unit_test(periods_are_told_to_three_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
