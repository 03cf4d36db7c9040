/* SPDX-License-Identifier: MIT
 *
 * See clock.h.
 */
#include "daemon/sampling/clock.h"

#include <time.h>

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

uint64_t monotonic_now_ns(void)
{
	return (uint64_t)now_ns(CLOCK_MONOTONIC);
}

uint64_t thread_cpu_ns(void)
{
	return (uint64_t)now_ns(CLOCK_THREAD_CPUTIME_ID);
}

int64_t realtime_now_ns(void)
{
	return now_ns(CLOCK_REALTIME);
}
