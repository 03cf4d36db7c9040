/* SPDX-License-Identifier: MIT
 *
 * Why the scoreboard: nothing in a worker's own globals tells two back-to-back requests apart for certain.
 * SG(global_request_time) is 0 until somebody asks for it, and without opcache nobody does at a request's
 * start (docs/INTERNALS.md, measured). FPM itself counts each worker's requests, in memory it shares with its
 * master: fpm_request_reading_headers() in sapi/fpm/fpm/fpm_request.c raises the number before each.
 *
 * The scoreboard is not exported. It is an anonymous shared mapping, which the kernel shows as "/dev/zero
 * (deleted)", so is opcache's memory, which is larger. The worker has it from its master, so what the parent
 * process has not mapped, too, is not looked at (a worker whose master is dead has no scoreboard, then). In
 * it the worker's slot is found by its pid, as the worker itself sees it (it may live in a pid namespace),
 * among fields that must fit.
 *
 * Reading a page of such a mapping that nobody has written to would allocate it, in the target's memory. So
 * only those are read that the worker has in use, by /proc/PID/pagemap: it writes its slot itself. These are
 * one or two pages; what somebody else may have mapped there is bounded.
 *
 * The mapping is there from the worker's first moment, its slot a little later. So the list of mappings,
 * which is long, is read once, and the slot can be looked for again at little cost. The head of struct
 * fpm_scoreboard_proc_s (sapi/fpm/fpm/fpm_scoreboard.h), up to request_uri, is the same in 7.4 to 8.5,
 * checked on live workers; what stands behind it is not used. Its `tv` is when the present stage began: in
 * stage "executing" that is the moment before the script's first instruction (fpm_request_executing()).
 */
#include "reader/fpm_scoreboard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/cleanup.h"
#include "symbols/procmap.h"
#include "reader/load.h"
#include "reader/remote.h"

/* A slot is 1168 bytes up to 8.4 and 3344 from 8.5: room for 2,500 workers. opcache's least is 8 MiB. */
#define SCOREBOARD_MAX_BYTES (8U * 1024 * 1024 - 1)
#define SCOREBOARD_CHUNK_BYTES 65536U
/* Mappings that may be it. In a worker's first moment those of all pools of its master are still there. */
#define SCOREBOARD_MAX_MAPPINGS 64
#define SCOREBOARD_MAX_MAPPED_BYTES (64UL * 1024 * 1024)
/* What is read of all of them. A worker that has shown the status page has all slots in use. */
#define SCOREBOARD_MAX_READ_BYTES (2UL * 1024 * 1024)
#define PAGE_BYTES 4096U
/* Documentation/admin-guide/mm/pagemap.rst: an entry a page; bit 62: swapped, 63: present. */
#define PAGEMAP_IN_USE (UINT64_C(3) << 62)
#define PAGEMAP_ENTRIES 512U

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

struct fpm_scoreboard {
	pid_t pid;
	pid_t own_pid; /* as the worker itself sees it */
	struct {
		remote_addr start, end;
	} mappings[SCOREBOARD_MAX_MAPPINGS];
	size_t count;
};

/* One search. */
struct search {
	const struct fpm_scoreboard *scoreboard;
	const struct memory *memory;
	int pagemap;
	unsigned char *chunk;
	size_t bytes_left; /* that may be read */
	unsigned found;    /* slots that may be the worker's */
	remote_addr slot;  /* the last of them */
};

/* The worker's pid as it sees it itself is the last of NSpid in /proc/PID/status, and @pid where there is no
 * such line. *ret_parent is 0 where there is none that could be seen. */
static void read_status(pid_t pid, pid_t *ret_own_pid, pid_t *ret_parent)
{
	_cleanup_fclose_ FILE *status = NULL;
	char path[64], line[256];

	*ret_own_pid = pid;
	*ret_parent = 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		const char *last = strrchr(line, '\t');
		long number = last ? strtol(last, NULL, 10) : 0;

		if (number <= 0 || number > INT32_MAX)
			continue;
		if (strncmp(line, "PPid:", 5) == 0)
			*ret_parent = (pid_t)number;
		if (strncmp(line, "NSpid:", 6) == 0)
			*ret_own_pid = (pid_t)number;
	}
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

static bool has_the_same(const struct procmap *maps, const struct mapping *mapping)
{
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *other = &maps->mappings[i];

		if (other->inode == mapping->inode && other->device_major == mapping->device_major &&
			other->device_minor == mapping->device_minor && may_be_scoreboard(other))
			return true;
	}
	return false;
}

int fpm_scoreboard_open(pid_t pid, struct fpm_scoreboard **ret_scoreboard)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL, *parents_maps = NULL;
	_cleanup_(fpm_scoreboard_closep) struct fpm_scoreboard *scoreboard = NULL;
	uint64_t mapped = 0;
	pid_t parent;
	int r;

	r = procmap_read(pid, &maps);
	if (r < 0)
		return r;
	scoreboard = calloc(1, sizeof(*scoreboard));
	if (!scoreboard)
		return -ENOMEM;
	scoreboard->pid = pid;
	read_status(pid, &scoreboard->own_pid, &parent);
	/* Where the parent can't be looked at, what the worker has mapped must do. */
	if (parent != 0)
		(void)procmap_read(parent, &parents_maps);
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->mappings[i];

		if (!may_be_scoreboard(mapping) || (parents_maps && !has_the_same(parents_maps, mapping)))
			continue;
		mapped += mapping->end - mapping->start;
		if (scoreboard->count == SCOREBOARD_MAX_MAPPINGS || mapped > SCOREBOARD_MAX_MAPPED_BYTES)
			return FPM_SCOREBOARD_E_NOT_FOUND;
		scoreboard->mappings[scoreboard->count].start = mapping->start;
		scoreboard->mappings[scoreboard->count++].end = mapping->end;
	}
	if (scoreboard->count == 0)
		return FPM_SCOREBOARD_E_NOT_FOUND;
	*ret_scoreboard = TAKE(scoreboard);
	return 0;
}

void fpm_scoreboard_close(struct fpm_scoreboard *scoreboard)
{
	free(scoreboard);
}

/* Looks for slots in [@at, @end), whose pages are in use. */
static int search_pages(struct search *search, remote_addr at, remote_addr end)
{
	if (end - at > search->bytes_left)
		return FPM_SCOREBOARD_E_NOT_FOUND;
	search->bytes_left -= end - at;
	while (end - at >= SLOT_HEAD_BYTES) {
		size_t bytes =
			end - at < SCOREBOARD_CHUNK_BYTES ? (size_t)(end - at) : SCOREBOARD_CHUNK_BYTES;
		size_t offset;
		int r;

		r = memory_read(search->memory, at, search->chunk, bytes);
		if (r != 0)
			return r;
		for (offset = 0; offset + SLOT_HEAD_BYTES <= bytes; offset += 8) {
			if (is_slot_of(search->chunk + offset, search->scoreboard->own_pid)) {
				search->found++;
				search->slot = at + offset;
			}
		}
		at += offset;
	}
	return 0;
}

/* Looks for slots on those pages of [@start, @end) that the worker has in use. */
static int search_mapping(struct search *search, remote_addr start, remote_addr end)
{
	remote_addr run = start; /* [@run, @page): pages in use, not yet looked at */
	int r = 0;

	for (remote_addr page = start; page < end && r == 0;) {
		uint64_t entries[PAGEMAP_ENTRIES];
		size_t wanted = (end - page) / PAGE_BYTES < PAGEMAP_ENTRIES ? (end - page) / PAGE_BYTES
									    : PAGEMAP_ENTRIES;
		ssize_t got = pread(search->pagemap, entries, wanted * sizeof(entries[0]),
			(off_t)(page / PAGE_BYTES * sizeof(entries[0])));

		if (got <= 0)
			return got < 0 ? -errno : -ESRCH; /* it has no memory any more */
		for (size_t i = 0; i < (size_t)got / sizeof(entries[0]) && r == 0; i++, page += PAGE_BYTES) {
			if (entries[i] & PAGEMAP_IN_USE)
				continue;
			if (run < page)
				r = search_pages(search, run, page);
			run = page + PAGE_BYTES;
		}
	}
	if (r == 0 && run < end)
		r = search_pages(search, run, end);
	return r;
}

int fpm_scoreboard_find_slot(
	const struct fpm_scoreboard *scoreboard, const struct memory *memory, remote_addr *ret_slot)
{
	_cleanup_free_ unsigned char *chunk = malloc(SCOREBOARD_CHUNK_BYTES);
	_cleanup_close_ int pagemap = -1;
	struct search search = {.scoreboard = scoreboard,
		.memory = memory,
		.chunk = chunk,
		.bytes_left = SCOREBOARD_MAX_READ_BYTES};
	char path[64];

	if (!chunk)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)scoreboard->pid);
	search.pagemap = pagemap = open(path, O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	for (size_t i = 0; i < scoreboard->count; i++) {
		int r = search_mapping(&search, scoreboard->mappings[i].start, scoreboard->mappings[i].end);

		/* A mapping that went away meanwhile is none. */
		if (r != 0 && r != REMOTE_E_FAULT)
			return r == REMOTE_E_GONE ? -ESRCH : r;
	}
	/* Two that fit would be a guess. */
	if (search.found != 1)
		return FPM_SCOREBOARD_E_NOT_FOUND;
	*ret_slot = search.slot;
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
