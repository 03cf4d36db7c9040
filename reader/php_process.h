/* SPDX-License-Identifier: MIT
 *
 * A PHP process that can be sampled: binary, view, caches and request reader together. The way of one sample
 * (docs/ARCHITECTURE.md), from "has it run?" to named frames.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"
#include "symbols/php_binary.h"
#include "reader/activity.h"
#include "reader/counters.h"
#include "reader/function.h"
#include "reader/placement.h"
#include "reader/request.h"
#include "reader/stack.h"

/* Snapshots tried again at once before a sample counts as torn. Of an application read from another CPU one
 * in ten moves under the first; with 9 more tries 0.3 to 0.7 % were lost, with 19 more 0.02 %
 * (docs/ORACLE.md). */
#define PHP_PROCESS_MAX_RETRIES 24
/* What a sample may have cost (view_cost_bytes()) for another snapshot to be tried: some 2 ms of reading. */
#define PHP_PROCESS_MAX_COST_BYTES (16u << 20)

enum {
	PHP_PROCESS_E_IDLE = 64,  /* no PHP function on its stack: between requests, or PHP itself is at work
				   * (it  compiles the main script, starts or ends a request) */
	PHP_PROCESS_E_TORN,       /* it kept moving; @frames hold the outer frames two snapshots agree on */
	PHP_PROCESS_E_UNREADABLE, /* its memory made no sense or could not be read this time */
	PHP_PROCESS_E_GONE,
};

struct php_sample {
	const struct frame *frames; /* leaf first; the process's, valid until its next sample */
	size_t count;
	/* So many of the outermost frames are those of its sample number @since, without a gap. @serial: the
	 * number of this one. Samples that have frames are numbered, each process's from 1. */
	size_t same_outer;
	uint64_t since, serial;
	size_t omitted, omitted_after; /* see struct raw_stack */
	bool omitted_at_least;
	unsigned retries; /* snapshots taken beyond the first */
	struct request request;
};

/* How a process is read. All zero: as it runs, moving to its CPU when it tears. */
struct php_process_options {
	enum placement placement;
	bool blocking; /* stop it for each sample, unless it waits */
};

struct php_process;

/* Examines @pid and gets ready to sample it. The process is not touched. @names must outlive the process.
 * Errors: PHP_BINARY_E_*, -ESRCH (it has ended), -EPERM, -EACCES, -ENOSYS, other negative errno; each with a
 * sentence in
 * @ret_why (may be NULL) that names cause and remedy. -EBUSY: it would have to be stopped, and another
 * program traces it. */
int php_process_open(pid_t pid, const struct frame_names *names, const struct php_process_options *options,
	struct php_process **ret_process, char *ret_why, size_t why_bytes);
void php_process_close(struct php_process *process);
DEFINE_CLEANUP(struct php_process, php_process_close)

pid_t php_process_pid(const struct php_process *process);
const struct php_binary *php_process_binary(const struct php_process *process);
struct activity *php_process_activity(struct php_process *process);

/* From the next sample on. */
void php_process_set_placement(struct php_process *process, enum placement placement);

/* Takes one sample; of a process that is to be stopped, always on the same thread. 0, or PHP_PROCESS_E_*, or
 * a negative errno. @ret_sample is valid for 0 and PHP_PROCESS_E_TORN; its request part also for
 * PHP_PROCESS_E_IDLE. One system call, and no allocation, in steady state. */
int php_process_sample(struct php_process *process, struct php_sample *ret_sample);

/* PHP's counters, read now. */
int php_process_counters(struct php_process *process, struct counters *ret_counters);
