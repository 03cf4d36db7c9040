/* SPDX-License-Identifier: MIT
 *
 * The sampler thread: a timer, a mailbox, and the targets it owns outright. Everything that happens to a
 * target happens here; there is nothing to lock.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "daemon/sampling/cadences.h"
#include "daemon/sampling/departed.h"
#include "daemon/sampling/engine.h"
#include "daemon/sampling/mailbox.h"
#include "daemon/sampling/refusals.h"
#include "daemon/sampling/sampling.h"
#include "daemon/sampling/standing.h"
#include "daemon/sampling/target.h"

/* What its mailbox takes. */
enum sampler_message {
	SAMPLER_ORDER = 0,
	SAMPLER_ADD,      /* struct sampler_command: a process that was attached; ownership passes */
	SAMPLER_DROP,     /* let a target go: it is not selected any more */
	SAMPLER_IDENTIFY, /* a target's pool, period or uid is another now */
	SAMPLER_RECONFIGURE,
	SAMPLER_STOP,
};

struct sampler_command {
	struct message message;
	struct discovered identity;
	struct php_process *process;
	int pidfd;
	struct engine_options options;
};

struct sampler {
	struct sampling sampling;
	struct mailbox *inbox;
	struct mailbox *scout;     /* borrowed: where unknown pids and lost targets are reported */
	struct refusals *refusals; /* borrowed: the scout's, for metrics */

	struct target **targets;
	size_t target_count;
	struct cadences cadences;
	struct standing standing;
	struct departed departed;

	int epoll_fd, timer_fd;
	uint64_t armed_ns; /* the deadline the timer is set to; 0: none */
	bool stopping;
	bool realtime;
	uint64_t started_ns, ticks, targets_attached_total;
	uint64_t housekeeping_ns;       /* when it was last done */
	uint64_t pruned_ns;             /* when the frame table was last pruned */
	uint64_t overflows_at_prune;    /* what the table counted then */
	atomic_uint_fast64_t heartbeat; /* rises with every turn of the loop: read by the watchdog */
};

int sampler_new(const struct engine_options *options, struct sampler **ret_sampler);
void sampler_free(struct sampler *sampler);
DEFINE_CLEANUP(struct sampler, sampler_free)

/* The thread's function, @context is the sampler; returns after SAMPLER_STOP. All targets are let go by then.
 */
void *sampler_run(void *context);

struct target *sampler_find(struct sampler *sampler, pid_t pid);

/* Puts @target on the cadence of its period, or on none while it is suspended. To be called when either may
 * have changed. */
void sampler_follow_period(struct sampler *sampler, struct target *target, uint64_t now_ns);

/* answers.c: fills in @order. False: it went on to somebody else, who will answer it. */
bool sampler_answer(struct sampler *sampler, struct order *order);
