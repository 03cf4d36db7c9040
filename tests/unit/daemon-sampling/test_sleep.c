/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What a kernel or a filter of system calls that does not know epoll_pwait2() answers. */
static int refusal;
static unsigned long_calls;

static long fake_syscall(long number, int epoll_fd, void *events, int max, const void *time, const void *mask,
	size_t mask_bytes)
{
	long_calls++;
	if (refusal) {
		errno = refusal;
		return -1;
	}
	return syscall(number, epoll_fd, events, max, time, mask, mask_bytes);
}

#define syscall fake_syscall
#include "daemon/sampling/sleep.c"
#undef syscall

#define MS 1000000ull

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

static void sleeps_to_the_moment_and_sees_events(const struct world *world)
{
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

static void it_sleeps_to_the_moment_unless_something_happens(void **state)
{
	sleeps_to_the_moment_and_sees_events(*state);
	assert_int_equal(long_calls, 4);
}

static void it_does_so_where_the_newer_system_call_is_refused(void **state)
{
	refusal = EPERM;
	long_calls = 0;
	sleeps_to_the_moment_and_sees_events(*state);
	/* and it is not asked for again */
	assert_int_equal(long_calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_sleeps_to_the_moment_unless_something_happens),
		cmocka_unit_test(it_does_so_where_the_newer_system_call_is_refused),
	};

	return cmocka_run_group_tests(tests, make_world, end_world);
}
