/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/sampling/clock.h"
#include "daemon/sampling/sleep.h"

#define MS 1000000ull
#define EPOLL_PWAIT2 441 /* the number of the system call */

struct world {
	int epoll_fd, event_fd;
};

static int make_world(void **state)
{
	static struct world world;
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7};

	world.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	world.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	*state = &world;
	return epoll_ctl(world.epoll_fd, EPOLL_CTL_ADD, world.event_fd, &event);
}

static int end_world(void **state)
{
	struct world *world = *state;

	close(world->epoll_fd);
	close(world->event_fd);
	return 0;
}

static void it_sleeps_to_the_moment_unless_something_happens(void **state)
{
	const struct world *world = *state;
	struct epoll_event events[2];
	uint64_t until_ns = monotonic_now_ns() + 3 * MS;

	assert_int_equal(sleep_until(world->epoll_fd, events, 2, until_ns), 0);
	assert_true(monotonic_now_ns() >= until_ns);
	assert_int_equal(write(world->event_fd, &(uint64_t){1}, 8), 8);
	assert_int_equal(sleep_until(world->epoll_fd, events, 2, monotonic_now_ns() + 60000 * MS), 1);
	assert_int_equal(events[0].data.u32, 7);
	/* a moment that has passed */
	assert_int_equal(sleep_until(world->epoll_fd, events, 2, 1), 1);
	assert_int_equal(read(world->event_fd, &until_ns, 8), 8);
	assert_int_equal(sleep_until(world->epoll_fd, events, 2, 1), 0);
}

/* As under a filter, or on a kernel, that is older than it; for the rest of this process. */
static void refuse_epoll_pwait2(int error)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, EPOLL_PWAIT2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(rules) / sizeof(rules[0]), .filter = rules};

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter), 0);
}

static void it_does_so_where_the_newer_system_call_is_refused(void **state)
{
	refuse_epoll_pwait2(EPERM);
	it_sleeps_to_the_moment_unless_something_happens(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_sleeps_to_the_moment_unless_something_happens),
		cmocka_unit_test(it_does_so_where_the_newer_system_call_is_refused),
	};

	return cmocka_run_group_tests_name("sleep", tests, make_world, end_world);
}
