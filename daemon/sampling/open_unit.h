/* SPDX-License-Identifier: MIT
 *
 * A unit of work under way on one target: its labels, its tree, its ledger. How it begins, is adopted,
 * collects and ends. Knows nothing of where samples come from.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "reader/activity.h"
#include "reader/counters.h"
#include "reader/request.h"
#include "daemon/profile/unit.h"
#include "daemon/sampling/ledger.h"
#include "daemon/sampling/sampling.h"

struct open_unit {
	bool open;
	bool automatic;                 /* began with its request */
	bool adopted;                   /* a context was set within it: it has a name and an owner */
	struct trace_context context;   /* once adopted: the one that did it */
	bool collecting;                /* false: not sampled, profiling declined, or capped */
	struct unit_result labels;      /* what the result will say; its profile is NULL until the end */
	uint64_t begin_ns;              /* CLOCK_MONOTONIC */
	uint32_t gc_runs, gc_collected; /* PHP's counts when it began */
	uint64_t frame_overflows;       /* the frame table's count when it began */
	struct calltree *tree;
	struct ledger ledger;
};

/* Whose unit it is. */
struct unit_owner {
	pid_t pid;
	uid_t uid;
	const char *pool;
	uint64_t period_ns;
	enum unit_type automatic_type; /* of its automatic units */
};

/* Begins a unit at @begin_ns, when the process's clocks stood at @clocks. -ENOMEM. */
int open_unit_begin(struct open_unit *unit, struct sampling *sampling, const struct unit_owner *owner,
	bool automatic, uint64_t begin_ns, const struct activity_clocks *clocks);

/* Labels it with its request: method and path, and an incoming trace. */
void open_unit_set_request(struct open_unit *unit, const struct request *request, bool trust_traceparent);

/* Labels it with a context (from the well-known global, or sent along with finish). A context that declines
 * sampling or profiling throws away what was collected. */
void open_unit_adopt(struct open_unit *unit, struct sampling *sampling, const struct trace_context *context);

/* Stops collecting when an automatic unit has run longer than the limit. */
void open_unit_cap(
	struct open_unit *unit, uint64_t now_ns, const struct activity_clocks *clocks, uint64_t auto_max_ns);

/* Ends it at @end_ns, when the process's clocks stood at @clocks, and makes its result. @counters may be
 * NULL. The caller owns a reference. -ENOMEM: the unit has ended without a result. */
int open_unit_end(struct open_unit *unit, struct sampling *sampling, uint64_t end_ns,
	const struct activity_clocks *clocks, const struct counters *counters,
	struct unit_result **ret_result);

/* Ends it and drops it. */
void open_unit_drop(struct open_unit *unit, struct sampling *sampling);
