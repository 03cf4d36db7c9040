/* SPDX-License-Identifier: MIT
 *
 * What to sample: which processes belong to which pool.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum selector_kind {
	SELECT_FPM_POOL,   /* workers of any FPM master whose title is "php-fpm: pool <pattern>" (glob) */
	SELECT_FPM_MASTER, /* all workers of the master with this pid */
	SELECT_PID_FILE,   /* the same, the pid read from this file, again whenever the master is gone */
	SELECT_EXECUTABLE, /* any PHP process whose executable's path matches this glob */
	SELECT_PID,        /* this process; if it is an FPM master: its workers */
};

struct selector {
	enum selector_kind kind;
	char pattern[256]; /* glob or path */
	pid_t pid;
	char pool[64];      /* the group its targets are counted under; "": FPM's own pool name, else the
			       executable's name */
	uint64_t period_ns; /* 0: the default */
};
