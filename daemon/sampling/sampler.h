/* SPDX-License-Identifier: MIT
 *
 * A sampler thread: a mailbox, and the targets it owns outright. Everything that happens to a target happens
 * here; there is nothing to lock. There may be several (samplers.h), which know no more of each other
 * than the mailbox of the next.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "daemon/sampling/bookkeeper.h"
#include "daemon/sampling/cadences.h"
#include "daemon/sampling/engine.h"
#include "daemon/sampling/mailbox.h"
#include "daemon/sampling/perch.h"
#include "daemon/sampling/refusals.h"
#include "daemon/sampling/rounds.h"
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
	struct message *mail; /* taken from there and not looked at yet */
	struct message **mail_end;
	struct mailbox *next, *first;  /* borrowed: of the sampler orders go on to (NULL: this is the last) */
	struct mailbox *scout;         /* borrowed: where unknown pids and lost targets are reported */
	struct refusals *refusals;     /* borrowed: the scout's, for metrics */
	struct bookkeeper *bookkeeper; /* borrowed: where windows go */

	struct target **targets; /* as they came: by rising serials */
	size_t target_count;
	uint64_t last_serial; /* begins with the sampler's place: they rise from sampler to sampler too */
	uint64_t reloads;     /* RECONFIGUREs so far */
	struct rounds rounds;
	struct cadences cadences;
	struct perch perch;
	struct standing standing;

	int epoll_fd; /* of the mailbox and all targets' ends */
	bool stopping;
	bool realtime;
	uint64_t started_ns, ticks, targets_attached_total;
	uint64_t housekeeping_ns; /* when it was last done */
	uint64_t orders_cpu_ns;   /* thread_cpu_ns() as orders left it; 0: the last turn had none */
	/* The budget's, for other threads. */
	atomic_uint_fast64_t limit_ppm, demand_ppm, stretch_ppm;
	atomic_uint_fast64_t heartbeat; /* rises with every turn of the loop: read by the watchdog */
};

/* The @place-th of @options->threads. */
int sampler_new(const struct engine_options *options, unsigned place, struct sampler **ret_sampler);
void sampler_free(struct sampler *sampler);
DEFINE_CLEANUP(struct sampler, sampler_free)

/* The thread's function, @context is the sampler; returns after SAMPLER_STOP. All targets are let go by then;
 * what it has not looked at is back in its mailbox. */
void *sampler_run(void *context);

struct target *sampler_find(struct sampler *sampler, pid_t pid);

/* Puts @target on the cadence of its period, or on none while it is suspended. To be called when either may
 * have changed. */
void sampler_follow_period(struct sampler *sampler, struct target *target, uint64_t now_ns);

/* Puts other options in force, which ends the rates that were ordered. Sizes of what was allocated by the old
 * ones stay. */
void sampler_reconfigure(struct sampler *sampler, const struct engine_options *options);

/* Is the next deadline more than @ns away? */
bool sampler_has_time(const struct sampler *sampler, uint64_t ns);

/* answers.c: adds its numbers, but for what the trees of targets hold. */
void sampler_add_metrics(const struct sampler *sampler, struct metrics *metrics);

/* answers.c: does what @order asks of this sampler, now or on a round, and sends it on. */
void sampler_answer(struct sampler *sampler, struct order *order);

/* answers.c: this sampler has done its part of @order: it goes to the next sampler; from the last one, or
 * with an error, to its asker, by way of the bookkeeper if that has a part of it. */
void sampler_send_on(struct sampler *sampler, struct order *order);
