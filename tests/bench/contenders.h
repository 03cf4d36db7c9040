/* SPDX-License-Identifier: MIT
 *
 * The ways of taking a sample that are compared, behind one face.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"

enum contender {
	CONTENDER_SNAPSHOT, /* php_process_sample() alone: one system call, no clocks, no proof of rest */
	CONTENDER_SAMPLE,   /* has it run? is it running? and php_process_sample(), as a tick does it */
	CONTENDER_TICK,     /* target_tick(): that, and requests, units, trees, accounting */
	CONTENDER_NAIVE,    /* frame by frame, see naive_reader.h */
	CONTENDER_AGAIN, /* CONTENDER_SAMPLE a second time: how far two equal things are apart in this run */
	CONTENDER_NOTHING, /* no sample: what waking up costs */
	CONTENDERS
};

extern const char *const contender_names[CONTENDERS];

struct contenders;

/* Gets all of them ready to sample @pid. On failure says why on stderr. */
int contenders_new(pid_t pid, struct contenders **ret_contenders);
void contenders_free(struct contenders *contenders);
DEFINE_CLEANUP(struct contenders, contenders_free)

/* One sample by @which. The frames it found; 0 if it did not have to look; negative: it failed (no errno: a
 * PHP_PROCESS_E_* turned round). */
int contenders_sample(struct contenders *contenders, enum contender which);

/* System calls made to look at the target so far, by all of them. */
uint64_t contenders_calls(const struct contenders *contenders);
