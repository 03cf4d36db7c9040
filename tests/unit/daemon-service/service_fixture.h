/* SPDX-License-Identifier: MIT
 *
 * A service on a real socket in a thread of its own, and clients for it. Include after cmocka.h and
 * fake_engine.h.
 */
#pragma once

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/service/service.h"

#define READER_GROUP 4242u
#define ADMIN_GROUP 4343u

struct fixture {
	char directory[64];
	struct service_options options;
	struct service *service;
	pthread_t thread;
	bool running;
	int reloads;
	int reload_error;
};

static struct fixture fixture;

static inline int fixture_reload(void *context, char *ret_why, size_t why_bytes)
{
	fixture.reloads++;
	snprintf(ret_why, why_bytes, "cbox-profd.yaml:3:1: sampling: unknown key");
	return fixture.reload_error;
}

static inline void *fixture_thread(void *service)
{
	return (void *)(intptr_t)service_run(service);
}

/* Makes the service with fixture.options and runs it. */
static inline void fixture_start(void)
{
	const struct service_hooks hooks = {.reload = fixture_reload};
	char why[256];

	if (service_new(&fixture.options, &hooks, &fake, -1, &fixture.service, why, sizeof(why)) < 0)
		fail_msg("%s", why);
	pthread_create(&fixture.thread, NULL, fixture_thread, fixture.service);
	fixture.running = true;
}

static inline void fixture_stop(void)
{
	void *result;

	if (!fixture.running)
		return;
	service_stop(fixture.service);
	pthread_join(fixture.thread, &result);
	fixture.running = false;
	assert_null(result);
	fake_let_go();
	service_free(fixture.service);
}

static inline int fixture_set_up(void **state)
{
	fixture = (struct fixture){
		.options = {.group = READER_GROUP,
			.admin_group = ADMIN_GROUP,
			.mode = 0666,
			.max_clients = 64,
			.max_clients_per_uid = 32,
			.requests_per_second_per_uid = 100000,
			.max_line_bytes = 65536,
			.max_pending_bytes = 4 << 20,
			.idle_timeout_ns = UINT64_C(60000000000),
			.sampling = {.period_ns = 10000000, .max_depth = 512, .max_targets = 128}},
	};
	fake.holding = false;
	fake.held_count = fake.submitted = 0;
	fake.worker_uid = geteuid();
	fake.profile_functions = 3;
	strcpy(fixture.directory, "/tmp/cbox-service-XXXXXX");
	if (!mkdtemp(fixture.directory) || chmod(fixture.directory, 0755) < 0)
		return -1;
	snprintf(fixture.options.path, sizeof(fixture.options.path), "%s/profd.sock", fixture.directory);
	return 0;
}

static inline int fixture_tear_down(void **state)
{
	fixture_stop();
	rmdir(fixture.directory);
	return 0;
}

/* A client; -1 with errno. Reads and writes give up after five seconds. */
static inline int try_to_connect(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = 5};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	memcpy(address.sun_path, fixture.options.path, sizeof(address.sun_path));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* One line without its end; the caller frees. "" when the connection was closed, NULL when nothing came in
 * time. */
static inline char *read_line(int fd)
{
	size_t length = 0, room = 4096;
	char *line = malloc(room);

	for (;;) {
		ssize_t count = read(fd, line + length, 1);

		if (count < 0 && errno != ECONNRESET) {
			free(line);
			return NULL;
		}
		if (count <= 0 || line[length] == '\n')
			break;
		if (++length == room)
			line = realloc(line, room *= 2);
	}
	line[length] = 0;
	return line;
}

static inline int connected(void)
{
	int fd = try_to_connect();
	char *hello;

	assert_true(fd >= 0);
	hello = read_line(fd);
	assert_non_null(hello);
	assert_non_null(strstr(hello, "{\"hello\":\"cbox-profd\""));
	free(hello);
	return fd;
}

static inline void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static inline void assert_next_line(int fd, const char *beginning)
{
	char *line = read_line(fd);

	if (!line || strncmp(line, beginning, strlen(beginning)) != 0)
		fail_msg("got %s, not %s", line ? line : "nothing in time", beginning);
	free(line);
}

static inline void assert_closed(int fd)
{
	char byte;
	ssize_t count = read(fd, &byte, 1);

	if (count > 0 || (count < 0 && errno != ECONNRESET))
		fail_msg("the connection is still open");
	close(fd);
}

/* Asks on a connection of its own: the result's text, or the error's name. The caller frees. */
static inline char *ask(const char *request, bool *ret_ok)
{
	const char *ok = "{\"ok\":true,\"result\":", *error = "{\"ok\":false,\"error\":\"";
	int fd = connected();
	char *line, *answer;

	say(fd, request);
	say(fd, "\n");
	line = read_line(fd);
	close(fd);
	assert_non_null(line);
	*ret_ok = strncmp(line, ok, strlen(ok)) == 0;
	if (*ret_ok) {
		answer = strndup(line + strlen(ok), strlen(line) - strlen(ok) - 1);
	} else {
		assert_memory_equal(line, error, strlen(error));
		answer = strndup(line + strlen(error), strcspn(line + strlen(error), "\""));
	}
	free(line);
	return answer;
}

static inline void assert_error(const char *request, const char *name)
{
	bool ok;
	char *error = ask(request, &ok);

	if (ok || strcmp(error, name) != 0)
		fail_msg("%s: %s", request, error);
	free(error);
}

static inline void assert_answer(const char *request, const char *expected)
{
	bool ok;
	char *result = ask(request, &ok);

	assert_string_equal(result, expected);
	free(result);
}

/* What a process of this user is answered to @request; NULL: what it is greeted with. */
static inline char *ask_as(uid_t uid, gid_t gid, gid_t supplementary, const char *request)
{
	int answer[2], status;
	char *line;
	pid_t child;

	assert_int_equal(pipe(answer), 0);
	child = fork();
	if (child == 0) {
		int fd;

		if (setgroups(supplementary ? 1 : 0, &supplementary) || setresgid(gid, gid, gid) ||
			setresuid(uid, uid, uid))
			_exit(1);
		fd = try_to_connect();
		if (fd < 0)
			_exit(2);
		line = read_line(fd);
		if (request) {
			free(line);
			say(fd, request);
			say(fd, "\n");
			line = read_line(fd);
		}
		if (!line || write(answer[1], line, strlen(line)) < 0)
			_exit(3);
		_exit(0);
	}
	close(answer[1]);
	line = read_line(answer[0]);
	close(answer[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return line;
}
