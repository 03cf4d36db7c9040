/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <cmocka.h>

#include "daemon/export/export.h"
#include "fake_engine.h"
#include "service_fixture.h"

#define MILLISECOND_NS UINT64_C(1000000)

static void requests_in_one_packet_are_answered_in_order(void **state)
{
	int fd;

	fixture_start();
	fd = connected();
	say(fd, "{\"verb\":\"reset\",\"id\":1}\n{\"verb\":\"nonsense\",\"id\":2}\nrubbish\n{\"verb\":"
		"\"reset\",\"id\":4}\n");
	assert_next_line(fd, "{\"id\":1,\"ok\":true,\"result\":{\"affected\":3}}");
	assert_next_line(fd, "{\"id\":2,\"ok\":false,\"error\":\"unknown_verb\",");
	assert_next_line(fd, "{\"ok\":false,\"error\":\"bad_json\",");
	assert_next_line(fd, "{\"id\":4,\"ok\":true,");
	close(fd);
}

static void answers_keep_the_order_of_requests_though_orders_come_back_late(void **state)
{
	int fd;

	fake.holding = true;
	fixture_start();
	fd = connected();
	/* The first needs three orders, which come back last first; the second needs none. */
	say(fd, "{\"verb\":\"status\",\"id\":1}\n{\"verb\":\"nonsense\",\"id\":2}\n{\"verb\":\"reset\","
		"\"id\":3}\n");
	fake_wait_held(3);
	assert_int_equal(fake.submitted, 3);
	fake_let_go();
	assert_next_line(fd, "{\"id\":1,\"ok\":true,");
	assert_next_line(fd, "{\"id\":2,\"ok\":false,");
	assert_next_line(fd, "{\"id\":3,\"ok\":true,");
	close(fd);
}

static void a_client_that_waits_keeps_no_other_waiting(void **state)
{
	int waiting, other;

	fake.holding = true;
	fixture_start();
	waiting = connected();
	say(waiting, "{\"verb\":\"reset\"}\n");
	fake_wait_held(1);
	other = connected();
	say(other, "{\"verb\":\"nonsense\"}\n");
	assert_next_line(other, "{\"ok\":false,\"error\":\"unknown_verb\",");
	fake_let_go();
	assert_next_line(waiting, "{\"ok\":true,");
	close(waiting);
	close(other);
}

static void of_long_answers_a_user_gets_one_at_a_time(void **state)
{
	int clients[4], leaver, worker;

	fake.holding = true;
	fixture_start();
	for (int i = 0; i < 4; i++) {
		clients[i] = connected();
		say(clients[i], "{\"verb\":\"profile\"}\n");
	}
	leaver = connected();
	say(leaver, "{\"verb\":\"top\"}\n");
	fake_wait_held(1);
	/* What is short goes past them. */
	worker = connected();
	say(worker, "{\"verb\":\"finish\"}\n");
	fake_wait_held(2);
	assert_int_equal(fake.submitted, 2);
	close(leaver);
	fake_let_go();
	for (int i = 0; i < 4; i++) {
		assert_next_line(clients[i], "{\"ok\":true,\"result\":{\"sample_count\":3,");
		close(clients[i]);
	}
	close(worker);
	/* Who had left was not asked for. */
	assert_int_equal(fake.submitted, 5);
}

static void a_finish_does_not_wait_for_a_long_answer_that_is_being_written(void **state)
{
	struct pollfd arrival = {.events = POLLIN};
	int worker;

	/* A profile of 10 MB. */
	fake.profile_functions = 100000;
	fixture.options.max_pending_bytes = 64 << 20;
	fixture_start();
	arrival.fd = connected();
	worker = connected();
	say(arrival.fd, "{\"verb\":\"profile\"}\n");
	for (int i = 0; i < 5; i++) {
		say(worker, "{\"verb\":\"finish\"}\n");
		assert_next_line(worker, "{\"ok\":true,");
	}
	assert_int_equal(poll(&arrival, 1, 0), 0);
	assert_next_line(arrival.fd, "{\"more\":true,");
	close(arrival.fd);
	close(worker);
}

static void a_request_may_come_byte_by_byte(void **state)
{
	const char *request = "{\"verb\":\"reset\"}\r\n";
	int fd;

	fixture_start();
	fd = connected();
	for (const char *at = request; *at; at++)
		assert_int_equal(send(fd, at, 1, MSG_NOSIGNAL), 1);
	assert_next_line(fd, "{\"ok\":true,");
	close(fd);
}

static void who_has_finished_sending_still_gets_all_answers(void **state)
{
	int fd;

	fake.holding = true;
	fixture_start();
	fd = connected();
	say(fd, "{\"verb\":\"reset\",\"id\":1}\n{\"verb\":\"reset\",\"id\":2}\n");
	shutdown(fd, SHUT_WR);
	fake_wait_held(1);
	fake_let_go();
	assert_next_line(fd, "{\"id\":1,\"ok\":true,");
	assert_next_line(fd, "{\"id\":2,\"ok\":true,");
	assert_closed(fd);
}

static void half_a_line_at_the_end_is_no_request(void **state)
{
	int fd;

	fixture_start();
	fd = connected();
	say(fd, "{\"verb\":\"reset\",\"id\":1}\n{\"verb\":\"reset\"}");
	shutdown(fd, SHUT_WR);
	assert_next_line(fd, "{\"id\":1,\"ok\":true,");
	assert_closed(fd);
	assert_int_equal(fake.submitted, 1);
}

static void say_a_line_of(int fd, size_t bytes)
{
	char *line = malloc(bytes + 2);
	int length = sprintf(line, "{\"verb\":\"reset\"}");

	memset(line + length, ' ', bytes - (size_t)length);
	strcpy(line + bytes, "\n");
	say(fd, line);
	free(line);
}

static void a_line_may_be_as_long_as_allowed_and_not_a_byte_longer(void **state)
{
	int fd;

	fixture.options.max_line_bytes = 5000;
	fixture_start();
	fd = connected();
	say_a_line_of(fd, 5000);
	assert_next_line(fd, "{\"ok\":true,");
	say_a_line_of(fd, 4999);
	assert_next_line(fd, "{\"ok\":true,");
	say_a_line_of(fd, 5001);
	assert_next_line(fd, "{\"ok\":false,\"error\":\"line_too_long\",");
	assert_closed(fd);
}

static void a_line_without_end_is_answered_and_closed(void **state)
{
	char noise[4096];
	ssize_t sent;
	int fd;

	memset(noise, 'x', sizeof(noise));
	fixture_start();
	fd = connected();
	do
		sent = send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
	while (sent > 0);
	assert_true(errno == EPIPE || errno == ECONNRESET);
	assert_next_line(fd, "{\"ok\":false,\"error\":\"line_too_long\",");
	assert_closed(fd);
}

static void answers_to_earlier_requests_come_before_line_too_long(void **state)
{
	int fd;

	fixture.options.max_line_bytes = 100;
	fake.holding = true;
	fixture_start();
	fd = connected();
	say(fd, "{\"verb\":\"reset\"}\n");
	say_a_line_of(fd, 101);
	fake_wait_held(1);
	fake_let_go();
	assert_next_line(fd, "{\"ok\":true,");
	assert_next_line(fd, "{\"ok\":false,\"error\":\"line_too_long\",");
	assert_closed(fd);
}

static void who_asks_too_often_is_told_and_may_go_on_later(void **state)
{
	int fd;

	/* One comes back after 100 ms. */
	fixture.options.requests_per_second_per_uid = 10;
	fixture_start();
	fd = connected();
	for (int i = 0; i < 12; i++)
		say(fd, "{\"verb\":\"reset\",\"id\":7}\n");
	for (int i = 0; i < 10; i++)
		assert_next_line(fd, "{\"id\":7,\"ok\":true,");
	assert_next_line(fd, "{\"id\":7,\"ok\":false,\"error\":\"rate_limited\",\"message\":\"uid ");
	assert_next_line(fd, "{\"id\":7,\"ok\":false,\"error\":\"rate_limited\",");
	for (;;) {
		char *line;
		bool answered;

		say(fd, "{\"verb\":\"reset\"}\n");
		line = read_line(fd);
		assert_non_null(line);
		answered = strstr(line, "\"ok\":true") != NULL;
		free(line);
		if (answered)
			break;
	}
	close(fd);
}

static void a_thousand_connections_are_welcomed_or_turned_away(void **state)
{
	int fds[1000], welcomed = 0, turned_away = 0;

	fixture_start();
	for (int i = 0; i < 1000; i++) {
		fds[i] = try_to_connect();
		assert_true(fds[i] >= 0);
	}
	for (int i = 0; i < 1000; i++) {
		char *line = read_line(fds[i]);

		assert_non_null(line);
		if (strstr(line, "\"hello\"")) {
			welcomed++;
		} else {
			assert_non_null(strstr(line, "\"error\":\"too_many_connections\""));
			turned_away++;
			assert_closed(fds[i]);
			fds[i] = -1;
		}
		free(line);
	}
	/* max_clients_per_uid */
	assert_int_equal(welcomed, 32);
	assert_int_equal(turned_away, 968);
	for (int i = 0; i < 1000; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	/* The quota is free again when the service has seen them go. */
	for (;;) {
		int fd = try_to_connect();
		char *line = read_line(fd);
		bool hello = strstr(line, "\"hello\"") != NULL;

		free(line);
		close(fd);
		if (hello)
			break;
	}
}

static void root_gets_in_when_others_hold_all_connections(void **state)
{
	int fd;
	char *line;

	if (geteuid() != 0)
		skip();
	fixture.options.max_clients = 1;
	fixture_start();
	fd = connected();
	line = ask_as(WWW_DATA, WWW_DATA, 0, NULL);
	assert_non_null(strstr(line, "\"error\":\"too_many_connections\""));
	free(line);
	close(connected());
	close(fd);
}

static void running_out_of_descriptors_only_delays_the_next_client(void **state)
{
	struct rlimit limit, low;
	int first, second, room;
	struct rusage before, after;

	fixture_start();
	first = connected();
	second = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	room = open("/dev/null", O_RDONLY);
	close(room);
	getrlimit(RLIMIT_NOFILE, &limit);
	low = (struct rlimit){(rlim_t)room, limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);

	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, fixture.options.path, sizeof(address.sun_path));
	assert_int_equal(connect(second, (struct sockaddr *)&address, sizeof(address)), 0);
	getrusage(RUSAGE_SELF, &before);
	/* Nothing can be accepted for half a second; the client who is there is served all the same. */
	for (int i = 0; i < 5; i++) {
		say(first, "{\"verb\":\"reset\"}\n");
		assert_next_line(first, "{\"ok\":true,");
		usleep(100000);
	}
	getrusage(RUSAGE_SELF, &after);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_next_line(second, "{\"hello\"");
	/* A loop that spins would have used it all. */
	assert_true((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 + after.ru_utime.tv_usec -
			    before.ru_utime.tv_usec +
			    (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
			    after.ru_stime.tv_usec - before.ru_stime.tv_usec <
		    100000);
	close(first);
	close(second);
}

static void a_client_that_never_reads_is_closed_when_too_much_waits_for_it(void **state)
{
	ssize_t sent;
	int fd, other;

	fixture.options.max_pending_bytes = 100000;
	fixture_start();
	fd = connected();
	fcntl(fd, F_SETFL, O_NONBLOCK);
	do {
		sent = send(fd, "{\"verb\":\"status\"}\n", 18, MSG_NOSIGNAL);
		if (sent < 0 && errno == EAGAIN)
			usleep(1000);
	} while (sent > 0 || errno == EAGAIN);
	assert_true(errno == EPIPE || errno == ECONNRESET);
	close(fd);
	other = connected();
	say(other, "{\"verb\":\"reset\"}\n");
	assert_next_line(other, "{\"ok\":true,");
	close(other);
}

static void an_answer_larger_than_may_wait_is_an_error(void **state)
{
	int fd;

	fixture.options.max_pending_bytes = 10000;
	fake.profile_functions = 1000;
	fixture_start();
	fd = connected();
	say(fd, "{\"verb\":\"profile\",\"id\":1}\n{\"verb\":\"reset\",\"id\":2}\n");
	assert_next_line(fd, "{\"id\":1,\"ok\":false,\"error\":\"limit\",");
	assert_next_line(fd, "{\"id\":2,\"ok\":true,");
	close(fd);
}

static void a_large_profile_comes_in_pieces_that_join_to_the_answer(void **state)
{
	struct text whole = {0};
	bool more = true;
	unsigned pieces = 0;
	cJSON *answer, *result;
	int fd;

	fake.profile_functions = 20000;
	fixture_start();
	fd = connected();
	say(fd, "{\"verb\":\"profile\",\"id\":\"p\"}\n");
	for (; more; pieces++) {
		char *line = read_line(fd);
		cJSON *piece = cJSON_Parse(line);

		assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(piece, "id")), "p");
		more = cJSON_IsTrue(cJSON_GetObjectItem(piece, "more"));
		text_append(&whole, "%s", cJSON_GetStringValue(cJSON_GetObjectItem(piece, "chunk")));
		cJSON_Delete(piece);
		free(line);
	}
	assert_true(pieces > 4);
	answer = cJSON_Parse(whole.bytes);
	result = cJSON_GetObjectItem(answer, "result");
	assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(result, "sample_count")), 20000);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(result, "nodes")), 20001);
	assert_string_equal(
		cJSON_GetStringValue(cJSON_GetObjectItem(
			cJSON_GetArrayItem(cJSON_GetObjectItem(result, "frames"), 20000), "function")),
		"Kl\xc3\xa4sse::m\xe2\x82\xact\xf0\x9f\x90\x98hode");
	cJSON_Delete(answer);
	text_free(&whole);
	/* and the connection is as good as before */
	say(fd, "{\"verb\":\"reset\"}\n");
	assert_next_line(fd, "{\"ok\":true,");
	close(fd);
}

static void a_silent_client_is_closed(void **state)
{
	int fd;

	fixture.options.idle_timeout_ns = 50 * MILLISECOND_NS;
	fixture_start();
	fd = connected();
	assert_closed(fd);
}

static void a_client_that_dribbles_is_closed_as_if_silent(void **state)
{
	int fd;
	unsigned sent = 0;

	fixture.options.idle_timeout_ns = 100 * MILLISECOND_NS;
	fixture_start();
	fd = connected();
	/* A byte every 10 ms, for at most ten times the time allowed. */
	while (sent < 100 && send(fd, " ", 1, MSG_NOSIGNAL) == 1) {
		sent++;
		usleep(10000);
	}
	assert_in_range(sent, 1, 50);
	assert_closed(fd);
}

static void a_client_whose_answer_is_slow_is_not_silent(void **state)
{
	int fd;

	fixture.options.idle_timeout_ns = 200 * MILLISECOND_NS;
	fake.holding = true;
	fixture_start();
	fd = connected();
	say(fd, "{\"verb\":\"reset\"}\n");
	fake_wait_held(1);
	usleep(500000);
	fake_let_go();
	assert_next_line(fd, "{\"ok\":true,");
	assert_closed(fd);
}

static void an_order_whose_client_has_left_is_freed(void **state)
{
	int fd, other;

	fake.holding = true;
	fixture_start();
	fd = connected();
	say(fd, "{\"verb\":\"status\"}\n");
	fake_wait_held(3);
	close(fd);
	/* When another is served, the departure has been seen. */
	other = connected();
	say(other, "{\"verb\":\"nonsense\"}\n");
	assert_next_line(other, "{\"ok\":false,");
	fake_let_go();
	say(other, "{\"verb\":\"reset\"}\n");
	assert_next_line(other, "{\"ok\":true,");
	close(other);
}

static void stopping_answers_what_was_asked(void **state)
{
	int idle, busy;

	fake.holding = true;
	fixture_start();
	idle = connected();
	busy = connected();
	say(busy, "{\"verb\":\"reset\",\"id\":1}\n{\"verb\":\"reset\",\"id\":2}\n");
	fake_wait_held(1);
	service_stop(fixture.service);
	assert_closed(idle);
	fake_let_go();
	assert_next_line(busy, "{\"id\":1,\"ok\":true,");
	assert_next_line(busy, "{\"id\":2,\"ok\":true,");
	assert_closed(busy);
	fixture_stop();
	assert_int_equal(access(fixture.options.path, F_OK), -1);
}

static void stopping_waits_a_second_for_an_engine_that_does_not_answer(void **state)
{
	struct timespec begin, end;
	int fd;

	fake.holding = true;
	fixture_start();
	fd = connected();
	say(fd, "{\"verb\":\"reset\",\"id\":1}\n");
	fake_wait_held(1);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	fixture_stop();
	clock_gettime(CLOCK_MONOTONIC, &end);
	assert_next_line(fd, "{\"id\":1,\"ok\":false,\"error\":\"stopping\",");
	assert_closed(fd);
	assert_in_range(
		(end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000, 900, 1900);
}

static void new_limits_hold_for_those_who_are_connected(void **state)
{
	struct service_options options;
	int fd;

	fixture_start();
	fd = connected();
	options = fixture.options;
	options.max_line_bytes = 100;
	service_reconfigure(fixture.service, &options);
	/* A round trip on another connection: the service has woken up since. */
	close(connected());
	say_a_line_of(fd, 101);
	assert_next_line(fd, "{\"ok\":false,\"error\":\"line_too_long\",");
	assert_closed(fd);
}

static void a_service_that_can_not_listen_says_why(void **state)
{
	const struct service_hooks hooks = {.reload = fixture_reload};
	struct service *service = NULL;
	char why[256];

	strcpy(fixture.options.path, "profd.sock");
	assert_int_equal(
		service_new(&fixture.options, &hooks, &fake, -1, &service, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "profd.sock: not an absolute path");
	assert_null(service);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(requests_in_one_packet_are_answered_in_order),
		TEST(answers_keep_the_order_of_requests_though_orders_come_back_late),
		TEST(a_client_that_waits_keeps_no_other_waiting),
		TEST(of_long_answers_a_user_gets_one_at_a_time),
		TEST(a_finish_does_not_wait_for_a_long_answer_that_is_being_written),
		TEST(a_request_may_come_byte_by_byte),
		TEST(who_has_finished_sending_still_gets_all_answers),
		TEST(half_a_line_at_the_end_is_no_request),
		TEST(a_line_may_be_as_long_as_allowed_and_not_a_byte_longer),
		TEST(a_line_without_end_is_answered_and_closed),
		TEST(answers_to_earlier_requests_come_before_line_too_long),
		TEST(who_asks_too_often_is_told_and_may_go_on_later),
		TEST(a_thousand_connections_are_welcomed_or_turned_away),
		TEST(root_gets_in_when_others_hold_all_connections),
		TEST(running_out_of_descriptors_only_delays_the_next_client),
		TEST(a_client_that_never_reads_is_closed_when_too_much_waits_for_it),
		TEST(an_answer_larger_than_may_wait_is_an_error),
		TEST(a_large_profile_comes_in_pieces_that_join_to_the_answer),
		TEST(a_silent_client_is_closed),
		TEST(a_client_that_dribbles_is_closed_as_if_silent),
		TEST(a_client_whose_answer_is_slow_is_not_silent),
		TEST(an_order_whose_client_has_left_is_freed),
		TEST(stopping_answers_what_was_asked),
		TEST(stopping_waits_a_second_for_an_engine_that_does_not_answer),
		TEST(new_limits_hold_for_those_who_are_connected),
		TEST(a_service_that_can_not_listen_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
