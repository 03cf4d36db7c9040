/* SPDX-License-Identifier: MIT
 *
 * The result of one unit of work, and what is told of a target: plain values, ready for export.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "reader/counters.h"
#include "reader/request.h"
#include "daemon/profile/profile.h"
#include "daemon/profile/weighed_tree.h"

/* Says the same from its end on, so that the sampler's retention and whoever was told of it can hold it
 * together: counted references, from any thread. Its profile is made when somebody wants to see it. */
struct unit_result {
	_Atomic unsigned references;
	_Atomic size_t bytes; /* that it holds of memory */
	pthread_mutex_t lock; /* of settling */
	uint64_t unit_id;     /* unique while the daemon runs */
	uint64_t handle;      /* the client's; 0: automatic, never adopted */
	pid_t pid;
	uid_t uid;
	char pool[64];
	enum unit_type type;
	bool automatic; /* began with the request (adopted or not) */
	bool adopted;
	bool sampled, profiling;
	bool capped; /* an automatic unit ran into auto_max_ms: sampling stopped, what was collected stays */
	bool finished_by_client;
	char trace_id[33], span_id[17];
	char name[TRACE_CONTEXT_MAX_NAME_BYTES + 1];
	char method[REQUEST_MAX_METHOD_BYTES + 1], path[REQUEST_MAX_PATH_BYTES + 1];
	int64_t start_realtime_ns; /* CLOCK_REALTIME */
	uint64_t end_ns;           /* CLOCK_MONOTONIC */
	uint64_t duration_ns;      /* equals the sum of the tree's wall_ns */
	uint64_t cpu_ns;           /* the process's CPU time within it; equals the sum of the tree's cpu_ns */
	uint64_t queue_ns;
	uint64_t period_ns;       /* the longest that was in force */
	uint64_t asked_period_ns; /* shorter if the CPU budget did not allow it */
	uint32_t max_depth;
	struct counters counters; /* gc counts since the unit began */
	uint64_t tree_peak_bytes;
	uint32_t node_count;
	uint64_t frame_overflows; /* frames that became <other> since the frame table was full */
	struct accounting accounting;
	bool has_tree;
	struct weighed_tree tree; /* what it collected, until it is settled */
	struct profile *profile;  /* once it is; NULL when it collected none */
};

/* One reference to a copy of @value, whose tree and profile it takes over. NULL: no memory. */
struct unit_result *unit_result_new(const struct unit_result *value);
struct unit_result *unit_result_ref(struct unit_result *unit);
/* Makes the profile of what it collected, unless that was done already. To be called before unit->profile is
 * looked at, by any thread that has time: milliseconds for a large one. -ENOMEM: it may be tried again. */
int unit_result_settle(struct unit_result *unit);
/* What it holds of memory. */
size_t unit_result_bytes(const struct unit_result *unit);
/* Gives one reference up; the last one frees. */
void unit_result_free(struct unit_result *unit);
DEFINE_CLEANUP(struct unit_result, unit_result_free)

struct target_report {
	pid_t pid;
	uid_t uid;
	char pool[64];
	char php_version[32], sapi[32];
	char state[16]; /* "running", "queued", "waiting", "idle", "new" */
	bool suspended;
	uint64_t period_ns; /* in force */
	uint64_t asked_period_ns;
	uint64_t requests_seen;
	char method[REQUEST_MAX_METHOD_BYTES + 1], path[REQUEST_MAX_PATH_BYTES + 1];
	char trace_id[33];
	uint64_t request_age_ns; /* 0: idle */
	uint64_t unit_handle;    /* of the open unit; 0: none or automatic */
	bool unit_automatic, unit_open;
	struct accounting accounting;
};

/* More threads that sample there can't be. */
#define METRICS_MAX_SAMPLERS 64

/* What one of them does: is the work shared out evenly, and does each of them keep up? */
struct sampler_metrics {
	uint64_t targets, ticks_total, cpu_ns;
	uint64_t expected, missed, late; /* of its targets' ticks: as in struct accounting */
	uint64_t stretch_ppm;            /* of its targets' periods, see below */
};

/* The program's own numbers. */
struct metrics {
	uint64_t uptime_ns;
	uint64_t targets, targets_attached_total, targets_refused_total;
	uint64_t units_finished_total, units_retained;
	uint64_t ticks_total, sampler_cpu_ns;
	uint64_t cpu_budget_ppm; /* millionths of one CPU that sampling may take; 0: no limit */
	uint64_t cpu_share_ppm;  /* that it took last */
	uint64_t cpu_demand_ppm; /* that it would take at the periods that were asked for */
	uint64_t stretch_ppm; /* by how much those are stretched for it, in millionths; of several threads the
				 one that stretches most */
	uint64_t process_vm_readv_total, proc_reads_total;
	uint64_t frames, frame_bytes, frame_overflow_total;
	uint64_t tree_bytes;
	uint64_t rss_bytes;
	bool realtime;                /* all sampler threads run under SCHED_FIFO */
	struct accounting accounting; /* all targets since the start, also those that are gone */
	struct sampler_metrics samplers[METRICS_MAX_SAMPLERS];
	size_t sampler_count;
};
