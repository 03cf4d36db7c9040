/* SPDX-License-Identifier: MIT
 *
 * The log: what is said, how, and how often; the filter's clock is the test's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/service/log.h"

#define SECOND_NS 1000000000ull

static char text[4096];

static const char *written(FILE *file)
{
	size_t bytes;

	rewind(file);
	bytes = fread(text, 1, sizeof(text) - 1, file);
	text[bytes] = '\0';
	return text;
}

static void a_text_is_said_once_a_minute_and_then_with_its_count(void **state)
{
	struct log_filter filter = {0};
	uint64_t start_ns = 1000 * SECOND_NS;
	unsigned suppressed = 99;

	assert_true(log_filter_admit(&filter, "disk full", start_ns, &suppressed));
	assert_int_equal(suppressed, 0);
	assert_false(log_filter_admit(&filter, "disk full", start_ns, &suppressed));
	assert_false(log_filter_admit(&filter, "disk full", start_ns + 59 * SECOND_NS, &suppressed));
	assert_true(log_filter_admit(&filter, "disk empty", start_ns + 59 * SECOND_NS, &suppressed));
	assert_true(log_filter_admit(&filter, "disk full", start_ns + 60 * SECOND_NS, &suppressed));
	assert_int_equal(suppressed, 2);
	assert_false(log_filter_admit(&filter, "disk full", start_ns + 119 * SECOND_NS, &suppressed));
	assert_true(log_filter_admit(&filter, "disk full", start_ns + 200 * SECOND_NS, &suppressed));
	assert_int_equal(suppressed, 1);
}

static void the_oldest_text_is_forgotten_first(void **state)
{
	struct log_filter filter = {0};
	unsigned suppressed;
	char line[32];

	for (uint64_t i = 0; i < LOG_REMEMBERED + 1; i++) {
		snprintf(line, sizeof(line), "text %d", (int)i);
		assert_true(log_filter_admit(&filter, line, SECOND_NS + i, &suppressed));
	}
	assert_false(log_filter_admit(&filter, "text 1", 2 * SECOND_NS, &suppressed));
	assert_true(log_filter_admit(&filter, "text 0", 2 * SECOND_NS, &suppressed));
}

static void a_line_is_plain_and_has_no_bytes_that_a_terminal_would_obey(void **state)
{
	FILE *file = tmpfile();
	struct log log;

	unsetenv("JOURNAL_STREAM");
	log_init(&log, file);
	log_say(&log, LOG_WARNING, "worker %d: %s", 4711, "a\nb\x1b[31m");
	log_say(&log, LOG_WARNING, "worker %d: %s", 4711, "a\nb\x1b[31m");
	assert_string_equal(written(file), "cbox-profd: worker 4711: a?b?[31m\n");
	log_deinit(&log);
	fclose(file);
}

static void a_line_for_the_journal_has_its_priority_in_front(void **state)
{
	FILE *file = tmpfile();
	struct stat status;
	struct log log;
	char stream[64];

	fstat(fileno(file), &status);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_init(&log, file);
	log_say(&log, LOG_ERROR, "one");
	log_say(&log, LOG_INFO, "two");
	assert_string_equal(written(file), "<3>cbox-profd: one\n<6>cbox-profd: two\n");
	log_deinit(&log);
	fclose(file);
}

static void a_journal_that_stderr_was_turned_away_from_is_no_journal(void **state)
{
	FILE *file = tmpfile();
	struct log log;

	setenv("JOURNAL_STREAM", "1:1", 1);
	log_init(&log, file);
	log_say(&log, LOG_ERROR, "one");
	assert_string_equal(written(file), "cbox-profd: one\n");
	log_deinit(&log);
	fclose(file);
	unsetenv("JOURNAL_STREAM");
}

static void a_line_that_is_too_long_is_cut_and_still_one_line(void **state)
{
	FILE *file = tmpfile();
	char line[3000];
	struct log log;

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	log_init(&log, file);
	log_say(&log, LOG_INFO, "%s", line);
	assert_int_equal(strlen(written(file)), strlen("cbox-profd: ") + LOG_LINE_BYTES - 1 + strlen("\n"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
	log_deinit(&log);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_said_once_a_minute_and_then_with_its_count),
		cmocka_unit_test(the_oldest_text_is_forgotten_first),
		cmocka_unit_test(a_line_is_plain_and_has_no_bytes_that_a_terminal_would_obey),
		cmocka_unit_test(a_line_for_the_journal_has_its_priority_in_front),
		cmocka_unit_test(a_journal_that_stderr_was_turned_away_from_is_no_journal),
		cmocka_unit_test(a_line_that_is_too_long_is_cut_and_still_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
