/* SPDX-License-Identifier: MIT
 *
 * What it costs to be on another CPU for a moment, in the two ways there are: the thread goes there itself
 * (placement_join()), or it hands the work to a thread that lives there and waits for the answer. And what a
 * visit costs that finds the thread there already. Both are SCHED_FIFO, as samplers are.
 */
#include "tests/bench/driver.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "reader/placement.h"
#include "symbols/cleanup.h"

#define MAX_VISITS 100000

struct resident {
	sem_t asked, answered;
	bool ends;
};

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

/* The next CPU after @cpu that this thread may run on; @cpu if there is no other. */
static int next_cpu(int cpu)
{
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return cpu;
	for (int step = 1; step < CPU_SETSIZE; step++)
		if (CPU_ISSET((unsigned)((cpu + step) % CPU_SETSIZE), &allowed))
			return (cpu + step) % CPU_SETSIZE;
	return cpu;
}

static void *live_there(void *context)
{
	struct resident *resident = context;

	for (;;) {
		sem_wait(&resident->asked);
		if (resident->ends)
			return NULL;
		sem_post(&resident->answered);
	}
}

static void tell(const char *how, uint64_t *times, size_t count, uint64_t cpu_ns)
{
	qsort(times, count, sizeof(*times), compare);
	printf("visit %s %llu %llu\n", how, (unsigned long long)times[count / 2],
		(unsigned long long)(cpu_ns / count));
}

/* To the other CPU and to stay there, so that it is one migration a visit; or to the one it is on. */
static int go_there(const char *how, bool elsewhere, uint64_t *times, size_t count)
{
	uint64_t cpu_ns = driver_process_cpu_ns();

	for (size_t i = 0; i < count; i++) {
		int cpu = sched_getcpu();
		uint64_t start_ns = driver_now_ns();

		if (placement_join(elsewhere ? next_cpu(cpu) : cpu) < 0)
			return 1;
		placement_leave();
		times[i] = driver_now_ns() - start_ns;
	}
	tell(how, times, count, driver_process_cpu_ns() - cpu_ns);
	return 0;
}

static int send_there(uint64_t *times, size_t count)
{
	struct resident resident = {.ends = false};
	int here = sched_getcpu(), there = next_cpu(here);
	uint64_t cpu_ns;
	cpu_set_t only;
	pthread_t thread;

	sem_init(&resident.asked, 0, 0);
	sem_init(&resident.answered, 0, 0);
	if (pthread_create(&thread, NULL, live_there, &resident) != 0)
		return 1;
	CPU_ZERO(&only);
	CPU_SET((unsigned)there, &only);
	if (pthread_setaffinity_np(thread, sizeof(only), &only) != 0 || placement_join(here) < 0)
		return 1;
	cpu_ns = driver_process_cpu_ns();
	for (size_t i = 0; i < count; i++) {
		uint64_t start_ns = driver_now_ns();

		sem_post(&resident.asked);
		sem_wait(&resident.answered);
		times[i] = driver_now_ns() - start_ns;
	}
	cpu_ns = driver_process_cpu_ns() - cpu_ns;
	placement_leave();
	resident.ends = true;
	sem_post(&resident.asked);
	pthread_join(thread, NULL);
	tell("send", times, count, cpu_ns);
	return 0;
}

int driver_visit(char **arguments)
{
	const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
	size_t count = strtoul(arguments[0], NULL, 10);
	_cleanup_free_ uint64_t *times = NULL;

	if (count == 0 || count > MAX_VISITS || next_cpu(sched_getcpu()) == sched_getcpu()) {
		fprintf(stderr, "a number of visits up to %d, and two CPUs to run on\n", MAX_VISITS);
		return 1;
	}
	times = calloc(count, sizeof(*times));
	if (!times)
		return 1;
	/* Threads inherit it. Without the permission the figures are those of ordinary threads. */
	(void)sched_setscheduler(0, SCHED_FIFO, &lowest);
	return go_there("stay", false, times, count) || go_there("go", true, times, count) ||
	       send_there(times, count);
}
