/* SPDX-License-Identifier: MIT
 *
 * Sums over struct accounting. The counters are raised by whoever takes the tick; this file knows only how
 * they add up and that they must balance, so that "how far can I trust this?" has one answer everywhere.
 */
#include "daemon/profile/accounting.h"

bool accounting_is_balanced(const struct accounting *accounting)
{
	return accounting->expected == accounting->taken + accounting->unchanged + accounting->torn_lost +
					       accounting->unreadable + accounting->idle + accounting->missed;
}

void accounting_add(struct accounting *sum, const struct accounting *more)
{
	sum->expected += more->expected;
	sum->taken += more->taken;
	sum->unchanged += more->unchanged;
	sum->torn_lost += more->torn_lost;
	sum->unreadable += more->unreadable;
	sum->idle += more->idle;
	sum->missed += more->missed;

	sum->torn_retried += more->torn_retried;
	sum->truncated += more->truncated;
	sum->late += more->late;
	for (int i = 0; i < ACCOUNTING_LATE_BUCKETS; i++)
		sum->late_histogram[i] += more->late_histogram[i];
	sum->context_invalid += more->context_invalid;
	sum->node_overflow += more->node_overflow;
}

void accounting_note_lateness(struct accounting *accounting, uint64_t late_ns, uint64_t period_ns)
{
	int bucket = 0;

	/* Multiplied out rather than divided, so that the edges are exact for periods that 16 does not
	 * divide. */
	while (bucket < ACCOUNTING_LATE_BUCKETS - 1 && late_ns * 16 >= period_ns << bucket)
		bucket++;
	accounting->late_histogram[bucket]++;
	if (late_ns * 2 > period_ns)
		accounting->late++;
}
