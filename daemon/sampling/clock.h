/* SPDX-License-Identifier: MIT
 *
 * What time it is, and reckoning with it. A file of its own, so that tests can put their own time in its
 * place.
 */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC, which is also PHP's hrtime(). */
uint64_t monotonic_now_ns(void);
/* CPU time that the calling thread has used. Half a microsecond: a system call. */
uint64_t thread_cpu_ns(void);
/* CLOCK_REALTIME, since 1970. */
int64_t realtime_now_ns(void);

/* How far a clock came from @then to @now; 0 for one that went back. */
static inline uint64_t clock_advance(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static inline uint64_t smaller_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
