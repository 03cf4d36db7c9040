/* SPDX-License-Identifier: MIT
 *
 * A measurement without a daemon: an engine of its own, for one process or one FPM master's workers, until
 * time is up, the target has ended, or a signal asks for the result.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/profile/profile.h"

struct session_options {
	pid_t pid;
	bool is_master;
	uint64_t period_ns;
	bool blocking;        /* stop it for each sample */
	uint64_t duration_ns; /* 0: until the target ends or a signal comes */
	bool progress;        /* a line on stderr, once a second */
};

/* Blocks SIGINT, SIGTERM and SIGHUP in the calling thread, and so in all it starts: they end a session with
 * its result. */
void session_block_signals(void);

/* The other way round, once there is a result: those that came meanwhile have had their effect. */
void session_unblock_signals(void);

/* Measures. 0 and *ret_profile, owned by the caller; or an exit status, with one line in @ret_why. */
int session_run(
	const struct session_options *options, struct profile **ret_profile, char *ret_why, size_t why_bytes);
