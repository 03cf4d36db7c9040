/* SPDX-License-Identifier: MIT
 *
 * What one sample costs. All contenders take turns in every round, each round begins with another one, and
 * the same thing is measured twice under two names; so what the machine does meanwhile falls on all alike,
 * and shows. Two modes: back to back, the code with warm caches, and at 1 kHz as the sampler thread has it,
 * at its priority and with its way to sleep, where each sample comes after a sleep, a wake-up and whatever
 * ran in between.
 *
 * In the second mode the wake-up is part of the figure. A contender too slow for 1 kHz misses deadlines; they
 * are not made up for.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "daemon/sampling/cadence.h"
#include "daemon/sampling/sleep.h"
#include "tests/bench/contenders.h"
#include "tests/bench/driver.h"

/* Samples before the first round: until caches and predictions have seen everything. */
#define WARM_UP_SAMPLES 30
/* How long each contender has in each round. */
#define BACK_TO_BACK_NS UINT64_C(12000000)
#define TICKING_NS UINT64_C(50000000)
/* And how often it samples at least, however slow it is. */
#define MIN_SAMPLES 3
#define MAX_SAMPLES 3000
#define PERIOD_NS UINT64_C(1000000)

struct bench {
	struct contenders *contenders;
	uint64_t cost_ns[CONTENDERS]; /* as found in the warm-up: how many samples fit in a round */
	struct cadence cadence;
	int epoll_fd, event_fd; /* where the sampler has its mailbox */
};

static int warm_up(struct bench *bench, enum contender which)
{
	uint64_t start_ns = driver_cpu_ns();
	int frames = 0, r = 0;

	for (unsigned i = 0; i < WARM_UP_SAMPLES && r >= 0; i++) {
		r = contenders_sample(bench->contenders, which);
		frames = r > frames ? r : frames;
	}
	if (r < 0) {
		fprintf(stderr, "%s: a sample failed: %d\n", contender_names[which], r);
		return r;
	}
	bench->cost_ns[which] = (driver_cpu_ns() - start_ns) / WARM_UP_SAMPLES;
	printf("depth %s %d\n", contender_names[which], frames);
	return 0;
}

static unsigned samples_in(uint64_t ns, uint64_t each_ns)
{
	uint64_t samples = each_ns ? ns / each_ns : MAX_SAMPLES;

	return (unsigned)(samples < MIN_SAMPLES   ? MIN_SAMPLES
			  : samples > MAX_SAMPLES ? MAX_SAMPLES
						  : samples);
}

static void sleep_to_deadline(struct bench *bench)
{
	struct cadence_due due;
	struct epoll_event event;

	do
		sleep_until(bench->epoll_fd, &event, 1, bench->cadence.deadline_ns);
	while (!cadence_due(&bench->cadence, driver_now_ns(), &due));
}

static void measure(struct bench *bench, enum contender which, bool ticking)
{
	uint64_t each_ns = bench->cost_ns[which];
	unsigned samples = ticking ? samples_in(TICKING_NS, each_ns > PERIOD_NS ? each_ns : PERIOD_NS)
				   : samples_in(BACK_TO_BACK_NS, each_ns);
	uint64_t calls = contenders_calls(bench->contenders), cpu_ns;
	unsigned failed = 0;

	cadence_start(&bench->cadence, PERIOD_NS, driver_now_ns(), which + 1);
	cpu_ns = driver_cpu_ns();
	for (unsigned i = 0; i < samples; i++) {
		if (ticking)
			sleep_to_deadline(bench);
		failed += contenders_sample(bench->contenders, which) < 0;
	}
	cpu_ns = driver_cpu_ns() - cpu_ns;
	calls = contenders_calls(bench->contenders) - calls;
	printf("%s %s %.1f %.3f %.4f\n", ticking ? "1khz" : "back", contender_names[which],
		(double)cpu_ns / samples, (double)calls / samples, (double)failed / samples);
}

/* The priority of the sampler thread, if it may be had. */
static void be_like_the_sampler(bool on)
{
	struct sched_param param = {.sched_priority = on ? sched_get_priority_min(SCHED_FIFO) : 0};

	sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &param);
}

static int open_epoll(struct bench *bench)
{
	struct epoll_event event = {.events = EPOLLIN};

	bench->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	bench->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return bench->epoll_fd < 0 || bench->event_fd < 0 ||
			       epoll_ctl(bench->epoll_fd, EPOLL_CTL_ADD, bench->event_fd, &event) < 0
		       ? -errno
		       : 0;
}

int driver_sample(char **arguments)
{
	_cleanup_(contenders_freep) struct contenders *contenders = NULL;
	unsigned rounds = (unsigned)atoi(arguments[1]);
	struct bench bench = {0};

	if (contenders_new((pid_t)atoi(arguments[0]), &contenders) != 0 || open_epoll(&bench) < 0)
		return 1;
	bench.contenders = contenders;
	for (unsigned which = 0; which < CONTENDERS; which++)
		if (warm_up(&bench, which) < 0)
			return 1;
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < CONTENDERS; i++) {
			enum contender which = (round + i) % CONTENDERS;

			if (which != CONTENDER_NOTHING)
				measure(&bench, which, false);
		}
		be_like_the_sampler(true);
		for (unsigned i = 0; i < CONTENDERS; i++)
			measure(&bench, (round + i) % CONTENDERS, true);
		be_like_the_sampler(false);
	}
	return 0;
}

int driver_loop(char **arguments)
{
	_cleanup_(contenders_freep) struct contenders *contenders = NULL;
	unsigned count = (unsigned)atoi(arguments[2]);
	unsigned which = 0;

	while (which < CONTENDERS && strcmp(arguments[1], contender_names[which]) != 0)
		which++;
	if (which == CONTENDERS || contenders_new((pid_t)atoi(arguments[0]), &contenders) != 0)
		return 1;
	for (unsigned i = 0; i < count; i++)
		if (contenders_sample(contenders, which) < 0)
			return 1;
	return 0;
}
