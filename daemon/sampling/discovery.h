/* SPDX-License-Identifier: MIT
 *
 * Which processes the selectors select right now. Knows /proc and FPM's process titles; knows no PHP memory
 * and no sampling. Used by the discovery thread alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"
#include "daemon/sampling/selector.h"

struct discovered {
	pid_t pid;
	pid_t master_pid;          /* the FPM master it is a child of; 0: none */
	uint64_t start_time_ticks; /* field 22 of /proc/PID/stat: with the pid, names a process for ever */
	uid_t uid;                 /* effective */
	char pool[64];
	uint64_t period_ns; /* the selector's; 0: the default */
	size_t selector;    /* the index of the selector that selects it */
};

struct discovery;

int discovery_new(struct discovery **ret_discovery);
void discovery_free(struct discovery *discovery);
DEFINE_CLEANUP(struct discovery, discovery_free)

/* Replaces the selectors; copied. */
int discovery_select(struct discovery *discovery, const struct selector *selectors, size_t count);

/* All processes selected now, each once (the first selector that selects it names its pool), ordered by pid.
 * The array belongs to
 * @discovery and is valid until the next call. Cheap when nothing changed: a pread of each known master's
 * children; /proc as a whole is looked through only every @full_scan_every calls, and when a known master is
 * gone. */
int discovery_scan(struct discovery *discovery, unsigned full_scan_every,
	const struct discovered **ret_processes, size_t *ret_count);

/* Is this one process selected right now? For a worker that asks before a scan has seen it. 0 and
 * *ret_process, or -ESRCH. */
int discovery_find(struct discovery *discovery, pid_t pid, struct discovered *ret_process);

/* Reads pid, parent, start time and effective uid of one process. -ESRCH. */
int discovery_identify(pid_t pid, struct discovered *ret_process);
