/* SPDX-License-Identifier: MIT
 *
 * The affinity of the calling thread, narrowed to one CPU for the length of a sample. The thread does not
 * become a guest there before it runs there: sched_setaffinity() returns on the new CPU. A SCHED_FIFO thread
 * preempts what runs on it at once; an ordinary one waits for its turn, and then the process it came for is
 * off the CPU just as well.
 */
#include "reader/placement.h"

#include <errno.h>
#include <sched.h>
#include <stdbool.h>

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

void placement_leave(void)
{
	if (!away)
		return;
	(void)sched_setaffinity(0, sizeof(home), &home);
	away = false;
}
