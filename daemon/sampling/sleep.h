/* SPDX-License-Identifier: MIT
 *
 * The sampler's sleep: until a moment, or until something happens that an epoll instance watches. At 1 kHz
 * with one target it is most of what sampling costs, so it is one system call and no timer that would have to
 * be set first (docs/DECISIONS.md, 17, has what the ways to sleep cost).
 */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

/* Sleeps until @until_ns (CLOCK_MONOTONIC; in the past: not at all) or until @epoll_fd has events, of which
 * up to @max are put into @ret_events. Returns how many, or 0: it is time, or a signal came. */
int sleep_until(int epoll_fd, struct epoll_event *ret_events, int max, uint64_t until_ns);
