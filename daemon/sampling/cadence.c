/* SPDX-License-Identifier: MIT
 *
 * See cadence.h.
 */
#include "daemon/sampling/cadence.h"

/* Gaps of more periods than this (a suspended machine) are divided, not walked through. */
#define LONGEST_WALK 1000

static uint64_t next_random(struct cadence *cadence)
{
	cadence->random ^= cadence->random << 13;
	cadence->random ^= cadence->random >> 7;
	cadence->random ^= cadence->random << 17;
	return cadence->random;
}

/* Half a period to one and a half: one on average. */
static uint64_t interval(struct cadence *cadence)
{
	return cadence->period_ns / 2 + next_random(cadence) % (cadence->period_ns + 1);
}

void cadence_start(struct cadence *cadence, uint64_t period_ns, uint64_t now_ns, uint64_t seed)
{
	*cadence = (struct cadence){.period_ns = period_ns, .random = seed | 1};
	cadence->deadline_ns = now_ns + interval(cadence);
}

bool cadence_due(struct cadence *cadence, uint64_t now_ns, struct cadence_due *ret_due)
{
	uint64_t expected = 0, served_ns = 0;

	if (now_ns < cadence->deadline_ns)
		return false;
	if (now_ns - cadence->deadline_ns > LONGEST_WALK * cadence->period_ns) {
		expected = (now_ns - cadence->deadline_ns) / cadence->period_ns;
		cadence->deadline_ns += expected * cadence->period_ns;
	}
	do {
		served_ns = cadence->deadline_ns;
		cadence->deadline_ns += interval(cadence);
		expected++;
	} while (cadence->deadline_ns <= now_ns);
	*ret_due = (struct cadence_due){
		.expected = expected, .late_ns = now_ns - served_ns, .period_ns = cadence->period_ns};
	return true;
}
