/* SPDX-License-Identifier: MIT
 *
 * The service manager's two protocols, against a datagram socket and descriptors of the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/service/activation.h"
#include "daemon/service/notify.h"

static char path[64];
static char said[1024];

/* A manager's socket at @name; @bytes of sun_path belong to it. */
static int manager_at(const char *name, size_t bytes)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	memcpy(address.sun_path, name, bytes);
	assert_int_equal(bind(fd, (struct sockaddr *)&address,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + bytes)),
		0);
	return fd;
}

/* What was said last; "" when nothing was. */
static const char *heard(int fd)
{
	ssize_t bytes = recv(fd, said, sizeof(said) - 1, 0);

	said[bytes < 0 ? 0 : bytes] = '\0';
	return said;
}

static int new_path(void **state)
{
	snprintf(path, sizeof(path), "/tmp/test-notify-%d", getpid());
	unlink(path);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return 0;
}

static int remove_path(void **state)
{
	unlink(path);
	return 0;
}

static void without_a_manager_nobody_is_told_and_nothing_fails(void **state)
{
	struct notify notify;

	assert_int_equal(notify_open(&notify), 0);
	assert_int_equal(notify.fd, -1);
	assert_int_equal(notify.watchdog_ns, 0);
	assert_int_equal(notify_ready(&notify, "x"), 0);
	assert_int_equal(notify_watchdog(&notify), 0);
	notify_close(&notify);
}

static void the_manager_is_told_of_start_reload_and_end(void **state)
{
	int manager = manager_at(path, strlen(path));
	struct timespec now;
	struct notify notify;
	uint64_t usec, now_usec;

	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(notify_open(&notify), 0);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_int_equal(fcntl(notify.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(notify_ready(&notify, "Sampling"), 0);
	assert_string_equal(heard(manager), "READY=1\nSTATUS=Sampling");
	assert_int_equal(notify_reloading(&notify), 0);
	assert_int_equal(sscanf(heard(manager), "RELOADING=1\nMONOTONIC_USEC=%" SCNu64, &usec), 1);
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_usec = (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
	assert_in_range(usec, now_usec - 10000000, now_usec);
	assert_int_equal(notify_watchdog(&notify), 0);
	assert_string_equal(heard(manager), "WATCHDOG=1");
	assert_int_equal(notify_stopping(&notify), 0);
	assert_string_equal(heard(manager), "STOPPING=1");
	assert_string_equal(heard(manager), "");
	notify_close(&notify);
	close(manager);
}

static void an_abstract_address_is_taken_to_its_last_byte(void **state)
{
	char name[64];
	struct notify notify;
	int manager;

	snprintf(name, sizeof(name), "@test-notify-%d", getpid());
	setenv("NOTIFY_SOCKET", name, 1);
	name[0] = '\0';
	manager = manager_at(name, 1 + strlen(name + 1));
	assert_int_equal(notify_open(&notify), 0);
	assert_int_equal(notify_ready(&notify, "here"), 0);
	assert_string_equal(heard(manager), "READY=1\nSTATUS=here");
	notify_close(&notify);
	close(manager);
}

static void an_address_that_is_none_is_refused_and_nobody_is_told(void **state)
{
	char longest[200];
	struct notify notify;

	memset(longest, 'x', sizeof(longest));
	longest[0] = '/';
	longest[108] = '\0';
	setenv("NOTIFY_SOCKET", longest, 1);
	assert_int_equal(notify_open(&notify), -EINVAL);
	setenv("NOTIFY_SOCKET", "/", 1);
	assert_int_equal(notify_open(&notify), -EINVAL);
	setenv("NOTIFY_SOCKET", "vsock:2:1234", 1);
	assert_int_equal(notify_open(&notify), -EPROTONOSUPPORT);
	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(notify_open(&notify), -ENOENT);
	assert_null(getenv("NOTIFY_SOCKET"));
	assert_int_equal(notify.fd, -1);
	assert_int_equal(notify_ready(&notify, "x"), 0);
}

static void the_watchdog_is_ours_when_it_names_us_or_nobody(void **state)
{
	int manager = manager_at(path, strlen(path));
	struct notify notify;
	char pid[16];
	const struct {
		const char *usec, *pid;
		uint64_t ns;
	} cases[] = {
		{"30000000", NULL, 30000000000},
		{"200000", pid, 200000000},
		{"200000", "1", 0},
		{"many", NULL, 0},
		{"-1", NULL, 0},
		{"99999999999999999999999", NULL, 0},
		{"18446744073709551615", NULL, 0},
		{"", NULL, 0},
	};

	snprintf(pid, sizeof(pid), "%d", getpid());
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setenv("NOTIFY_SOCKET", path, 1);
		setenv("WATCHDOG_USEC", cases[i].usec, 1);
		if (cases[i].pid)
			setenv("WATCHDOG_PID", cases[i].pid, 1);
		assert_int_equal(notify_open(&notify), 0);
		assert_int_equal(notify.watchdog_ns, cases[i].ns);
		assert_null(getenv("WATCHDOG_USEC"));
		assert_null(getenv("WATCHDOG_PID"));
		notify_close(&notify);
	}
	close(manager);
}

static void without_a_manager_there_is_no_watchdog(void **state)
{
	struct notify notify;

	setenv("WATCHDOG_USEC", "30000000", 1);
	assert_int_equal(notify_open(&notify), 0);
	assert_int_equal(notify.watchdog_ns, 0);
}

static void a_manager_that_does_not_read_holds_nobody_up_for_ever(void **state)
{
	int manager = manager_at(path, strlen(path));
	struct notify notify;
	int r = 0;

	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(notify_open(&notify), 0);
	for (int i = 0; i < 10000 && r == 0; i++)
		r = notify_watchdog(&notify);
	assert_int_equal(r, -EAGAIN);
	notify_close(&notify);
	close(manager);
}

/* Runs @test in a process whose descriptors from 3 upwards are the test's own, @count of them listening
 * sockets. */
static void with_descriptors(int count, void (*test)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char text[16];

		for (int fd = 3; fd < 64; fd++)
			close(fd);
		for (int i = 0; i < count; i++) {
			if (socket(AF_UNIX, SOCK_STREAM, 0) != 3 + i)
				_exit(2);
		}
		snprintf(text, sizeof(text), "%d", getpid());
		setenv("LISTEN_PID", text, 1);
		snprintf(text, sizeof(text), "%d", count);
		setenv("LISTEN_FDS", text, 1);
		test();
		_exit(getenv("LISTEN_PID") || getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES") ? 3 : 0);
	}
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void expect(bool is_so)
{
	if (!is_so)
		_exit(1);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void take_the_only_one(void)
{
	char why[256];
	int fd = -1;

	expect(activation_take(&fd, why, sizeof(why)) == 0);
	expect(fd == 3 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
	/* Once taken, it is not there a second time. */
	expect(activation_take(&fd, why, sizeof(why)) == 0 && fd == -1);
}

static void a_single_socket_is_ours_whatever_it_is_called(void **state)
{
	with_descriptors(1, take_the_only_one);
}

static void take_the_second(void)
{
	char why[256];
	int fd = -1;

	setenv("LISTEN_FDNAMES", "cbox-profd.socket.old:cbox-profd.socket:other", 1);
	expect(activation_take(&fd, why, sizeof(why)) == 0);
	expect(fd == 4 && is_open(4) && !is_open(3) && !is_open(5));
}

static void of_several_sockets_the_named_one_is_ours_and_the_others_are_closed(void **state)
{
	with_descriptors(3, take_the_second);
}

static void take_none_of_two(void)
{
	char why[256] = "";
	int fd = 77;

	setenv("LISTEN_FDNAMES", "a:b", 1);
	expect(activation_take(&fd, why, sizeof(why)) == -EINVAL);
	expect(fd == 77 && !is_open(3) && !is_open(4));
	expect(strcmp(why, "2 sockets were passed and none is called cbox-profd.socket; give its socket unit "
			   "FileDescriptorName=cbox-profd.socket") == 0);
}

static void several_sockets_of_which_none_is_named_are_refused(void **state)
{
	with_descriptors(2, take_none_of_two);
}

static void take_what_is_another_process(void)
{
	char why[256];
	int fd = 77;

	setenv("LISTEN_PID", "1", 1);
	expect(activation_take(&fd, why, sizeof(why)) == 0);
	expect(fd == -1 && is_open(3));
}

static void sockets_for_another_process_are_left_alone(void **state)
{
	with_descriptors(1, take_what_is_another_process);
}

static void take_nonsense(void)
{
	const char *counts[] = {"-1", "many", "", "1000000", "1x"};
	char why[256], pid[16];
	int fd = 77;

	snprintf(pid, sizeof(pid), "%d", getpid());
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		setenv("LISTEN_PID", pid, 1);
		setenv("LISTEN_FDS", counts[i], 1);
		expect(activation_take(&fd, why, sizeof(why)) == -EINVAL);
	}
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", "1", 1);
	close(3);
	expect(activation_take(&fd, why, sizeof(why)) == -EINVAL && fd == 77);
}

static void a_count_that_is_none_and_a_descriptor_that_is_closed_are_refused(void **state)
{
	with_descriptors(1, take_nonsense);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, new_path, remove_path)
	const struct CMUnitTest tests[] = {
		TEST(without_a_manager_nobody_is_told_and_nothing_fails),
		TEST(the_manager_is_told_of_start_reload_and_end),
		TEST(an_abstract_address_is_taken_to_its_last_byte),
		TEST(an_address_that_is_none_is_refused_and_nobody_is_told),
		TEST(the_watchdog_is_ours_when_it_names_us_or_nobody),
		TEST(without_a_manager_there_is_no_watchdog),
		TEST(a_manager_that_does_not_read_holds_nobody_up_for_ever),
		TEST(a_single_socket_is_ours_whatever_it_is_called),
		TEST(of_several_sockets_the_named_one_is_ours_and_the_others_are_closed),
		TEST(several_sockets_of_which_none_is_named_are_refused),
		TEST(sockets_for_another_process_are_left_alone),
		TEST(a_count_that_is_none_and_a_descriptor_that_is_closed_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
