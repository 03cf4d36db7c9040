/* SPDX-License-Identifier: MIT
 *
 * Telling requests apart, and reading what a web server sent along, in synthetic images of PHP 8.2.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "reader/request.h"
#include "reader/zval.h"
#include "tests/unit/reader/fake_zval.h"

#define EG_AT 0x555500000000ULL
#define SG_AT 0x555500010000ULL
#define FCGI_AT 0x555500020000ULL
#define BUCKETS_AT 0x555500030000ULL
#define TEXT_AT 0x555500040000ULL
#define TABLE_DATA_AT 0x555500050000ULL
#define KEY_AT 0x555500060000ULL
#define VALUE_AT 0x555500070000ULL
#define SCRIPT_AT 0x555500080000ULL
#define PAGE 4096
#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define SPAN "00f067aa0ba902b7"
#define PARENT "00-" TRACE "-" SPAN "-01"

/* A process, as far as the request reader looks at one. */
struct process {
	struct fake_memory memory;
	struct php_binary binary;
	struct view *view;
	struct request_reader *reader;
	unsigned buckets;
	size_t text_bytes;
	remote_addr context_zval;
};

static void process_init(struct process *process, const char *sapi)
{
	static const struct {
		remote_addr addr;
		size_t bytes;
	} regions[] = {{EG_AT, PAGE}, {SG_AT, PAGE}, {FCGI_AT, 3 * PAGE}, {BUCKETS_AT, PAGE},
		{TEXT_AT, 4 * PAGE}, {TABLE_DATA_AT, PAGE}, {KEY_AT, PAGE}, {VALUE_AT, 3 * PAGE},
		{SCRIPT_AT, PAGE}};
	const struct layout *layout = layout_for_version(80236);

	memset(process, 0, sizeof(*process));
	for (size_t i = 0; i < sizeof(regions) / sizeof(regions[0]); i++)
		fake_map(&process->memory, regions[i].addr, regions[i].bytes);
	process->binary = (struct php_binary){
		.version_id = 80236,
		.layout = layout,
		.executor_globals = EG_AT,
		.sapi_globals = SG_AT,
	};
	strcpy(process->binary.sapi, sapi);
	assert_int_equal(view_new(fake_read, &process->memory, EG_AT + layout->eg_current_execute_data, 8,
				 &process->view),
		0);
	assert_int_equal(request_reader_new(&process->binary, 0, &process->reader), 0);

	fake_table(&process->memory, EG_AT + layout->eg_symbol_table, TABLE_DATA_AT);
	fake_string(&process->memory, KEY_AT, TRACE_CONTEXT_GLOBAL, strlen(TRACE_CONTEXT_GLOBAL), 0);
}

static void process_deinit(struct process *process)
{
	request_reader_free(process->reader);
	view_free(process->view);
	fake_free(&process->memory);
}

/* With PHP code on its stack, in a request of this start time. */
static void executing(struct process *process, double start_time_s)
{
	fake_put64(&process->memory, EG_AT + process->binary.layout->eg_current_execute_data, 0x7fff00001000);
	fake_put8(&process->memory, SG_AT + process->binary.layout->sg_sapi_started, 1);
	fake_put(&process->memory, SG_AT + process->binary.layout->sg_global_request_time, &start_time_s,
		sizeof(start_time_s));
}

/* Between two requests. */
static void idle(struct process *process)
{
	executing(process, 0);
	fake_put64(&process->memory, EG_AT + process->binary.layout->eg_current_execute_data, 0);
	fake_put8(&process->memory, SG_AT + process->binary.layout->sg_sapi_started, 0);
}

/* No PHP code on its stack, but in a request: it compiles, or shuts down. */
static void between_scripts(struct process *process)
{
	fake_put64(&process->memory, EG_AT + process->binary.layout->eg_current_execute_data, 0);
}

static void serve(struct process *process)
{
	fake_put64(&process->memory, SG_AT + process->binary.layout->sg_server_context, FCGI_AT);
	for (unsigned i = 0; i < 128; i++)
		fake_put64(&process->memory, FCGI_AT + 8296 + 8 * i, 0);
	process->buckets = 0;
	process->text_bytes = 0;
}

static remote_addr put_text(struct process *process, const char *text, size_t bytes)
{
	remote_addr addr = TEXT_AT + process->text_bytes;

	fake_put(&process->memory, addr, text, bytes);
	fake_put8(&process->memory, addr + bytes, 0);
	process->text_bytes += bytes + 1;
	return addr;
}

/* As fcgi_hash_set() does: in front of the chain. @hash is worked out by the caller. */
static void set_variable(
	struct process *process, uint32_t hash, const char *name, const char *value, size_t bytes)
{
	remote_addr bucket = BUCKETS_AT + 48 * process->buckets++, head = FCGI_AT + 8296 + 8 * (hash % 128);
	uint64_t next;

	memcpy(&next, fake_at(&process->memory, head, 8), 8);
	fake_put32(&process->memory, bucket, hash);
	fake_put32(&process->memory, bucket + 4, (uint32_t)strlen(name));
	fake_put64(&process->memory, bucket + 8, put_text(process, name, strlen(name)));
	fake_put32(&process->memory, bucket + 16, (uint32_t)bytes);
	fake_put64(&process->memory, bucket + 24, put_text(process, value, bytes));
	fake_put64(&process->memory, bucket + 32, next);
	fake_put64(&process->memory, head, bucket);
}

/* FCGI_HASH_FUNC: 4*(fourth byte) + 16*(last but one) + 4*(last) + length.
 * REQUEST_METHOD: 4*'U'(85) + 16*'O'(79) + 4*'D'(68) + 14 = 340 + 1264 + 272 + 14
 * REQUEST_URI:    4*'U'(85) + 16*'R'(82) + 4*'I'(73) + 11 = 340 + 1312 + 292 + 11
 * HTTP_TRACEPARENT: 4*'P'(80) + 16*'N'(78) + 4*'T'(84) + 16 = 320 + 1248 + 336 + 16 */
#define METHOD_HASH 1890
#define URI_HASH 1955
#define TRACEPARENT_HASH 1920

static void serve_simple(struct process *process, const char *method, const char *uri)
{
	serve(process);
	set_variable(process, METHOD_HASH, "REQUEST_METHOD", method, strlen(method));
	set_variable(process, URI_HASH, "REQUEST_URI", uri, strlen(uri));
}

/* Sets $GLOBALS['__cbox_profd'] to a string; NULL: to an integer. */
static void set_context(struct process *process, const char *text)
{
	uint64_t hash = zval_hash(TRACE_CONTEXT_GLOBAL, strlen(TRACE_CONTEXT_GLOBAL));

	if (process->context_zval == 0)
		process->context_zval = fake_table_add(
			&process->memory, EG_AT + process->binary.layout->eg_symbol_table, hash, KEY_AT);
	if (text)
		fake_string(&process->memory, VALUE_AT, text, strlen(text), 0);
	fake_zval(&process->memory, process->context_zval, text ? VALUE_AT : 42, text ? 6 : 4);
}

static struct request request_at(struct process *process, bool *ret_new)
{
	struct request request;

	assert_int_equal(view_refresh(process->view, 0, 0, 0), 0);
	assert_int_equal(request_read(process->reader, process->view, &request, ret_new), 0);
	return request;
}

static struct request sampled(struct process *process)
{
	bool ignored;

	return request_at(process, &ignored);
}

static void assert_generation(struct process *process, uint64_t generation, bool is_new)
{
	bool new_request;

	assert_int_equal(request_at(process, &new_request).generation, generation);
	assert_int_equal(new_request, is_new);
}

static void process_that_has_served_nothing_has_no_request(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	idle(&process);
	assert_generation(&process, 0, false);
	process_deinit(&process);
}

static void another_start_time_is_another_request(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	executing(&process, 1700000000.25);
	assert_generation(&process, 1, true);
	assert_generation(&process, 1, false);
	executing(&process, 1700000000.5);
	assert_generation(&process, 2, true);
	assert_true(sampled(&process).start_time_s == 1700000000.5);
	process_deinit(&process);
}

static void start_time_asked_for_late_begins_no_request(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	executing(&process, 0);
	assert_generation(&process, 1, true);
	executing(&process, 1700000000.25);
	assert_generation(&process, 1, false);
	executing(&process, 0); /* it never goes back within one */
	assert_generation(&process, 2, true);
	process_deinit(&process);
}

static void idle_process_begins_another_request_even_without_a_start_time(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	executing(&process, 0);
	assert_generation(&process, 1, true);
	idle(&process);
	assert_generation(&process, 1, false);
	executing(&process, 0);
	assert_generation(&process, 2, true);
	process_deinit(&process);
}

static void same_start_time_across_a_gap_is_the_same_request(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	executing(&process, 1700000000.25);
	assert_generation(&process, 1, true);
	between_scripts(&process);
	request_reader_idle(process.reader);
	assert_generation(&process, 1, false);
	executing(&process, 1700000000.25); /* a shutdown function */
	assert_generation(&process, 1, false);
	process_deinit(&process);
}

static void gap_decides_where_nothing_else_does(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	executing(&process, 0);
	assert_generation(&process, 1, true);
	request_reader_idle(process.reader);
	assert_generation(&process, 2, true);
	process_deinit(&process);
}

static void cli_process_has_one_request(void **state)
{
	struct process process;

	process_init(&process, "cli");
	executing(&process, 0);
	assert_generation(&process, 1, true);
	executing(&process, 1700000000.25); /* $_SERVER['REQUEST_TIME'] */
	assert_generation(&process, 1, false);
	between_scripts(&process);
	request_reader_idle(process.reader);
	assert_generation(&process, 1, false);
	executing(&process, 1700000000.25);
	assert_generation(&process, 1, false);
	process_deinit(&process);
}

static void impossible_start_time_is_not_known(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	executing(&process, 0.0 / 0.0);
	assert_generation(&process, 1, true);
	assert_generation(&process, 1, false); /* NaN differs from itself */
	assert_true(sampled(&process).start_time_s == 0);
	executing(&process, -1);
	assert_generation(&process, 1, false);
	process_deinit(&process);
}

static void new_request_is_reported_after_a_torn_sample(void **state)
{
	struct request request;
	struct process process;
	bool new_request = false;

	process_init(&process, "fpm-fcgi");
	set_context(&process, PARENT);
	/* The table makes no sense at first: PHP is changing it. */
	executing(&process, 1700000000.25);
	fake_put32(&process.memory, EG_AT + process.binary.layout->eg_symbol_table + 12, 1);
	assert_int_equal(view_refresh(process.view, 0, 0, 0), 0);
	assert_int_equal(request_read(process.reader, process.view, &request, &new_request), VIEW_E_TORN);
	assert_false(new_request);
	fake_put32(&process.memory, EG_AT + process.binary.layout->eg_symbol_table + 12,
		(uint32_t)-FAKE_HASH_SLOTS);
	assert_generation(&process, 1, true);
	assert_generation(&process, 1, false);
	process_deinit(&process);
}

static void broken_symbol_table_becomes_an_invalid_context(void **state)
{
	struct request request;
	struct process process;
	bool ignored;
	int r = VIEW_E_TORN;

	process_init(&process, "fpm-fcgi");
	set_context(&process, PARENT);
	executing(&process, 1700000000.25);
	fake_put32(&process.memory, EG_AT + process.binary.layout->eg_symbol_table + 12, 1);
	for (int i = 0; i < 4 && r == VIEW_E_TORN; i++) {
		assert_int_equal(view_refresh(process.view, 0, 0, 0), 0);
		r = request_read(process.reader, process.view, &request, &ignored);
	}
	assert_int_equal(r, 0);
	assert_int_equal(request.context_state, CONTEXT_INVALID);
	/* And is then not waited for again. */
	assert_int_equal(sampled(&process).context_state, CONTEXT_INVALID);
	process_deinit(&process);
}

static void context_is_valid_absent_or_invalid(void **state)
{
	static char long_text[513];
	struct process process;
	struct request request;

	process_init(&process, "fpm-fcgi");
	executing(&process, 1700000000.25);
	assert_int_equal(sampled(&process).context_state, CONTEXT_ABSENT);
	set_context(&process, PARENT ";u=http;h=4711");
	request = sampled(&process);
	assert_int_equal(request.context_state, CONTEXT_VALID);
	assert_string_equal(request.context.trace_id, TRACE);
	assert_int_equal(request.context.handle, 4711);
	set_context(&process, "nonsense");
	assert_int_equal(sampled(&process).context_state, CONTEXT_INVALID);
	set_context(&process, NULL);
	assert_int_equal(sampled(&process).context_state, CONTEXT_INVALID);
	memset(long_text, 'a', sizeof(long_text) - 1);
	set_context(&process, long_text);
	assert_int_equal(sampled(&process).context_state, CONTEXT_INVALID);
	set_context(&process, PARENT);
	idle(&process);
	assert_int_equal(sampled(&process).context_state, CONTEXT_ABSENT);
	process_deinit(&process);
}

static void method_path_and_traceparent_come_from_the_fastcgi_environment(void **state)
{
	struct process process;
	struct request request;

	process_init(&process, "fpm-fcgi");
	serve_simple(&process, "POST", "/orders/17?token=secret");
	set_variable(&process, TRACEPARENT_HASH, "HTTP_TRACEPARENT", PARENT, strlen(PARENT));
	executing(&process, 1700000000.25);
	request = sampled(&process);
	assert_string_equal(request.method, "POST");
	assert_string_equal(request.path, "/orders/17");
	assert_true(request.has_traceparent);
	assert_string_equal(request.traceparent.span_id, SPAN);
	process_deinit(&process);
}

static void environment_is_read_once_a_request_in_four_reads(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	executing(&process, 1700000000.25);
	sampled(&process); /* no environment yet; the walk of the global is known from here */
	serve_simple(&process, "GET", "/a");
	set_variable(&process, TRACEPARENT_HASH, "HTTP_TRACEPARENT", PARENT, strlen(PARENT));
	executing(&process, 1700000000.5);
	process.memory.calls = 0;
	assert_string_equal(sampled(&process).path, "/a");
	assert_int_equal(process.memory.calls, 4); /* refresh, heads, buckets, texts */
	serve_simple(&process, "PUT",
		"/b"); /* PHP code can't change it, but whatever does, it is not looked at again */
	process.memory.calls = 0;
	for (int i = 0; i < 20; i++)
		assert_string_equal(sampled(&process).path, "/a");
	assert_int_equal(process.memory.calls, 20);
	executing(&process, 1700000000.75);
	assert_string_equal(sampled(&process).path, "/b");
	assert_string_equal(sampled(&process).method, "PUT");
	assert_false(sampled(&process).has_traceparent);
	process_deinit(&process);
}

static void idle_process_tells_of_its_last_request_and_follows_no_dangling_pointer(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	serve_simple(&process, "GET", "/last");
	executing(&process, 1700000000.25);
	sampled(&process);
	idle(&process);
	serve_simple(&process, "GET", "/garbage");
	assert_string_equal(sampled(&process).path, "/last");
	process_deinit(&process);
}

static void headers_made_to_collide_hide_nothing(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	serve_simple(&process, "GET", "/here");
	/* HTTP_TRACEPARENT's slot and hash, and for REQUEST_URI an equally long name, in front of it. */
	set_variable(&process, TRACEPARENT_HASH, "HTTP_TRACEPARENT", PARENT, strlen(PARENT));
	set_variable(&process, TRACEPARENT_HASH, "HTTP_TRACEPERENT", "x", 1);
	set_variable(&process, TRACEPARENT_HASH + 128, "HTTP_TRACEPARENT", "y", 1);
	set_variable(&process, URI_HASH, "REQUESTXURI", "/there", 6);
	executing(&process, 1700000000.25);
	assert_string_equal(sampled(&process).path, "/here");
	assert_true(sampled(&process).has_traceparent);
	process_deinit(&process);
}

static void cyclic_chain_of_variables_ends(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	serve(&process);
	set_variable(&process, METHOD_HASH + 128, "SOMETHING_ELSE", "x", 1);
	fake_put64(&process.memory, BUCKETS_AT + 32, BUCKETS_AT);
	executing(&process, 1700000000.25);
	assert_string_equal(sampled(&process).method, "");
	process_deinit(&process);
}

static void environment_that_is_not_there_yet_is_tried_again(void **state)
{
	struct process process;

	process_init(&process, "fpm-fcgi");
	executing(&process, 1700000000.25);
	assert_string_equal(sampled(&process).method, ""); /* server_context is 0 */
	fake_put64(&process.memory, SG_AT, 0x666600000000ULL);
	assert_string_equal(sampled(&process).method, ""); /* leads nowhere */
	fake_put64(&process.memory, SG_AT, 1);
	assert_string_equal(sampled(&process).method, ""); /* cgi-fcgi without a web server */
	serve_simple(&process, "GET", "/now");
	assert_string_equal(sampled(&process).path, "/now");
	process_deinit(&process);
}

static void path_is_cut_and_made_printable(void **state)
{
	char uri[300];
	struct process process;
	struct request request;

	process_init(&process, "fpm-fcgi");
	serve_simple(&process, "GET", "/a b\x1b[2J\xc3\xa9?x=1");
	executing(&process, 1700000000.25);
	assert_string_equal(sampled(&process).path, "/a%20b%1B[2J%C3%A9");

	memset(uri, 'p', sizeof(uri));
	uri[299] = '\0';
	serve_simple(&process, "GET", uri);
	executing(&process, 1700000000.5);
	request = sampled(&process);
	assert_int_equal(strlen(request.path), REQUEST_MAX_PATH_BYTES);
	assert_memory_equal(request.path, uri, REQUEST_MAX_PATH_BYTES);

	memset(uri, '\x01', sizeof(uri));
	uri[299] = '\0';
	serve_simple(&process, "GET", uri);
	executing(&process, 1700000000.75);
	assert_int_equal(strlen(sampled(&process).path), REQUEST_MAX_PATH_BYTES / 3 * 3);
	process_deinit(&process);
}

static void odd_methods_are_left_out(void **state)
{
	static const char *const odd[] = {"GET /", "<script>", "G\nT", "ABCDEFGHIJKLMNOPQ"};
	struct process process;

	process_init(&process, "fpm-fcgi");
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		serve_simple(&process, odd[i], "/p");
		executing(&process, 1700000000.25 + (double)i);
		assert_string_equal(sampled(&process).method, "");
		assert_string_equal(sampled(&process).path, "/p");
	}
	serve_simple(&process, "VERSION-CONTROL", "/p");
	executing(&process, 1700000100);
	assert_string_equal(sampled(&process).method, "VERSION-CONTROL");
	process_deinit(&process);
}

static void traceparent_that_is_none_is_left_out(void **state)
{
	static const char *const bad[] = {
		"", "garbage", PARENT ";h=1", "00-00000000000000000000000000000000-0000000000000000-01"};
	struct process process;

	process_init(&process, "fpm-fcgi");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		serve_simple(&process, "GET", "/");
		set_variable(&process, TRACEPARENT_HASH, "HTTP_TRACEPARENT", bad[i], strlen(bad[i]));
		executing(&process, 1700000000.25 + (double)i);
		assert_false(sampled(&process).has_traceparent);
		assert_string_equal(sampled(&process).path, "/");
	}
	process_deinit(&process);
}

static void environment_is_followed_for_fastcgi_alone(void **state)
{
	struct process process;

	process_init(&process, "apache2handler");
	serve_simple(&process, "GET", "/");
	executing(&process, 1700000000.25);
	assert_string_equal(sampled(&process).path, "");
	process_deinit(&process);
}

static void cli_path_is_the_scripts(void **state)
{
	static const char script[] = "/srv/app/artisan";
	remote_addr at = SCRIPT_AT + PAGE - sizeof(script); /* its 0 is the page's last byte */
	struct process process;

	process_init(&process, "cli");
	fake_put(&process.memory, at, script, sizeof(script));
	fake_put64(&process.memory, SG_AT + process.binary.layout->sg_path_translated, at);
	executing(&process, 0);
	assert_string_equal(sampled(&process).path, script);
	assert_string_equal(sampled(&process).method, "");
	process_deinit(&process);
}

static void script_path_without_an_end_is_cut(void **state)
{
	struct process process;

	process_init(&process, "cli");
	memset(fake_at(&process.memory, SCRIPT_AT, PAGE), 'x', PAGE);
	fake_put64(&process.memory, SG_AT + process.binary.layout->sg_path_translated, SCRIPT_AT);
	executing(&process, 0);
	assert_int_equal(strlen(sampled(&process).path), REQUEST_MAX_PATH_BYTES);
	process_deinit(&process);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_that_has_served_nothing_has_no_request),
		cmocka_unit_test(another_start_time_is_another_request),
		cmocka_unit_test(start_time_asked_for_late_begins_no_request),
		cmocka_unit_test(idle_process_begins_another_request_even_without_a_start_time),
		cmocka_unit_test(same_start_time_across_a_gap_is_the_same_request),
		cmocka_unit_test(gap_decides_where_nothing_else_does),
		cmocka_unit_test(cli_process_has_one_request),
		cmocka_unit_test(impossible_start_time_is_not_known),
		cmocka_unit_test(new_request_is_reported_after_a_torn_sample),
		cmocka_unit_test(broken_symbol_table_becomes_an_invalid_context),
		cmocka_unit_test(context_is_valid_absent_or_invalid),
		cmocka_unit_test(method_path_and_traceparent_come_from_the_fastcgi_environment),
		cmocka_unit_test(environment_is_read_once_a_request_in_four_reads),
		cmocka_unit_test(idle_process_tells_of_its_last_request_and_follows_no_dangling_pointer),
		cmocka_unit_test(headers_made_to_collide_hide_nothing),
		cmocka_unit_test(cyclic_chain_of_variables_ends),
		cmocka_unit_test(environment_that_is_not_there_yet_is_tried_again),
		cmocka_unit_test(path_is_cut_and_made_printable),
		cmocka_unit_test(odd_methods_are_left_out),
		cmocka_unit_test(traceparent_that_is_none_is_left_out),
		cmocka_unit_test(environment_is_followed_for_fastcgi_alone),
		cmocka_unit_test(cli_path_is_the_scripts),
		cmocka_unit_test(script_path_without_an_end_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
