/* SPDX-License-Identifier: MIT
 *
 * The service's thread under SCHED_FIFO, at the lowest priority, as long as it takes little.
 *
 * A worker that calls finish() waits in recv(), amid others that want its CPU. An ordinary thread that wakes
 * up there gets its turn when the one that runs has had its, some milliseconds later, twice for each answer;
 * neither nice nor a shorter slice changes that. But what this thread does is for its clients to decide, and
 * some are hostile: nobody may take a CPU from others by asking much. So it has a tenth of one CPU to spend
 * in that class, a little at a time, and is an ordinary thread when that is used up. Work in the other class
 * costs nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define URGENCY_SHARE 10           /* one in so many of the nanoseconds that pass may be spent */
#define URGENCY_BURST_NS 2000000ll /* most that is saved up; with which it begins */

struct urgency {
	bool wanted, granted;
	int64_t credit_ns;
	uint64_t now_ns, cpu_ns; /* as of the last look; of the thread */
};

/* From the thread itself, before it serves: asks for the class if @wanted. Where that is refused, it stays an
 * ordinary thread for good. */
void urgency_begin(struct urgency *urgency, bool wanted);

/* When to check again though there is no work, so that the next piece finds the class back; CLOCK_MONOTONIC,
 * UINT64_MAX: no need to. */
uint64_t urgency_due_ns(const struct urgency *urgency);

/* Between two pieces of work: changes the class when it is time to. */
void urgency_check(struct urgency *urgency);
