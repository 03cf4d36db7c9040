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
#include "daemon/sampling/cadence.h"
#include "daemon/sampling/departed.h"
#include "daemon/sampling/engine.h"
#include "daemon/sampling/mailbox.h"
#include "daemon/sampling/refusals.h"
#include "daemon/sampling/sampling.h"
#include "daemon/sampling/target.h"

/* Different periods in use at a time. A unit that asks for one more keeps the one it has. */
#define SAMPLER_MAX_CADENCES 16

/* What its mailbox takes. */
enum sampler_message {
	SAMPLER_ORDER = 0,
	SAMPLER_ADD,  /* struct sampler_command: a process that was attached; ownership passes */
	SAMPLER_DROP, /* let a target go: it is not selected any more */
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
	struct cadence cadences[SAMPLER_MAX_CADENCES];
	unsigned cadence_users[SAMPLER_MAX_CADENCES]; /* 0: the slot is free */
	struct departed departed;

	int epoll_fd, timer_fd;
	uint64_t armed_ns; /* the deadline the timer is set to; 0: none */
	bool stopping;
	bool realtime;
	uint64_t started_ns, ticks, targets_attached_total;
	atomic_uint_fast64_t heartbeat; /* rises with every turn of the loop: read by the watchdog */
};

int sampler_new(const struct engine_options *options, struct sampler **ret_sampler);
void sampler_free(struct sampler *sampler);
DEFINE_CLEANUP(struct sampler, sampler_free)

/* The thread's function; returns after SAMPLER_STOP. All targets are let go by then. */
void *sampler_run(void *sampler);

struct target *sampler_find(struct sampler *sampler, pid_t pid);

/* answers.c: fills in @order. False: it went on to somebody else, who will answer it. */
bool sampler_answer(struct sampler *sampler, struct order *order);
