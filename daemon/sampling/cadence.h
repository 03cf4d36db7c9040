/* SPDX-License-Identifier: MIT
 *
 * When to tick: a grid of absolute deadlines, each moved by up to a quarter of the period either way. The
 * grid keeps the rate exact for ever (relative sleeps drift), the jitter keeps it from running in step with
 * periodic code. A grid point that has passed is counted, never made up for.
 *
 * Pure: it is told the time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cadence {
	uint64_t period_ns;
	uint64_t origin_ns; /* grid point 0 */
	uint64_t tick;      /* the grid point that is due next */
	uint64_t deadline_ns;
	uint64_t random; /* xorshift64 state */
};

/* What came due. */
struct cadence_due {
	uint64_t expected; /* grid points that came due since the last time: 1, or more if some were missed */
	uint64_t late_ns;  /* how long after its deadline the newest of them is served */
};

/* Starts a grid at @now_ns. @seed: any number. */
void cadence_start(struct cadence *cadence, uint64_t period_ns, uint64_t now_ns, uint64_t seed);

/* Is a tick due at @now_ns? Then says what, and moves on to the next deadline in the future. */
bool cadence_due(struct cadence *cadence, uint64_t now_ns, struct cadence_due *ret_due);
