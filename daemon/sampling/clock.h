/* SPDX-License-Identifier: MIT
 *
 * What time it is. A file of its own, so that tests can put their own time in its place.
 */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC, which is also PHP's hrtime(). */
uint64_t monotonic_now_ns(void);
/* CPU time that the calling thread has used. Half a microsecond: a system call. */
uint64_t thread_cpu_ns(void);
/* CLOCK_REALTIME, since 1970. */
int64_t realtime_now_ns(void);
