/* SPDX-License-Identifier: MIT
 *
 * See perch.h. A thread of this class stays where it is put: it need not be bound to a CPU, only to have been
 * there.
 */
#include "daemon/sampling/perch.h"

#include <sched.h>
#include <unistd.h>

#include "reader/placement.h"

void perch_init(struct perch *perch)
{
	*perch = (struct perch){.cpu = -1, .patience = PERCH_LEAST_PATIENCE};
}

void perch_wake(struct perch *perch, int cpu)
{
	perch->cpu = cpu;
	perch->ticks++;
	perch->in_the_way = false;
}

bool perch_suspects(const struct perch *perch, unsigned disturbed)
{
	return disturbed >= PERCH_SUSPICIOUS && perch->ticks >= perch->patience;
}

void perch_note(struct perch *perch, int cpu)
{
	perch->in_the_way |= cpu == perch->cpu;
}

static bool go(int cpu)
{
	if (placement_join(cpu) < 0)
		return false;
	placement_leave();
	return true;
}

/* From one where it was long in nobody's way it moves at once the next time. */
static void grow_patient(struct perch *perch)
{
	uint32_t more = perch->patience * 2;

	if (perch->ticks >= more)
		perch->patience = PERCH_LEAST_PATIENCE;
	else
		perch->patience = more < PERCH_MOST_PATIENCE ? more : PERCH_MOST_PATIENCE;
	perch->ticks = 0;
}

static void go_on(const struct perch *perch)
{
	int cpus = (int)sysconf(_SC_NPROCESSORS_CONF); /* reads a file */

	for (int step = 1; step < cpus; step++)
		if (go((perch->cpu + step) % cpus))
			return;
}

void perch_settle(struct perch *perch)
{
	if (perch->in_the_way) {
		grow_patient(perch);
		go_on(perch);
	} else if (perch->patience < PERCH_MOST_PATIENCE && sched_getcpu() != perch->cpu) {
		/* Where no CPU is better than another, going back would be for nothing. */
		go(perch->cpu);
	}
}
