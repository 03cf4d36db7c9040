/* SPDX-License-Identifier: MIT
 *
 * A worker's slot in php-fpm's scoreboard, for the one number there that tells each request from the next.
 */
#pragma once

#include <sys/types.h>

#include "symbols/memory.h"

enum {
	FPM_SCOREBOARD_E_NOT_FOUND = 80, /* no scoreboard mapped, or none with this worker's slot (yet) */
};

/* The address, in worker @pid, of its count of requests (8 bytes). Reads /proc/@pid/maps, /proc/@pid/status
 * and the scoreboard through @memory: once a worker, not a sample. 0, FPM_SCOREBOARD_E_NOT_FOUND, or a
 * negative errno. */
int fpm_scoreboard_find_request_count(pid_t pid, const struct memory *memory, remote_addr *ret_addr);
