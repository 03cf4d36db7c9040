/* SPDX-License-Identifier: MIT
 *
 * The discovery thread: looks for what the selectors select, gets processes ready to be sampled (reading ELF
 * files and memory takes milliseconds, which a sampler does not have), and hands each to its sampler.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "daemon/sampling/discovery.h"
#include "daemon/sampling/engine.h"
#include "daemon/sampling/harvest.h"
#include "daemon/sampling/mailbox.h"
#include "daemon/sampling/refusals.h"

/* What its mailbox takes. */
enum scout_message {
	SCOUT_ORDER = 0, /* ATTACH, DETACH; FINISH or WORKER of a pid the sampler does not know */
	SCOUT_SELECT,    /* struct scout_command */
	SCOUT_LOST,      /* a target is not what it was: examine it anew */
	SCOUT_RECONFIGURE,
	SCOUT_STOP,
};

struct scout_command {
	struct message message;
	struct selector *selectors; /* owned */
	size_t selector_count;
	struct discovered identity;
	struct engine_options options;
};

struct scout;
struct samplers;

/* @inbox: its own; @samplers: where processes go. Both borrowed. */
int scout_new(const struct engine_options *options, struct mailbox *inbox, const struct samplers *samplers,
	struct scout **ret_scout);
void scout_free(struct scout *scout);
DEFINE_CLEANUP(struct scout, scout_free)

/* The thread's function, @context is the scout; returns after SCOUT_STOP. */
void *scout_run(void *context);

/* Both for any thread. */
struct refusals *scout_refusals(struct scout *scout);
struct harvest *scout_harvest(struct scout *scout);
