/* SPDX-License-Identifier: MIT
 *
 * See sleep.h. epoll_pwait2() takes nanoseconds, but only since Linux 5.11, and filters of system calls that
 * are older than it refuse it; ppoll() on the epoll instance does the same, with a second call for the events
 * when there are any. For a realtime thread neither is rounded up (timer slack is zero).
 */
#include "daemon/sampling/sleep.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "daemon/sampling/clock.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* on all architectures; C libraries have it since glibc 2.35 only */
#endif

static int poll_first(int epoll_fd, struct epoll_event *ret_events, int max, const struct timespec *time)
{
	struct pollfd any = {.fd = epoll_fd, .events = POLLIN};

	return ppoll(&any, 1, time, NULL) > 0 ? epoll_wait(epoll_fd, ret_events, max, 0) : 0;
}

int sleep_until(int epoll_fd, struct epoll_event *ret_events, int max, uint64_t until_ns)
{
	static atomic_bool is_refused;
	uint64_t now_ns = monotonic_now_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec time = {(time_t)(left_ns / 1000000000u), (long)(left_ns % 1000000000u)};
	int count = -1;

	errno = ENOSYS;
	if (!is_refused)
		count = (int)syscall(SYS_epoll_pwait2, epoll_fd, ret_events, max, &time, NULL, (size_t)0);
	if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
		is_refused = true;
		count = poll_first(epoll_fd, ret_events, max, &time);
	}
	return count > 0 ? count : 0;
}
