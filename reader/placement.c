/* SPDX-License-Identifier: MIT
 *
 * The affinity of the calling thread, narrowed to one CPU for the length of a sample. The thread does not
 * become a guest there before it runs there: sched_setaffinity() returns on the new CPU. A SCHED_FIFO thread
 * preempts what runs on it at once.
 */
#include "reader/placement.h"

#include <errno.h>
#include <sched.h>

/* From one torn snapshot in 16 on. Where three of four tore, a function's share was off by 4 points. */
#define HABIT_FROM (65536 / 16)
/* How many of the last snapshots are kept in mind. */
#define MEMORY 64
#define VISITS_IN_A_ROW 15

static _Thread_local cpu_set_t home; /* what placement_leave() goes back to */
static _Thread_local bool away;
static _Thread_local int joined_cpu;

int placement_join(int cpu)
{
	cpu_set_t only;

	if (away && cpu == joined_cpu)
		return 0;
	if (!away && sched_getaffinity(0, sizeof(home), &home) < 0)
		return -errno;
	if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET((unsigned)cpu, &home))
		return -EINVAL;
	CPU_ZERO(&only);
	CPU_SET((unsigned)cpu, &only);
	if (sched_setaffinity(0, sizeof(only), &only) < 0)
		return -errno;
	away = true;
	joined_cpu = cpu;
	return 0;
}

bool placement_is_of_use(void)
{
	return sched_getscheduler(0) == SCHED_FIFO;
}

void placement_leave(void)
{
	if (!away)
		return;
	(void)sched_setaffinity(0, sizeof(home), &home);
	away = false;
}

bool placement_is_habit(struct placement_habit *habit)
{
	if (habit->torn >= HABIT_FROM && habit->visits < VISITS_IN_A_ROW) {
		habit->visits++;
		return true;
	}
	habit->visits = 0;
	return false;
}

void placement_note_first(struct placement_habit *habit, bool torn)
{
	habit->torn -= habit->torn / MEMORY;
	if (torn)
		habit->torn += 65536 / MEMORY;
}
