/* SPDX-License-Identifier: MIT
 *
 * When to tick: absolute deadlines, each half a period to one and a half periods after the one before, at
 * random. Deadlines follow from deadlines, never from when somebody woke up, so the rate is exact in the long
 * run (relative sleeps drift). And they wander: deadlines that only tremble around a fixed grid stay in step
 * with code whose own period is the grid's, and sample the same half of it for ever (docs/DECISIONS.md has
 * figures). A deadline that has passed is counted, never made up for.
 *
 * Pure: it is told the time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cadence {
	uint64_t period_ns;
	uint64_t deadline_ns; /* the next one */
	uint64_t random;      /* xorshift64 state */
};

/* What came due. */
struct cadence_due {
	uint64_t
		expected; /* deadlines that have passed since the last time: 1, or more if some were missed */
	uint64_t late_ns; /* how long after the newest of them it is served */
	uint64_t period_ns; /* in force when it was */
};

/* Starts at @now_ns. @seed: any number. */
void cadence_start(struct cadence *cadence, uint64_t period_ns, uint64_t now_ns, uint64_t seed);

/* Is a tick due at @now_ns? Then says what, and moves on to the next deadline in the future. */
bool cadence_due(struct cadence *cadence, uint64_t now_ns, struct cadence_due *ret_due);
