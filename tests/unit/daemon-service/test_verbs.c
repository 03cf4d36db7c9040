/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "daemon/service/verbs.h"
#include "fake_engine.h"
#include "service_fixture.h"

static int set_up(void **state)
{
	if (fixture_set_up(state) < 0)
		return -1;
	fixture_start();
	return 0;
}

static char *text_of(const char *request)
{
	bool ok;
	char *text = ask(request, &ok);

	if (!ok)
		fail_msg("%s: %s", request, text);
	return text;
}

static void assert_member(const char *request, const char *member)
{
	char *text = text_of(request);

	if (!strstr(text, member))
		fail_msg("%s: no %s in %s", request, member, text);
	free(text);
}

static void the_hello_names_protocol_and_verbs(void **state)
{
	int fd = try_to_connect();

	assert_next_line(fd, "{\"hello\":\"cbox-profd\",\"version\":\"" CBOX_PROFD_VERSION
			     "\",\"protocols\":[1],\"features\":["
			     "\"finish\",\"status\",\"targets\",\"top\",\"profile\",\"unit\",\"units\","
			     "\"metrics\",\"attach\",\"detach\","
			     "\"rate\",\"reset\",\"suspend\",\"resume\",\"reload\"]}");
	close(fd);
}

static void finish_ends_the_unit_of_the_process_that_asks(void **state)
{
	char *text =
		text_of("{\"verb\":\"finish\",\"handle\":9007199254740993,\"profile\":true,"
			"\"context\":\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01;u=http\"}");

	assert_non_null(strstr(text, "\"duration_ns\":500"));
	assert_non_null(strstr(text, "\"trace_id\":\"" FAKE_TRACE "\""));
	assert_int_equal(fake.last.pid, getpid());
	assert_int_equal(fake.last.uid, geteuid());
	assert_int_equal(fake.last.handle, FAKE_HANDLE);
	assert_true(fake.last.want_profile);
	assert_true(fake.last.has_context);
	assert_string_equal(fake.last.context.span_id, "b7ad6b7169203331");
	free(text);

	/* handles may be strings; 0 and no handle mean whichever unit is open */
	free(text_of("{\"verb\":\"finish\",\"handle\":\"9007199254740993\"}"));
	assert_int_equal(fake.last.handle, FAKE_HANDLE);
	assert_false(fake.last.has_context);
	free(text_of("{\"verb\":\"finish\"}"));
	assert_int_equal(fake.last.handle, 0);
}

static void finish_without_target_or_unit_says_which(void **state)
{
	assert_error("{\"verb\":\"finish\",\"handle\":1}", "no_unit");
	fake.worker_uid = WWW_DATA;
	assert_error("{\"verb\":\"finish\"}", "not_a_target");
}

static void finish_with_wrong_arguments_asks_the_engine_nothing(void **state)
{
	assert_error("{\"verb\":\"finish\",\"handle\":-1}", "out_of_range");
	assert_error("{\"verb\":\"finish\",\"handle\":18446744073709551616}", "out_of_range");
	assert_error("{\"verb\":\"finish\",\"handle\":\"abc\"}", "bad_request");
	assert_error("{\"verb\":\"finish\",\"profile\":1}", "bad_request");
	assert_error("{\"verb\":\"finish\",\"stacks\":\"yes\"}", "bad_request");
	assert_error("{\"verb\":\"finish\",\"context\":\"00-zz\"}", "bad_request");
	assert_int_equal(fake.submitted, 0);
}

static void status_tells_root_everything(void **state)
{
	const char *request = "{\"verb\":\"status\"}";
	char *text = text_of(request);
	char socket[160];

	snprintf(socket, sizeof(socket), "\"socket\":\"%s\"", fixture.options.path);
	assert_non_null(strstr(text, socket));
	assert_non_null(strstr(text, "\"version\":\"" CBOX_PROFD_VERSION "\""));
	assert_non_null(strstr(text, "\"protocols\":[1]"));
	/* 2^53 + 1, exactly */
	assert_non_null(strstr(text, "\"uptime_ns\":9007199254740993"));
	assert_non_null(strstr(text, "\"sampling\":{\"period_ns\":10000000,\"asked_period_ns\":10000000,"
				     "\"stretch_ppm\":1000000,\"max_depth\":512,\"suspended\":false}"));
	assert_non_null(strstr(text, "\"max_targets\":128"));
	assert_non_null(strstr(text, "\"targets\":3,\"pools\":[\"www\",\"private\"]"));
	assert_non_null(strstr(
		text, "\"refusals\":[{\"pid\":301,\"why\":\"process 301: PHP 5.6.40 is older than 7.4\"}]"));
	assert_non_null(strstr(text,
		"\"entries\":[{\"selects\":\"fpm_pool www\",\"pool\":null,\"found\":2,\"why\":null},"
		"{\"selects\":\"/run/shop.pid\",\"pool\":\"shop\",\"found\":0,"
		"\"why\":\"No such file or directory\"}]"));
	assert_non_null(strstr(text, "\"expected\":16"));
	assert_non_null(strstr(text, "\"worker\":{"));
	free(text);
	fake.worker_uid = WWW_DATA;
	assert_member(request, "\"worker\":null");
}

static void readers_pass_their_filters_on(void **state)
{
	assert_member("{\"verb\":\"targets\",\"pool\":\"private\"}", "{\"targets\":[{\"pid\":201,");
	assert_answer("{\"verb\":\"targets\",\"pool\":\"none\"}", "{\"targets\":[]}");
	assert_member("{\"verb\":\"targets\",\"pid\":102}", "{\"targets\":[{\"pid\":102,");
	assert_member("{\"verb\":\"top\",\"n\":1,\"order\":\"total_cpu\"}", "\"functions\":[{");
	assert_member("{\"verb\":\"profile\",\"pool\":\"www\"}", "\"sample_count\":3");
	assert_error("{\"verb\":\"profile\",\"pool\":\"none\"}", "not_found");
	assert_member("{\"verb\":\"unit\",\"unit_id\":7}", "\"duration_ns\":500");
	assert_member("{\"verb\":\"unit\",\"trace_id\":\"0AF7651916CD43DD8448EB211C80319C\"}",
		"\"duration_ns\":500");
	assert_error("{\"verb\":\"unit\",\"unit_id\":8}", "not_found");
	assert_member("{\"verb\":\"units\",\"limit\":3}", "{\"units\":[{");
	assert_int_equal(fake.last.limit, 3);
	assert_member("{\"verb\":\"metrics\"}", "\"uptime_ns\":9007199254740993");
}

static void arguments_of_readers_are_checked(void **state)
{
	assert_error("{\"verb\":\"targets\",\"pid\":0}", "out_of_range");
	assert_error("{\"verb\":\"targets\",\"pid\":4194305}", "out_of_range");
	assert_error("{\"verb\":\"targets\",\"pool\":[]}", "bad_request");
	assert_error("{\"verb\":\"targets\",\"pool\":"
		     "\"0123456789012345678901234567890123456789012345678901234567890123\"}",
		"bad_request");
	assert_error("{\"verb\":\"top\",\"n\":0}", "out_of_range");
	assert_error("{\"verb\":\"top\",\"n\":1001}", "out_of_range");
	assert_error("{\"verb\":\"top\",\"order\":\"wall\"}", "bad_request");
	assert_error("{\"verb\":\"unit\"}", "bad_request");
	assert_error("{\"verb\":\"unit\",\"unit_id\":7,\"trace_id\":\"" FAKE_TRACE "\"}", "bad_request");
	assert_error("{\"verb\":\"unit\",\"trace_id\":\"0af7\"}", "bad_request");
	assert_error("{\"verb\":\"unit\",\"trace_id\":\"0af7651916cd43dd8448eb211c80319g\"}", "bad_request");
	assert_error("{\"verb\":\"units\",\"limit\":1001}", "out_of_range");
	assert_error("{\"verb\":\"levitate\"}", "unknown_verb");
	assert_error("{\"verb\":\"\"}", "unknown_verb");
	assert_int_equal(fake.submitted, 0);
}

static void control_verbs_say_how_many_targets_they_reached(void **state)
{
	assert_answer("{\"verb\":\"suspend\",\"pool\":\"www\"}", "{\"affected\":2}");
	assert_answer("{\"verb\":\"resume\",\"pid\":201}", "{\"affected\":1}");
	assert_answer("{\"verb\":\"reset\"}", "{\"affected\":3}");
	assert_answer("{\"verb\":\"attach\",\"pid\":77,\"pool\":\"mine\"}", "{\"affected\":1}");
	assert_int_equal(fake.last.pid, 77);
	assert_string_equal(fake.last.pool, "mine");
	assert_answer("{\"verb\":\"attach\",\"pid\":101}",
		"{\"affected\":0,\"note\":\"process 101: already sampled as www; nothing changed\"}");
	assert_answer("{\"verb\":\"detach\",\"pid\":101}", "{\"affected\":1}");
	assert_answer("{\"verb\":\"rate\",\"period_us\":1000,\"pool\":\"www\"}", "{\"affected\":2}");
	assert_int_equal(fake.last.period_ns, 1000000);
}

static void a_rate_for_all_shows_in_status(void **state)
{
	assert_answer("{\"verb\":\"rate\",\"rate_hz\":250,\"pool\":\"www\"}", "{\"affected\":2}");
	assert_member("{\"verb\":\"status\"}", "\"sampling\":{\"period_ns\":10000000,");
	assert_answer("{\"verb\":\"rate\",\"rate_hz\":250}", "{\"affected\":3}");
	assert_int_equal(fake.last.period_ns, 4000000);
	assert_member("{\"verb\":\"status\"}", "\"sampling\":{\"period_ns\":4000000,");
}

static void status_tells_the_period_in_force_and_the_one_that_was_asked_for(void **state)
{
	fake.stretch_ppm = 2500000;
	assert_member("{\"verb\":\"status\"}",
		"\"sampling\":{\"period_ns\":25000000,\"asked_period_ns\":10000000,\"stretch_ppm\":2500000,");
	fake.stretch_ppm = 1000000;
}

static void control_verbs_that_can_not_be_done_say_why(void **state)
{
	assert_error("{\"verb\":\"rate\"}", "bad_request");
	assert_error("{\"verb\":\"rate\",\"rate_hz\":100,\"period_us\":1}", "bad_request");
	assert_error("{\"verb\":\"rate\",\"rate_hz\":0}", "out_of_range");
	assert_error("{\"verb\":\"rate\",\"period_us\":99}", "out_of_range");
	assert_error("{\"verb\":\"attach\"}", "bad_request");
	assert_error("{\"verb\":\"detach\"}", "bad_request");
	assert_error("{\"verb\":\"attach\",\"pid\":77,\"pool\":\"a b\"}", "bad_request");
	assert_error("{\"verb\":\"attach\",\"pid\":77,\"pool\":\"a\\u001b[2J\"}", "bad_request");
	assert_error("{\"verb\":\"attach\",\"pid\":666}", "refused");
	assert_error("{\"verb\":\"attach\",\"pid\":667}", "limit");
}

static void reload_is_the_programs_to_do(void **state)
{
	assert_answer("{\"verb\":\"reload\"}", "{}");
	assert_int_equal(fixture.reloads, 1);
	fixture.reload_error = -EINVAL;
	assert_error("{\"verb\":\"reload\"}", "refused");
}

/* Roles. The requests, and whom they are allowed: o by its own uid, r member of the socket's group, a of the
 * admin group. */
static const struct {
	const char *request;
	bool own, reader, admin;
} matrix[] = {
	{"{\"verb\":\"finish\"}", true, true, true},
	{"{\"verb\":\"status\"}", true, true, true},
	{"{\"verb\":\"targets\"}", true, true, true},
	{"{\"verb\":\"top\"}", true, true, true},
	{"{\"verb\":\"profile\"}", true, true, true},
	{"{\"verb\":\"unit\",\"unit_id\":7}", true, true, true},
	{"{\"verb\":\"units\"}", true, true, true},
	{"{\"verb\":\"metrics\"}", false, true, true},
	{"{\"verb\":\"attach\",\"pid\":5}", false, false, true},
	{"{\"verb\":\"detach\",\"pid\":5}", false, false, true},
	{"{\"verb\":\"rate\",\"rate_hz\":100}", false, false, true},
	{"{\"verb\":\"reset\"}", false, false, true},
	{"{\"verb\":\"suspend\"}", false, false, true},
	{"{\"verb\":\"resume\"}", false, false, true},
	{"{\"verb\":\"reload\"}", false, false, true},
};

static void assert_allowed(const char *request, gid_t gid, gid_t supplementary, bool allowed)
{
	char *line = ask_as(WWW_DATA, gid, supplementary, request);

	if (allowed ? strncmp(line, "{\"ok\":true,", 11) != 0 : !strstr(line, "\"error\":\"forbidden\""))
		fail_msg("gid %u, groups %u: %s -> %s", gid, supplementary, request, line);
	free(line);
}

static void roles_follow_from_uid_and_groups(void **state)
{
	if (geteuid() != 0)
		skip();
	fake.worker_uid = WWW_DATA;
	for (size_t i = 0; i < sizeof(matrix) / sizeof(matrix[0]); i++) {
		assert_allowed(matrix[i].request, 33, 0, matrix[i].own);
		assert_allowed(matrix[i].request, 33, READER_GROUP, matrix[i].reader);
		assert_allowed(matrix[i].request, READER_GROUP, 0, matrix[i].reader);
		assert_allowed(matrix[i].request, 33, ADMIN_GROUP, matrix[i].admin);
		assert_allowed(matrix[i].request, ADMIN_GROUP, 0, matrix[i].admin);
	}
}

static void assert_told(uid_t uid, const char *request, const char *expected)
{
	char *line = ask_as(uid, uid, 0, request);

	assert_string_equal(line, expected);
	free(line);
}

static void others_targets_do_not_exist_for_a_user(void **state)
{
	const char *not_found =
		"{\"ok\":false,\"error\":\"not_found\",\"message\":\"no such target, pool or unit\"}";
	char *line;

	if (geteuid() != 0)
		skip();
	fake.worker_uid = WWW_DATA;
	line = ask_as(WWW_DATA, WWW_DATA, 0, "{\"verb\":\"targets\"}");
	assert_non_null(strstr(line, "\"pid\":101"));
	assert_non_null(strstr(line, "\"pid\":102"));
	assert_null(strstr(line, "201"));
	free(line);
	line = ask_as(WWW_DATA, WWW_DATA, 0, "{\"verb\":\"status\"}");
	assert_non_null(strstr(line, "\"targets\":2,\"pools\":[\"www\"],\"refusals\":[],\"entries\":[],"));
	assert_non_null(strstr(line, "\"expected\":15"));
	assert_null(strstr(line, "private"));
	free(line);
	assert_told(
		WWW_DATA, "{\"verb\":\"targets\",\"pid\":201}", "{\"ok\":true,\"result\":{\"targets\":[]}}");
	/* What is another's and what is not there are told in the same words. */
	assert_told(WWW_DATA, "{\"verb\":\"profile\",\"pool\":\"private\"}", not_found);
	assert_told(WWW_DATA, "{\"verb\":\"profile\",\"pool\":\"none\"}", not_found);
	assert_told(NOBODY, "{\"verb\":\"unit\",\"unit_id\":7}", not_found);
	assert_told(NOBODY, "{\"verb\":\"unit\",\"unit_id\":8}", not_found);
	assert_told(NOBODY, "{\"verb\":\"units\"}", "{\"ok\":true,\"result\":{\"units\":[]}}");
}

static void finish_is_for_the_workers_own_user(void **state)
{
	char *line;

	if (geteuid() != 0)
		skip();
	fake.worker_uid = WWW_DATA;
	line = ask_as(NOBODY, NOBODY, 0, "{\"verb\":\"finish\"}");
	assert_non_null(strstr(line, "\"error\":\"not_a_target\""));
	assert_int_equal(fake.last.uid, NOBODY);
	free(line);
	line = ask_as(WWW_DATA, WWW_DATA, ADMIN_GROUP, "{\"verb\":\"finish\"}");
	assert_non_null(strstr(line, "\"ok\":true"));
	/* also for who may see all */
	assert_int_equal(fake.last.uid, WWW_DATA);
	free(line);
}

static void a_peer_from_another_pid_namespace_is_no_worker(void **state)
{
	const char *finish = "{\"verb\":\"finish\"}", *status = "{\"verb\":\"status\"}";
	struct verb_host host = {.engine = &fake};
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	protocol_request_init(&exchange->request, finish, strlen(finish));
	verb_ask(exchange, &host);
	assert_int_equal(exchange->request.error, PROTOCOL_E_NOT_A_TARGET);
	exchange_free(exchange);

	/* It may ask for the status, in which no process is its own. */
	exchange = calloc(1, sizeof(*exchange));
	protocol_request_init(&exchange->request, status, strlen(status));
	verb_ask(exchange, &host);
	assert_int_equal(exchange->request.error, PROTOCOL_OK);
	assert_int_equal(exchange->order_count, 2);
	exchange_free(exchange);
}

static void new_groups_hold_for_those_who_are_connected(void **state)
{
	struct service_options options = fixture.options;

	if (geteuid() != 0)
		skip();
	assert_allowed("{\"verb\":\"reset\"}", 33, ADMIN_GROUP, true);
	options.admin_group = (gid_t)-1;
	service_reconfigure(fixture.service, &options);
	assert_allowed("{\"verb\":\"reset\"}", 33, ADMIN_GROUP, false);
	assert_allowed("{\"verb\":\"metrics\"}", 33, READER_GROUP, true);
	options.group = (gid_t)-1;
	service_reconfigure(fixture.service, &options);
	assert_allowed("{\"verb\":\"metrics\"}", 33, READER_GROUP, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_hello_names_protocol_and_verbs),
		TEST(finish_ends_the_unit_of_the_process_that_asks),
		TEST(finish_without_target_or_unit_says_which),
		TEST(finish_with_wrong_arguments_asks_the_engine_nothing),
		TEST(status_tells_root_everything),
		TEST(readers_pass_their_filters_on),
		TEST(arguments_of_readers_are_checked),
		TEST(control_verbs_say_how_many_targets_they_reached),
		TEST(a_rate_for_all_shows_in_status),
		TEST(status_tells_the_period_in_force_and_the_one_that_was_asked_for),
		TEST(control_verbs_that_can_not_be_done_say_why),
		TEST(reload_is_the_programs_to_do),
		TEST(roles_follow_from_uid_and_groups),
		TEST(others_targets_do_not_exist_for_a_user),
		TEST(finish_is_for_the_workers_own_user),
		TEST(a_peer_from_another_pid_namespace_is_no_worker),
		TEST(new_groups_hold_for_those_who_are_connected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
