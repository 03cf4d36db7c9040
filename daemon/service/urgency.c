/* SPDX-License-Identifier: MIT
 *
 * See urgency.h. The class comes back only when all of the burst is saved up again: changing it is a system
 * call, which a flood of requests must not buy with each of them.
 */
#include "daemon/service/urgency.h"

#include <sched.h>
#include <time.h>

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void be_urgent(struct urgency *urgency, bool urgent)
{
	struct sched_param param = {.sched_priority = urgent ? sched_get_priority_min(SCHED_FIFO) : 0};

	if (sched_setscheduler(0, urgent ? SCHED_FIFO : SCHED_OTHER, &param) == 0)
		urgency->granted = urgent;
	else if (urgent)
		urgency->wanted = false;
}

void urgency_begin(struct urgency *urgency, bool wanted)
{
	*urgency = (struct urgency){
		.wanted = wanted,
		.credit_ns = URGENCY_BURST_NS,
		.now_ns = clock_ns(CLOCK_MONOTONIC),
		.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID),
	};
	if (wanted)
		be_urgent(urgency, true);
}

uint64_t urgency_due_ns(const struct urgency *urgency)
{
	if (!urgency->wanted || urgency->granted)
		return UINT64_MAX;
	return urgency->now_ns + (uint64_t)(URGENCY_BURST_NS - urgency->credit_ns) * URGENCY_SHARE;
}

void urgency_check(struct urgency *urgency)
{
	uint64_t now_ns, cpu_ns;

	if (!urgency->wanted)
		return;
	now_ns = clock_ns(CLOCK_MONOTONIC);
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	urgency->credit_ns += (int64_t)((now_ns - urgency->now_ns) / URGENCY_SHARE);
	if (urgency->credit_ns > URGENCY_BURST_NS)
		urgency->credit_ns = URGENCY_BURST_NS;
	if (urgency->granted)
		urgency->credit_ns -= (int64_t)(cpu_ns - urgency->cpu_ns);
	urgency->now_ns = now_ns;
	urgency->cpu_ns = cpu_ns;

	if (urgency->granted && urgency->credit_ns <= 0)
		be_urgent(urgency, false);
	else if (!urgency->granted && urgency->credit_ns == URGENCY_BURST_NS)
		be_urgent(urgency, true);
}
