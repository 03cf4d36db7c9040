/* SPDX-License-Identifier: MIT
 *
 * Has a process run since it was last looked at, what are its exact clocks, and where is it? Files of
 * /proc/PID on kept descriptors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"

struct activity_clocks {
	uint64_t run_ns;   /* time on a CPU; lags by up to a scheduler tick while it runs, exact when off the
			      CPU */
	uint64_t queue_ns; /* time ready to run with no CPU */
	uint64_t switch_ins;
};

struct activity_syscall {
	bool blocked; /* false: it runs, or is ready to */
	long number;  /* the system call it is blocked in; -1: blocked outside of one (page fault) */
	uint64_t arguments[6];
	uint64_t stack_pointer, program_counter;
};

struct activity;

/* Of the main thread of @pid. -ESRCH, -EACCES, -ENOENT (no CONFIG_SCHED_INFO). */
int activity_open(pid_t pid, struct activity **ret_activity);
void activity_close(struct activity *activity);
DEFINE_CLEANUP(struct activity, activity_close)

/* One pread each. -ESRCH once the process is gone, even if another has its number by then; -EPROTO: not the
 * kernel's format. activity_read_syscall() where it can't be known: -EOPNOTSUPP. */
int activity_read_clocks(struct activity *activity, struct activity_clocks *ret_clocks);
int activity_read_syscall(struct activity *activity, struct activity_syscall *ret_syscall);

/* Where a process is. */
struct activity_place {
	bool ready; /* it runs, or would if it had a CPU */
	int cpu;    /* on which it runs, or ran last */
};

/* Fields 3 and 39 of /proc/PID/stat, one pread. -ESRCH, -EPROTO. */
int activity_read_place(struct activity *activity, struct activity_place *ret_place);

/* What tells a process on a CPU from one that is queued for it. */
struct activity_schedule {
	uint64_t switch_outs;  /* of its own accord or not; see struct activity_clocks for the ins */
	uint64_t accounted_ns; /* by its CPU's own clock: when its run time was last brought up to date, which
				  is also done when it leaves the CPU, and when it comes to it */
};

/* /proc/PID/sched, one pread, but five times as long a one as the clocks are. -ESRCH, -EPROTO; -EOPNOTSUPP:
 * this kernel has none (before Linux 6.15 that is up to CONFIG_SCHED_DEBUG). */
int activity_read_schedule(struct activity *activity, struct activity_schedule *ret_schedule);

/* Can "blocked" be known here? False where /proc/PID/syscall is not readable. */
bool activity_knows_syscall(const struct activity *activity);

/* preads this thread has made through this module: for the program's own metrics. */
uint64_t activity_reads(void);
