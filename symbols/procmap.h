/* SPDX-License-Identifier: MIT
 *
 * /proc/PID/maps as a sorted list of mappings.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "cleanup.h"
#include "memory.h"

/* A text of more lines than this is refused (-E2BIG): the kernel's own vm.max_map_count is 65530. */
#define PROCMAP_MAX_MAPPINGS 131072

struct mapping {
	remote_addr start, end;
	uint64_t file_offset;
	uint64_t inode; /* 0: anonymous */
	uint32_t device_major, device_minor;
	bool readable, writable, executable, shared;
	bool deleted;     /* the path ended in " (deleted)"; the suffix is not in @path */
	const char *path; /* "" when anonymous; owned by the procmap */
};

struct procmap {
	struct mapping *mappings;
	size_t count;
	char *text;
};

/* Parses @bytes of the format of proc_pid_maps(5). @text is copied. -EINVAL: a line is not of the format. */
int procmap_parse(const char *text, size_t bytes, struct procmap **ret_maps);

/* Reads and parses /proc/PID/maps. -ESRCH: no such process; -EACCES: not permitted. */
int procmap_read(pid_t pid, struct procmap **ret_maps);

/* The mapping that holds @addr, or NULL. */
const struct mapping *procmap_find(const struct procmap *maps, remote_addr addr);

void procmap_free(struct procmap *maps);
DEFINE_CLEANUP(struct procmap, procmap_free)
