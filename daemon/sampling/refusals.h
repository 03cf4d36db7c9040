/* SPDX-License-Identifier: MIT
 *
 * Processes that were selected and could not be attached, and why: noted by the discovery thread, asked for
 * by whoever answers `status`. The one thing here with a lock, away from the sampling path.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/sampling/engine.h"

#define REFUSALS_MAX 16

struct refusals {
	pthread_mutex_t lock;
	struct refusal items[REFUSALS_MAX]; /* newest first, one a pid */
	size_t count;
	_Atomic uint64_t total; /* read by the sampler, which does not wait for the lock */
};

void refusals_init(struct refusals *refusals);
void refusals_deinit(struct refusals *refusals);

/* A process that is noted already has another reason now. */
void refusals_note(struct refusals *refusals, pid_t pid, const char *why);
void refusals_forget(struct refusals *refusals, pid_t pid);

/* Copies up to @max, newest first; returns how many. */
size_t refusals_copy(struct refusals *refusals, struct refusal *ret_items, size_t max);

/* Why @pid was refused, or where to learn it. */
void refusals_explain(struct refusals *refusals, pid_t pid, char *ret_why, size_t why_bytes);

/* How many there ever were: a process that is refused again while it is among those noted counts once. */
uint64_t refusals_total(struct refusals *refusals);
