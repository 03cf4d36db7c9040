/* SPDX-License-Identifier: MIT
 *
 * The measuring half of `make bench` and `make oracle`: tests/bench/run starts the targets and makes the
 * tables, this program, linked from the very libraries that the daemon is, takes the samples and stops the
 * time. CPU time is the thread's own clock, so that what others do on the machine counts only as far as it
 * spoils the caches.
 */
#include "tests/bench/driver.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct verb {
	const char *name;
	int arguments;
	int (*run)(char **arguments);
	const char *usage;
};

static const struct verb verbs[] = {
	{"sample", 2, driver_sample, "PID ROUNDS"},
	{"loop", 3, driver_loop, "PID CONTENDER COUNT"},
	{"attach", 2, driver_attach, "PID ROUNDS"},
	{"echo", 1, driver_echo, "SOCKET"},
	{"visit", 1, driver_visit, "COUNT"},
	{"oracle", 5, driver_oracle, "PID READER COUNT PERIOD_US MAX_SECONDS"},
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

uint64_t driver_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t driver_process_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t driver_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(argv[1], verbs[i].name) == 0 && argc == verbs[i].arguments + 2)
			return verbs[i].run(argv + 2);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		fprintf(stderr, "usage: %s %s %s\n", argv[0], verbs[i].name, verbs[i].usage);
	return 2;
}
