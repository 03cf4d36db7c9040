/* SPDX-License-Identifier: MIT
 *
 * What became of every tick: the numbers that say how far a profile can be trusted.
 *
 *	expected = taken + unchanged + torn_lost + unreadable + idle + missed
 *
 * holds exactly, for a target, a unit, and any sum of them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Upper edges of the lateness histogram's buckets, in 1/16 of a period: the last bucket is open. */
#define ACCOUNTING_LATE_BUCKETS 8

struct accounting {
	uint64_t expected;   /* ticks that were due */
	uint64_t taken;      /* snapshots accepted */
	uint64_t unchanged;  /* proved not to have run since the last snapshot, which was charged again */
	uint64_t torn_lost;  /* moved under every try; charged to the frames two tries agree on */
	uint64_t unreadable; /* memory could not be read or made no sense */
	uint64_t idle;       /* no PHP code was running: between requests */
	uint64_t missed;     /* due while the sampler was not there */

	uint64_t torn_retried; /* of taken: accepted only after another try */
	uint64_t truncated;    /* of taken: deeper than the limit, middle left out */
	uint64_t late;         /* ticks later than half a period */
	uint64_t late_histogram[ACCOUNTING_LATE_BUCKETS]; /* < 1/16, 1/8, 1/4, 1/2, 1, 2, 4 periods, and
							     beyond */
	uint64_t context_invalid; /* times the well-known global was there and not of the grammar */
	uint64_t node_overflow;   /* samples charged to <other> since the tree was full */
};

bool accounting_is_balanced(const struct accounting *accounting);
void accounting_add(struct accounting *sum, const struct accounting *more);
/* Notes how late a tick was. */
void accounting_note_lateness(struct accounting *accounting, uint64_t late_ns, uint64_t period_ns);
