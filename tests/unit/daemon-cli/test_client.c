/* SPDX-License-Identifier: MIT
 *
 * The client against servers of every kind: right ones, silent ones, lying ones.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/cli/client.h"
#include "daemon/export/json.h"

#define HELLO "{\"hello\":\"cbox-profd\",\"version\":\"1.2.3\",\"protocols\":[1,2]}\n"
#define TIMEOUT_NS (UINT64_C(2) * 1000 * 1000 * 1000)
#define SHORT_TIMEOUT_NS (UINT64_C(100) * 1000 * 1000)

/* Accepts one client, says @greeting, waits for a line, says @answer, closes. NULL: stays silent there until
 * the client goes. */
struct server {
	const char *greeting, *answer;
	char directory[32], path[64];
	char question[1024];
	int listener;
	pthread_t thread;
};

static void until_closed(int fd)
{
	char rest[256];

	while (read(fd, rest, sizeof(rest)) > 0)
		;
}

static void say(int fd, const char *text)
{
	/* In small pieces, as a network may bring it. */
	for (size_t length; *text; text += length) {
		length = strnlen(text, 7000);
		if (send(fd, text, length, MSG_NOSIGNAL) < 0)
			return;
	}
}

static void *serve(void *context)
{
	struct server *server = context;
	_cleanup_close_ int fd = accept(server->listener, NULL, NULL);
	size_t length = 0;

	if (!server->greeting) {
		until_closed(fd);
		return NULL;
	}
	say(fd, server->greeting);
	while (length < sizeof(server->question) - 1 && read(fd, server->question + length, 1) == 1 &&
		server->question[length] != '\n')
		length++;
	server->question[length] = 0;
	if (server->answer)
		say(fd, server->answer);
	else
		until_closed(fd);
	return NULL;
}

static void start(struct server *server)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(server->directory, "/tmp/test-client-XXXXXX");
	assert_non_null(mkdtemp(server->directory));
	snprintf(server->path, sizeof(server->path), "%s/sock", server->directory);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", server->path);
	server->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server->listener, 1), 0);
	assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void stop(struct server *server)
{
	pthread_join(server->thread, NULL);
	close(server->listener);
	unlink(server->path);
	rmdir(server->directory);
}

/* Opens, asks {"verb":"status"}, closes. */
static int ask_once(
	struct server *server, uint64_t timeout_ns, cJSON **ret_result, char **ret_text, char why[512])
{
	start(server);
	struct daemon_client *client = NULL;
	int r = daemon_client_open(server->path, timeout_ns, &client, why, 512);
	if (r == 0) {
		_cleanup_(cJSON_Deletep) cJSON *request = cJSON_Parse("{\"verb\":\"status\"}");

		r = daemon_client_ask(client, request, ret_result, ret_text, why, 512);
		daemon_client_close(client);
	}
	stop(server);
	return r;
}

static void an_answer_arrives_with_all_its_digits(void **state)
{
	struct server server = {.greeting = HELLO,
		.answer = "{\"id\":1, \"ok\":true, \"result\": {\"handle\":18446744073709551557,\"x\":\"} "
			  "\\\"]\"} }\n"};
	cJSON *result = NULL;
	char *text = NULL, why[512];

	assert_int_equal(ask_once(&server, TIMEOUT_NS, &result, &text, why), 0);
	assert_string_equal(server.question, "{\"verb\":\"status\",\"id\":1}");
	assert_string_equal(cJSON_GetObjectItem(result, "x")->valuestring, "} \"]");
	assert_string_equal(text, " {\"handle\":18446744073709551557,\"x\":\"} \\\"]\"} ");
	free(text);
	cJSON_Delete(result);
}

static void an_answer_in_pieces_is_put_together(void **state)
{
	struct server server = {.greeting = HELLO,
		.answer = "{\"id\":1,\"more\":true,\"chunk\":\"{\\\"ok\\\":tr\"}\n"
			  "{\"id\":1,\"more\":true,\"chunk\":\"ue,\\\"result\\\":[1,\"}\n"
			  "{\"id\":1,\"more\":false,\"chunk\":\"2,3]}\"}\n"};
	cJSON *result = NULL;
	char *text = NULL, why[512];

	assert_int_equal(ask_once(&server, TIMEOUT_NS, &result, &text, why), 0);
	assert_string_equal(text, "[1,2,3]");
	assert_int_equal(cJSON_GetArraySize(result), 3);
	free(text);
	cJSON_Delete(result);
}

static void an_error_is_passed_on_with_its_name(void **state)
{
	struct server forbidden = {.greeting = HELLO,
		.answer = "{\"id\":1,\"ok\":false,\"error\":\"forbidden\",\"message\":\"only for root\"}\n"};
	struct server range = {.greeting = HELLO,
		.answer =
			"{\"id\":1,\"ok\":false,\"error\":\"out_of_range\",\"message\":\"at most 10000\"}\n"};
	struct server refused = {.greeting = HELLO,
		.answer =
			"{\"id\":1,\"ok\":false,\"error\":\"refused\",\"message\":\"process 1: not PHP\"}\n"};
	struct server missing = {.greeting = HELLO,
		.answer = "{\"id\":1,\"ok\":false,\"error\":\"not_found\",\"message\":\"no pool \\\"x\\\"; "
			  "there "
			  "are: www\"}\n"};
	struct server full = {
		.greeting =
			"{\"ok\":false,\"error\":\"too_many_connections\",\"message\":\"64 are open\"}\n"};
	cJSON *result = NULL;
	char why[512];

	assert_int_equal(ask_once(&forbidden, TIMEOUT_NS, &result, NULL, why), CLIENT_E_FORBIDDEN);
	assert_string_equal(why, "the daemon refuses: forbidden: only for root");
	assert_int_equal(ask_once(&range, TIMEOUT_NS, &result, NULL, why), CLIENT_E_REFUSED);
	assert_string_equal(why, "the daemon refuses: out_of_range: at most 10000");
	assert_int_equal(ask_once(&refused, TIMEOUT_NS, &result, NULL, why), CLIENT_E_REFUSED);
	assert_string_equal(why, "the daemon refuses: process 1: not PHP");
	assert_int_equal(ask_once(&missing, TIMEOUT_NS, &result, NULL, why), CLIENT_E_NOT_FOUND);
	assert_string_equal(why, "no pool \"x\"; there are: www");
	assert_int_equal(ask_once(&full, TIMEOUT_NS, &result, NULL, why), CLIENT_E_REFUSED);
	assert_non_null(strstr(why, "64 are open"));
	assert_null(result);
}

static void who_is_not_the_daemon_is_not_believed(void **state)
{
	static const struct {
		const char *greeting, *answer;
	} cases[] = {
		{"220 mail.example.org ESMTP\n", NULL},
		{"{\"hello\":\"redis\",\"version\":\"7\"}\n", NULL},
		{"{\"hello\":\"cbox-profd\",\"version\":\"9\",\"protocols\":[2,3]}\n", NULL},
		{"[]\n", NULL},
		{HELLO, "garbage\n"},
		{HELLO, "{\"id\":2,\"ok\":true,\"result\":{}}\n"},
		{HELLO, "{\"id\":1,\"ok\":true}\n"},
		{HELLO, "{\"id\":1,\"more\":false,\"chunk\":\"{\\\"ok\\\":tr\"}\n"},
		{HELLO, "{\"id\":1,\"more\":false,\"chunk\":\"\"}\n"},
		{HELLO, ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct server server = {.greeting = cases[i].greeting, .answer = cases[i].answer};
		cJSON *result = NULL;
		char why[512];

		assert_int_equal(ask_once(&server, TIMEOUT_NS, &result, NULL, why), CLIENT_E_NO_DAEMON);
		assert_non_null(strstr(why, server.path));
		assert_null(result);
	}
}

/* A string without an end behind the object, and a key whose escape only the parser sees through: looking for
 * the result's text ran on past the end of the answer. */
static void what_stands_behind_the_answer_is_not_read(void **state)
{
	struct server server = {
		.greeting = HELLO, .answer = "{\"id\":1,\"ok\":true,\"re\\u0073ult\":{}} \"no end\n"};
	cJSON *result = NULL;
	char *text = NULL, why[512];

	assert_int_equal(ask_once(&server, TIMEOUT_NS, &result, &text, why), CLIENT_E_NO_DAEMON);
	assert_null(text);
	assert_null(result);
}

static void a_silent_daemon_costs_no_more_than_the_time_allowed(void **state)
{
	struct server no_greeting = {0};
	struct server no_answer = {.greeting = HELLO};
	cJSON *result = NULL;
	char why[512];

	assert_int_equal(ask_once(&no_greeting, SHORT_TIMEOUT_NS, &result, NULL, why), CLIENT_E_NO_DAEMON);
	assert_non_null(strstr(why, "did not answer within 0.1 s: a daemon that hangs, or another program"));
	assert_int_equal(ask_once(&no_answer, SHORT_TIMEOUT_NS, &result, NULL, why), CLIENT_E_NO_DAEMON);
	assert_non_null(strstr(why, "the daemon is there but did not answer"));
}

static void a_line_without_end_is_given_up(void **state)
{
	char *endless = malloc(CLIENT_MAX_LINE_BYTES + 200000);
	cJSON *result = NULL;
	char why[512];

	memset(endless, 'x', CLIENT_MAX_LINE_BYTES + 200000 - 1);
	endless[CLIENT_MAX_LINE_BYTES + 200000 - 1] = 0;
	struct server server = {.greeting = HELLO, .answer = endless};
	assert_int_equal(ask_once(&server, TIMEOUT_NS, &result, NULL, why), CLIENT_E_NO_DAEMON);
	assert_non_null(strstr(why, "without end"));
	free(endless);
}

static void where_nobody_listens_the_path_is_named(void **state)
{
	struct daemon_client *client = NULL;
	char why[512], far[200];

	assert_int_equal(daemon_client_open("/nowhere/profd.sock", TIMEOUT_NS, &client, why, sizeof(why)),
		CLIENT_E_NO_DAEMON);
	assert_non_null(strstr(why, "/nowhere/profd.sock"));
	memset(far, 'x', sizeof(far) - 1);
	far[sizeof(far) - 1] = 0;
	assert_int_equal(daemon_client_open(far, TIMEOUT_NS, &client, why, sizeof(why)), CLIENT_E_BAD_PATH);
	assert_non_null(strstr(why, "at most 107 bytes"));
	assert_null(client);
}

static void the_environment_names_the_socket_unless_the_option_does(void **state)
{
	setenv(CLIENT_PATH_VARIABLE, "/tmp/other.sock", 1);
	assert_string_equal(daemon_client_path(NULL), "/tmp/other.sock");
	assert_string_equal(daemon_client_path("/tmp/mine.sock"), "/tmp/mine.sock");
	setenv(CLIENT_PATH_VARIABLE, "", 1);
	assert_string_equal(daemon_client_path(NULL), CLIENT_DEFAULT_PATH);
	unsetenv(CLIENT_PATH_VARIABLE);
	assert_string_equal(daemon_client_path(NULL), CLIENT_DEFAULT_PATH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_arrives_with_all_its_digits),
		cmocka_unit_test(an_answer_in_pieces_is_put_together),
		cmocka_unit_test(an_error_is_passed_on_with_its_name),
		cmocka_unit_test(who_is_not_the_daemon_is_not_believed),
		cmocka_unit_test(what_stands_behind_the_answer_is_not_read),
		cmocka_unit_test(a_silent_daemon_costs_no_more_than_the_time_allowed),
		cmocka_unit_test(a_line_without_end_is_given_up),
		cmocka_unit_test(where_nobody_listens_the_path_is_named),
		cmocka_unit_test(the_environment_names_the_socket_unless_the_option_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
