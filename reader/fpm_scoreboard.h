/* SPDX-License-Identifier: MIT
 *
 * A worker's slot in php-fpm's scoreboard: what tells each request from the next, and when this one began.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

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

/* The address of worker @pid's slot. Reads /proc/@pid/maps, /proc/@pid/status and the scoreboard through
 * @memory: once a worker, not a sample. 0, FPM_SCOREBOARD_E_NOT_FOUND, or a negative errno. */
int fpm_scoreboard_find_slot(pid_t pid, const struct memory *memory, remote_addr *ret_slot);

/* Reads FPM_SLOT_BYTES of a slot. */
struct fpm_slot fpm_slot_read(const unsigned char *slot);
