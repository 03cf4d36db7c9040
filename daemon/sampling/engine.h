/* SPDX-License-Identifier: MIT
 *
 * The sampling engine as the rest of the program sees it: give it selectors, and orders; get answers. Sampler
 * threads own the targets; an order is handed over to the one it concerns, or passes all of them in turn, and
 * comes back, filled in, to the mailbox it names. Units come back as they ended: unit_result_settle() makes
 * their profile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"
#include "reader/placement.h"
#include "daemon/profile/unit.h"
#include "daemon/sampling/mailbox.h"
#include "daemon/sampling/selector.h"

#define ENGINE_MAX_THREADS METRICS_MAX_SAMPLERS

struct engine_options {
	uint64_t period_ns;                    /* of targets that ask for none of their own */
	uint64_t min_period_ns, max_period_ns; /* bounds of what a unit or an operator may ask for */
	uint32_t max_depth;                    /* frames kept of a stack */
	uint32_t max_targets, max_nodes;       /* max_nodes: of one tree */
	uint32_t max_frames;                   /* of each thread, since each knows frames of its own */
	uint32_t retained_units;               /* ended units kept for a late finish or a reader */
	uint64_t retained_bytes;
	uint64_t retained_ns;
	uint64_t auto_max_ns; /* longest automatic unit that is sampled */
	uint64_t discovery_interval_ns;
	uint32_t threads;        /* that sample; 1 to ENGINE_MAX_THREADS, settled at the start */
	uint32_t cpu_budget_ppm; /* millionths of one CPU that they may use together; 0: no limit */
	enum placement placement;
	bool realtime;          /* ask for SCHED_FIFO */
	bool trust_traceparent; /* take HTTP_TRACEPARENT where the global is absent */
	bool blocking;          /* stop each target for each sample: for reference measurements */
};

struct engine;
struct pool_names;

/* -EINVAL: so many threads there can't be. */
int engine_new(const struct engine_options *options, struct engine **ret_engine);
/* Starts the sampler, discovery and bookkeeper threads. */
int engine_start(struct engine *engine);
/* Ends these threads. All orders under way have come back when it returns, those that were not answered with
 * ORDER_E_STOPPING; so do those that are submitted later. Nobody may submit one meanwhile. -ETIMEDOUT: a
 * thread hangs in the kernel, reading memory that does not answer. Then neither the engine nor any order may
 * be touched any more: end the process. */
int engine_stop(struct engine *engine);
void engine_free(struct engine *engine);
DEFINE_CLEANUP(struct engine, engine_free)

/* Replaces what is looked for; targets that no selector selects any more are let go. The engine copies. */
int engine_select(struct engine *engine, const struct selector *selectors, size_t count);
int engine_reconfigure(struct engine *engine, const struct engine_options *options);

enum order_verb {
	ORDER_FINISH,  /* pid, uid, handle, context: ends the worker's unit; answers .unit */
	ORDER_WORKER,  /* pid, uid: the worker's own status; answers .targets[0] */
	ORDER_TARGETS, /* pool, pid, uid filters; answers .targets */
	ORDER_PROFILE, /* pool, pid, uid filters; answers .profile of the window since the last reset */
	ORDER_UNIT,    /* unit_id or trace_id, uid filter; answers .unit, the one that ended last (a
			  reference; it stays retained) */
	ORDER_UNITS, /* pool, pid, uid filters, limit; answers .units without their profiles, newest first */
	ORDER_METRICS, /* answers .metrics */
	ORDER_RESET,   /* pool filter: empties windows */
	ORDER_SUSPEND, /* pool, pid filters: stops sampling, keeps what was collected */
	ORDER_RESUME,
	ORDER_RATE,   /* pool filter, period_ns */
	ORDER_ATTACH, /* pid (a worker, a master meaning its workers, any PHP process), pool = a name for the
			 group */
	ORDER_DETACH, /* pid */
};

enum order_error {
	ORDER_OK = 0,
	ORDER_E_NOT_A_TARGET, /* no such process among the targets */
	ORDER_E_NO_UNIT,      /* the worker has no open unit with this handle */
	ORDER_E_NOT_FOUND,    /* no such unit, pool or trace */
	ORDER_E_RANGE,        /* period out of bounds */
	ORDER_E_LIMIT,        /* max_targets reached */
	ORDER_E_REFUSED,      /* attach: see .why */
	ORDER_E_NO_MEMORY,
	ORDER_E_STOPPING,
};

/* Any uid, pid, pool: the filter is off. */
#define ORDER_ANY_UID ((uid_t)-1)

struct order {
	struct message message; /* first: orders travel through mailboxes */
	enum order_verb verb;
	struct mailbox *reply_to;
	uint64_t cookie; /* the sender's */

	/* the question */
	pid_t pid;       /* 0: any */
	uid_t uid;       /* ORDER_ANY_UID: any */
	char pool[64];   /* "": any */
	uint64_t handle; /* ORDER_FINISH: 0 means whichever unit is open */
	struct trace_context
		context; /* ORDER_FINISH: what the client had set; has_context says whether it came along */
	bool has_context;
	bool want_profile;
	uint64_t unit_id;
	char trace_id[33];
	uint64_t period_ns;
	uint32_t limit;

	uint64_t asked_ns; /* the engine's own: CLOCK_MONOTONIC when it was submitted */

	/* the engine's own */
	bool looked_for;          /* discovery has looked for @pid already */
	bool has_begun;           /* the first sampler has, and what all of them add to is there */
	bool has_found;           /* a sampler has something of what is asked for */
	bool is_approved;         /* RATE, SUSPEND, RESUME: some sampler has, and all are to obey */
	uint64_t reloads;         /* RATE: how many there were when it was begun */
	struct pool_names *pools; /* what to tell who has asked for what isn't there */

	/* the answer: owned by the order */
	enum order_error error;
	char why[256]; /* of an error; of ATTACH and DETACH also what is to be said of a success */
	struct unit_result *unit;
	struct unit_result **units;
	size_t unit_count;
	struct target_report *targets;
	size_t target_count;
	struct profile *profile;
	struct metrics *metrics;
	size_t affected; /* RESET, SUSPEND, RESUME, RATE, ATTACH, DETACH: how many targets */
};

int order_new(enum order_verb verb, struct order **ret_order);
/* Does it ask for what is @pid's, @uid's and @pool's? */
bool order_asks_for(const struct order *order, pid_t pid, uid_t uid, const char *pool);
/* ORDER_UNITS: of the units that several samplers have named, leaves the newest, newest first. */
void order_merge_units(struct order *order);
void order_free(struct order *order);
DEFINE_CLEANUP(struct order, order_free)

/* Hands @order over. It comes back to order->reply_to, always. */
void engine_submit(struct engine *engine, struct order *order);

/* For callers with no loop of their own (CLI verbs): submits and waits up to @timeout_ns for it to come back.
 */
int engine_ask(struct engine *engine, struct order *order, uint64_t timeout_ns);

/* Has each sampler turned since this was true last? For the watchdog. True also while there is nothing to
 * sample.
 */
bool engine_is_alive(struct engine *engine);

/* Does sampling keep to its CPU budget, and at what price? For the log and for status. */
struct budget_report {
	uint64_t limit_ppm;   /* millionths of one CPU; 0: no limit */
	uint64_t demand_ppm;  /* what it would take at the periods that were asked for */
	uint64_t stretch_ppm; /* by how much those are stretched, at most; 1000000: not at all */
};
struct budget_report engine_budget(struct engine *engine);

/* Targets that were selected but could not be attached, newest reason first: for `status`. Returns how many
 * of @max were filled. */
struct refusal {
	pid_t pid;
	char why[256];
};
size_t engine_refusals(struct engine *engine, struct refusal *ret_refusals, size_t max);

/* What each of the selectors given to engine_select() finds, in their order: for `status`. Returns how many
 * of @max were filled. */
#define HARVEST_MAX 64
struct selector_report {
	char selects[300]; /* for people: what it looks for */
	char pool[64];     /* "": it has no name of its own */
	size_t found;      /* processes, also those that could not be attached */
	char why[160];     /* it found none; else "" */
};
size_t engine_selector_reports(struct engine *engine, struct selector_report *ret_reports, size_t max);
