/* SPDX-License-Identifier: MIT
 *
 * One process that is being sampled: what a tick does to it, how requests and units come and go on it, and
 * the window of what it did since the last reset. Belongs to the sampler thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reader/php_process.h"
#include "daemon/sampling/cadences.h"
#include "daemon/sampling/discovery.h"
#include "daemon/sampling/open_unit.h"
#include "daemon/sampling/presence.h"
#include "daemon/sampling/sampling.h"

/* Ticks in a row that could make nothing of a live process, after which it is examined anew: it may have
 * exec'ed. */
#define TARGET_MAX_UNREADABLE_TICKS 100

enum target_fate {
	TARGET_LIVES,
	TARGET_GONE, /* it ended */
	TARGET_LOST, /* it lives, but is not what it was when attached */
};

/* The unit its client finished last. */
struct finished_unit {
	bool is_in_this_request; /* then none opens by itself any more */
	bool was_adopted;
	struct trace_context context; /* once adopted */
	uint64_t begin_ns, end_ns;    /* CLOCK_MONOTONIC */
};

struct target {
	struct discovered identity;
	uint64_t serial; /* rises from target to target, in the order in which they came */
	struct php_process *process;
	int pidfd; /* readable once it has ended; owned */
	bool suspended;

	uint64_t period_ns;         /* asked for now: what is in force may be stretched */
	uint64_t base_period_ns;    /* without what a unit asks for */
	unsigned cadence;           /* number in the sampler's table; CADENCES_NONE while suspended */
	uint64_t not_its_deadlines; /* had passed, and were not served yet, when it joined its cadence */

	/* as of the last tick */
	uint64_t last_ns;
	struct activity_clocks clocks;
	bool ticked; /* there was one, or a finish */
	struct presence_watch presence;
	unsigned disturbed;        /* ticks in a row between which it ran on, but not all the time */
	bool proved;               /* what was seen of it holds as long as it is unmoved */
	bool idle;                 /* between requests */
	unsigned unreadable_ticks; /* in a row */
	struct request request;
	uint64_t request_since_ns; /* it began then, or later; 0: not known */
	uint64_t requests_seen;
	struct finished_unit finished;

	struct open_unit unit;
	struct ledger window; /* since the last reset; open while not idle. Owns its tree */
	uint64_t window_begin_ns;
	uint32_t window_node, unit_node; /* where the last sample was charged */
	struct accounting window_accounting, accounting;
};

/* Takes over @process and @pidfd. NULL: no memory (both are closed). */
struct target *target_new(
	struct sampling *sampling, const struct discovered *identity, struct php_process *process, int pidfd);

/* Its own rate, but for units that ask for another. */
void target_set_rate(struct target *target, uint64_t period_ns);

/* Ends its open unit as of the last tick (it is retained) and frees it; the window goes with it. */
void target_free(struct target *target, struct sampling *sampling);

/* One tick, if the deadlines of @due are its own. */
enum target_fate target_tick(struct target *target, struct sampling *sampling, const struct cadence_due *due);

/* What a client said when it finished its unit. */
struct finish_call {
	uint64_t handle;                     /* 0: that of @context, or whichever is open */
	const struct trace_context *context; /* what it had set; NULL: not told */
	uint64_t asked_ns;                   /* CLOCK_MONOTONIC: when it asked */
};

/* Its client says finish(): brings requests and units up to date with what the process shows now, and ends
 * the unit. A client that gave up waiting may be in its next request by now: that one's unit is not the one
 * it asked for. ORDER_OK and a reference, ORDER_E_NO_UNIT, ORDER_E_NOT_A_TARGET (it has ended),
 * ORDER_E_NO_MEMORY. */
enum order_error target_finish(struct target *target, struct sampling *sampling,
	const struct finish_call *call, struct unit_result **ret_result);

/* No ticks any more: until it is resumed its time goes to <unread>, and none into its window. */
void target_suspend(struct target *target);
void target_resume(struct target *target, struct sampling *sampling);

/* Empties its window. */
void target_reset(struct target *target, uint64_t now_ns);

void target_report(const struct target *target, const struct sampling *sampling, uint64_t now_ns,
	struct target_report *ret_report);
