/* SPDX-License-Identifier: MIT
 *
 * A worker's slot in php-fpm's scoreboard: what tells each request from the next, and when this one began.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"
#include "symbols/memory.h"

enum {
	FPM_SCOREBOARD_E_NOT_FOUND = 80, /* no scoreboard mapped, or none with this worker's slot (yet) */
};

/* Bytes of a slot that fpm_slot_read() looks at. */
#define FPM_SLOT_BYTES 112

struct fpm_slot {
	uint64_t requests;     /* raised before each request is read */
	uint64_t executing_ns; /* CLOCK_MONOTONIC when the script began to run; 0: it does not run now */
};

/* The mappings of a worker that may be its scoreboard. */
struct fpm_scoreboard;

/* Reads /proc/@pid/maps and /proc/@pid/status, and its parent's maps: once a worker. 0,
 * FPM_SCOREBOARD_E_NOT_FOUND (no mapping may be one), or a negative errno. */
int fpm_scoreboard_open(pid_t pid, struct fpm_scoreboard **ret_scoreboard);
void fpm_scoreboard_close(struct fpm_scoreboard *scoreboard);
DEFINE_CLEANUP(struct fpm_scoreboard, fpm_scoreboard_close)

/* The address of the worker's slot. Reads through @memory what the worker has in use of those mappings, most
 * often a page or two, and 2 MiB at most; nothing is allocated in the worker. 0, FPM_SCOREBOARD_E_NOT_FOUND,
 * or a negative errno. */
int fpm_scoreboard_find_slot(
	const struct fpm_scoreboard *scoreboard, const struct memory *memory, remote_addr *ret_slot);

/* Reads FPM_SLOT_BYTES of a slot. */
struct fpm_slot fpm_slot_read(const unsigned char *slot);
