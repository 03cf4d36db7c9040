/* SPDX-License-Identifier: MIT
 *
 * See cadence.h.
 */
#include "daemon/sampling/cadence.h"

static uint64_t next_random(struct cadence *cadence)
{
	cadence->random ^= cadence->random << 13;
	cadence->random ^= cadence->random >> 7;
	cadence->random ^= cadence->random << 17;
	return cadence->random;
}

/* The deadline of grid point @tick: up to a quarter of the period before or after it. Neighbours are half a
 * period apart at least, so deadlines never change places. */
static void aim(struct cadence *cadence, uint64_t tick)
{
	uint64_t quarter = cadence->period_ns / 4;

	cadence->tick = tick;
	cadence->deadline_ns = cadence->origin_ns + tick * cadence->period_ns - quarter +
			       next_random(cadence) % (2 * quarter + 1);
}

void cadence_start(struct cadence *cadence, uint64_t period_ns, uint64_t now_ns, uint64_t seed)
{
	*cadence = (struct cadence){
		.period_ns = period_ns,
		.origin_ns = now_ns,
		.random = seed | 1,
	};
	aim(cadence, 1);
}

bool cadence_due(struct cadence *cadence, uint64_t now_ns, struct cadence_due *ret_due)
{
	uint64_t served, late_ns;

	if (now_ns < cadence->deadline_ns)
		return false;

	/* Later grid points have passed too when the sampler was kept away: the newest one is served now. */
	served = cadence->tick;
	late_ns = now_ns - cadence->deadline_ns;
	if (now_ns - cadence->origin_ns > (served + 1) * cadence->period_ns) {
		uint64_t passed = (now_ns - cadence->origin_ns) / cadence->period_ns;

		*ret_due = (struct cadence_due){
			.expected = passed - served + 1,
			.late_ns = now_ns - cadence->origin_ns - passed * cadence->period_ns,
		};
		aim(cadence, passed + 1);
	} else {
		*ret_due = (struct cadence_due){.expected = 1, .late_ns = late_ns};
		aim(cadence, served + 1);
	}
	return true;
}
