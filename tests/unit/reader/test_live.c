/* SPDX-License-Identifier: MIT
 *
 * Whole samples of real PHP processes, of every build at hand, without and with opcache and JIT: the stack
 * must be what debug_backtrace() said inside of the process, to the line, and from the second sample on cost
 * one call.
 */
#include "reader/php_process.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/unit/reader/live_php.h"

#define SCRIPTS "tests/unit/reader/php/"

struct mode {
	const char *name;
	const char *options[6];
	bool needs_opcache, needs_jit;
};

static const struct mode modes[] = {
	{"plain", {"-dopcache.enable_cli=0"}, false, false},
	{"opcache", {"-dopcache.enable_cli=1", "-dopcache.jit=0"}, true, false},
	{"function JIT", {"-dopcache.enable_cli=1", "-dopcache.jit_buffer_size=16M", "-dopcache.jit=1205"},
		true, true},
	{"tracing JIT", {"-dopcache.enable_cli=1", "-dopcache.jit_buffer_size=16M", "-dopcache.jit=tracing"},
		true, true},
};

static struct live_build builds[LIVE_MAX_BUILDS];
static size_t build_count;
static struct live_names names;
static struct php_sample sample;
static const struct php_process_options as_it_runs;

static void start(struct live_php *php, const struct live_build *build, const struct mode *mode,
	const char *script, const char *argument)
{
	char extension[600] = "";
	const char *options[10] = {build->library_path[0] ? "-n" : ""};
	size_t count = 1;

	if (mode->needs_opcache && build->opcache[0]) {
		snprintf(extension, sizeof(extension), "-dzend_extension=%s", build->opcache);
		options[count++] = extension;
	}
	for (size_t i = 0; i < 6 && mode->options[i]; i++)
		options[count++] = mode->options[i];
	options[count] = NULL;
	assert_int_equal(live_start(php, build, options, script, argument), 0);
}

/* Runs @check on every build and mode. */
static void everywhere(void (*check)(const struct live_build *build, const struct mode *mode,
			       struct php_process *process, struct live_php *php),
	const char *script, const char *argument)
{
	const struct frame_names frame_names = {.intern = live_intern, .context = &names};

	for (size_t b = 0; b < build_count; b++) {
		for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
			struct php_process *process = NULL;
			struct live_php php;
			char why[512] = "";

			if (modes[m].needs_jit && strstr(builds[b].php, "v74"))
				continue; /* 7.4 has no JIT */
			print_message("  %s, %s\n", builds[b].php, modes[m].name);
			live_names_clear(&names);
			start(&php, &builds[b], &modes[m], script, argument);
			if (php_process_open(
				    php.pid, &frame_names, &as_it_runs, &process, why, sizeof(why)) != 0)
				fail_msg("%s", why);
			check(&builds[b], &modes[m], process, &php);
			php_process_close(process);
			live_stop(&php);
		}
	}
}

static void check_chain(const struct live_build *build, const struct mode *mode, struct php_process *process,
	struct live_php *php)
{
	uint64_t calls;
	char *text;

	assert_int_equal(live_sample_at(process, &names, "fread|", &sample), 0);
	text = live_text(&sample, &names);
	assert_string_equal(text, php->said);
	free(text);
	for (size_t i = 0; i < sample.count; i++)
		assert_false(sample.frames[i].line_approximate && sample.frames[i].kind != FUNCTION_INTERNAL);

	for (unsigned i = 0; i < 20; i++) {
		calls = remote_read_calls();
		assert_int_equal(php_process_sample(process, &sample), 0);
		assert_int_equal(remote_read_calls() - calls, 1);
	}
	text = live_text(&sample, &names);
	assert_string_equal(text, php->said);
	free(text);
}

static void a_stack_of_every_kind_of_frame_is_what_debug_backtrace_said(void **state)
{
	everywhere(check_chain, SCRIPTS "chain.php", NULL);
}

static void check_depth(const struct live_build *build, const struct mode *mode, struct php_process *process,
	struct live_php *php)
{
	size_t depth = (size_t)atoi(php->said);
	uint64_t calls;

	assert_int_equal(live_sample_at(process, &names, "fread|", &sample), 0);
	/* That one may still have expected the page on which the process was before. */
	assert_int_equal(php_process_sample(process, &sample), 0);
	for (unsigned i = 0; i < 5; i++) {
		calls = remote_read_calls();
		assert_int_equal(php_process_sample(process, &sample), 0);
		assert_int_equal(remote_read_calls() - calls, 1);
	}
	assert_int_equal(sample.count + sample.omitted, depth + 2); /* {main} and fread() */
	if (depth + 2 > STACK_MAX_FRAMES) {
		assert_int_equal(sample.count, STACK_MAX_FRAMES);
		assert_int_equal(sample.omitted_after, STACK_MAX_FRAMES / 2 - 1);
	}
	assert_memory_equal(names.texts[sample.frames[1].name_id], "Deep::down|", 11);
	assert_memory_equal(names.texts[sample.frames[sample.count - 2].name_id], "Deep::down|", 11);
	assert_memory_equal(names.texts[sample.frames[sample.count - 1].name_id], "{main}|", 7);
}

static void a_stack_of_500_methods_comes_whole_with_one_call(void **state)
{
	everywhere(check_depth, SCRIPTS "deep.php", "500");
}

static void a_stack_of_5000_methods_is_truncated_in_the_middle_and_costs_one_call(void **state)
{
	everywhere(check_depth, SCRIPTS "deep.php", "5000");
}

static void check_very_deep(const struct live_build *build, const struct mode *mode,
	struct php_process *process, struct live_php *php)
{
	uint64_t calls;

	assert_int_equal(live_sample_at(process, &names, "fread|", &sample), 0);
	for (unsigned i = 0; i < 3; i++) {
		calls = remote_read_calls();
		assert_int_equal(php_process_sample(process, &sample), 0);
	}
	assert_int_equal(remote_read_calls() - calls, 2);
	assert_int_equal(sample.retries, 0);
	assert_int_equal(sample.count, STACK_MAX_FRAMES);
	assert_int_equal(sample.omitted_after, STACK_MAX_FRAMES / 2 - 1);
	assert_true(sample.omitted_at_least);
	assert_in_range(sample.omitted, 1, (size_t)atoi(php->said));
	for (size_t i = 1; i < sample.count - 1; i++)
		assert_memory_equal(names.texts[sample.frames[i].name_id], "Deep::down|", 11);
	assert_memory_equal(names.texts[sample.frames[sample.count - 1].name_id], "{main}|", 7);
}

static void of_a_stack_of_100000_methods_both_ends_are_seen_with_two_calls(void **state)
{
	everywhere(check_very_deep, SCRIPTS "deep.php", "100000");
}

static void check_ended(const struct live_build *build, const struct mode *mode, struct php_process *process,
	struct live_php *php)
{
	assert_int_equal(live_sample_at(process, &names, "fread|", &sample), 0);
	kill(php->pid, SIGKILL);
	/* Not waited for yet: a process that ended has no memory. */
	for (unsigned i = 0; i < 1000 && php_process_sample(process, &sample) == 0; i++)
		live_pause();
	assert_int_equal(php_process_sample(process, &sample), PHP_PROCESS_E_GONE);
}

static void a_process_that_ends_is_gone(void **state)
{
	everywhere(check_ended, SCRIPTS "deep.php", "10");
}

static void a_process_that_is_no_php_is_refused_with_a_sentence(void **state)
{
	const struct frame_names frame_names = {.intern = live_intern, .context = &names};
	struct php_process *process = NULL;
	char why[512] = "";

	assert_int_equal(php_process_open(getpid(), &frame_names, &as_it_runs, &process, why, sizeof(why)),
		PHP_BINARY_E_NOT_PHP);
	assert_null(process);
	assert_true(strlen(why) > 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stack_of_every_kind_of_frame_is_what_debug_backtrace_said),
		cmocka_unit_test(a_stack_of_500_methods_comes_whole_with_one_call),
		cmocka_unit_test(a_stack_of_5000_methods_is_truncated_in_the_middle_and_costs_one_call),
		cmocka_unit_test(of_a_stack_of_100000_methods_both_ends_are_seen_with_two_calls),
		cmocka_unit_test(a_process_that_ends_is_gone),
		cmocka_unit_test(a_process_that_is_no_php_is_refused_with_a_sentence),
	};
	int failed;

	signal(SIGPIPE, SIG_IGN);
	build_count = live_builds(builds);
	if (build_count == 0) {
		fprintf(stderr, "SKIPPED: no PHP here; tests/setup/install-debian check installs one\n");
		return getenv("CI") ? 1 : 0;
	}
	failed = cmocka_run_group_tests_name("live", tests, NULL, NULL);
	live_names_clear(&names);
	return failed;
}
