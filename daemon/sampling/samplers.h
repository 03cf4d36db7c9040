/* SPDX-License-Identifier: MIT
 *
 * The sampler threads, of which there may be several. They share nothing: each has its targets, its frame
 * table, its ended units, its sums. Which one has a process follows from its number, so nobody needs to ask,
 * remember or hand over anything: what concerns one process goes straight to its sampler. What concerns all
 * passes the samplers in turn (sampler_send_on()).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/sampling/engine.h"
#include "daemon/sampling/sampler.h"

struct samplers {
	struct sampler *items[ENGINE_MAX_THREADS];
	pthread_t threads[ENGINE_MAX_THREADS];
	struct message stop[ENGINE_MAX_THREADS];
	uint64_t heartbeats[ENGINE_MAX_THREADS]; /* when all were alive last */
	unsigned count;
};

/* Whom each of them sends things to; borrowed. */
struct sampler_neighbours {
	struct bookkeeper *bookkeeper;
	struct mailbox *scout;
	struct refusals *refusals;
};

/* As many as @options say; they run when samplers_start() says so. On failure too samplers_deinit() is to be
 * called. */
int samplers_init(struct samplers *samplers, const struct engine_options *options,
	const struct sampler_neighbours *neighbours);
/* They have ended, and so has who posts to them. */
void samplers_deinit(struct samplers *samplers);

/* All or none: a negative errno. */
int samplers_start(struct samplers *samplers);
/* -ETIMEDOUT: one of them does not end, since it hangs in the kernel. */
int samplers_stop(struct samplers *samplers);

/* Once they have ended: what is in their mailboxes is let go, and orders go to their askers. */
void samplers_empty(struct samplers *samplers);

/* The one that has @pid, if any has. */
struct sampler *samplers_owner(const struct samplers *samplers, pid_t pid);

/* To the one whose process it is about, or to the first of all. */
void samplers_submit(const struct samplers *samplers, struct order *order);

/* -ENOMEM: all is as it was. */
int samplers_reconfigure(struct samplers *samplers, const struct engine_options *options);

/* Has each turned its loop since this was true last? */
bool samplers_are_alive(struct samplers *samplers);

/* Of all: limits and demands added up, and the largest stretch. */
struct budget_report samplers_budget(const struct samplers *samplers);
