/* SPDX-License-Identifier: MIT
 *
 * What the daemon tells its service manager, and what it asked for: sd_notify(3) and sd_watchdog_enabled(3),
 * spoken directly.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct notify {
	int fd; /* connected to the manager; -1: there is none, and all below succeeds without effect */
	uint64_t watchdog_ns; /* within this time a notify_watchdog() is expected; 0: none is */
};

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment: children have no business with
 * them. Call it before there are threads. 0 also without a manager, or a negative errno: -EPROTONOSUPPORT for
 * an address of an unknown kind, -EINVAL for one that is none. @ret_notify is usable even then: nobody is
 * told. */
int notify_open(struct notify *ret_notify);
void notify_close(struct notify *notify);

/* Each returns 0 or a negative errno. @status is one line for people: systemctl status shows it. From any
 * thread. */
int notify_ready(const struct notify *notify, const char *status);
int notify_reloading(const struct notify *notify);
int notify_stopping(const struct notify *notify);
int notify_watchdog(const struct notify *notify);
