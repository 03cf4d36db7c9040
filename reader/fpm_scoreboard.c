/* SPDX-License-Identifier: MIT
 *
 * Why the scoreboard: nothing in a worker's own globals tells two back-to-back requests apart for certain.
 * SG(global_request_time) is 0 until somebody asks for it, and without opcache nobody does at a request's
 * start (docs/INTERNALS.md, measured). FPM itself counts each worker's requests, in memory it shares with its
 * master: fpm_request_reading_headers() in sapi/fpm/fpm/fpm_request.c raises the number before each.
 *
 * The scoreboard is not exported. It is an anonymous shared mapping, which the kernel shows as "/dev/zero
 * (deleted)", so is opcache's memory, which is larger. In it the worker's slot is found by its pid, as the
 * worker itself sees it (it may live in a pid namespace), among fields that must fit. The head of struct
 * fpm_scoreboard_proc_s (sapi/fpm/fpm/fpm_scoreboard.h), up to request_uri, is the same in 7.4 to 8.5,
 * checked on live workers; what stands behind it is not used. Its `tv` is when the present stage began: in
 * stage "executing" that is the moment before the script's first instruction (fpm_request_executing()).
 */
#include "reader/fpm_scoreboard.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/cleanup.h"
#include "symbols/procmap.h"
#include "reader/load.h"

/* A slot is 1168 bytes up to 8.4 and 3344 from 8.5: room for 2,500 workers. opcache's least is 8 MiB. */
#define SCOREBOARD_MAX_BYTES (8U * 1024 * 1024 - 1)
#define SCOREBOARD_CHUNK_BYTES 65536U

/* struct fpm_scoreboard_proc_s. */
#define SLOT_USED 16
#define SLOT_START_EPOCH 24
#define SLOT_PID 32
#define SLOT_REQUESTS 40
#define SLOT_STAGE 48
#define SLOT_HEAD_BYTES 56
#define SLOT_STAGE_BEGAN 96 /* struct timeval tv: CLOCK_MONOTONIC, fpm_clock_get() */
/* enum fpm_request_stage_e: FPM_REQUEST_ACCEPTING is 1, _EXECUTING 4, _FINISHED 6. */
#define STAGE_FIRST 1
#define STAGE_EXECUTING 4
#define STAGE_LAST 6

/* The worker's pid as it sees it itself: the last of NSpid in /proc/PID/status; @pid where there is no such
 * line. */
static pid_t pid_in_own_namespace(pid_t pid)
{
	_cleanup_fclose_ FILE *status = NULL;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		const char *last;
		long number;

		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		last = strrchr(line, '\t');
		number = last ? strtol(last, NULL, 10) : 0;
		return number > 0 && number <= INT32_MAX ? (pid_t)number : pid;
	}
	return pid;
}

static bool may_be_scoreboard(const struct mapping *mapping)
{
	return mapping->shared && mapping->readable && mapping->writable && mapping->deleted &&
	       strcmp(mapping->path, "/dev/zero") == 0 &&
	       mapping->end - mapping->start <= SCOREBOARD_MAX_BYTES;
}

static bool is_slot_of(const unsigned char *slot, pid_t pid)
{
	uint64_t start_epoch;
	int32_t used, slot_pid;
	uint32_t stage;

	memcpy(&used, slot + SLOT_USED, sizeof(used));
	memcpy(&start_epoch, slot + SLOT_START_EPOCH, sizeof(start_epoch));
	memcpy(&slot_pid, slot + SLOT_PID, sizeof(slot_pid));
	memcpy(&stage, slot + SLOT_STAGE, sizeof(stage));
	return slot_pid == (int32_t)pid && used == 1 && start_epoch != 0 && stage >= STAGE_FIRST &&
	       stage <= STAGE_LAST;
}

/* Counts the slots in @mapping that may be @pid's; *ret_slot is the last of them. */
static int find_slots(const struct memory *memory, const struct mapping *mapping, pid_t pid,
	unsigned char *chunk, unsigned *count, remote_addr *ret_slot)
{
	remote_addr at = mapping->start;

	while (mapping->end - at >= SLOT_HEAD_BYTES) {
		size_t bytes = mapping->end - at < SCOREBOARD_CHUNK_BYTES ? (size_t)(mapping->end - at)
									  : SCOREBOARD_CHUNK_BYTES;
		size_t offset;
		int r;

		r = memory_read(memory, at, chunk, bytes);
		if (r != 0)
			return r;
		for (offset = 0; offset + SLOT_HEAD_BYTES <= bytes; offset += 8) {
			if (is_slot_of(chunk + offset, pid)) {
				(*count)++;
				*ret_slot = at + offset;
			}
		}
		at += offset;
	}
	return 0;
}

int fpm_scoreboard_find_slot(pid_t pid, const struct memory *memory, remote_addr *ret_slot)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;
	_cleanup_free_ unsigned char *chunk = NULL;
	pid_t own_pid = pid_in_own_namespace(pid);
	remote_addr slot = 0;
	unsigned count = 0;
	int r;

	r = procmap_read(pid, &maps);
	if (r < 0)
		return r;
	chunk = malloc(SCOREBOARD_CHUNK_BYTES);
	if (!chunk)
		return -ENOMEM;
	for (size_t i = 0; i < maps->count; i++) {
		/* A mapping that went away meanwhile is none. */
		if (may_be_scoreboard(&maps->mappings[i]) &&
			find_slots(memory, &maps->mappings[i], own_pid, chunk, &count, &slot) < 0)
			continue;
	}
	/* Two that fit would be a guess. */
	if (count != 1)
		return FPM_SCOREBOARD_E_NOT_FOUND;
	*ret_slot = slot;
	return 0;
}

struct fpm_slot fpm_slot_read(const unsigned char *slot)
{
	struct fpm_slot read = {.requests = load_u64(slot + SLOT_REQUESTS)};
	uint64_t seconds = load_u64(slot + SLOT_STAGE_BEGAN);
	uint64_t microseconds = load_u64(slot + SLOT_STAGE_BEGAN + 8);
	uint32_t stage;

	memcpy(&stage, slot + SLOT_STAGE, sizeof(stage));
	/* A time that FPM can't have written is none: the product must not wrap. */
	if (stage == STAGE_EXECUTING && seconds < UINT32_MAX && microseconds < 1000000)
		read.executing_ns = seconds * 1000000000u + microseconds * 1000u;
	return read;
}
