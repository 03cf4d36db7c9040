/* SPDX-License-Identifier: MIT
 *
 * A PHP process and a clock of the test's own, in place of reader/php_process.c, reader/activity.c and
 * daemon/sampling/clock.c: the linker takes these and leaves those in their libraries. So a test says what
 * time it is, how far the process's clocks have come, and what a look at it finds.
 */
#pragma once

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/sampling/clock.h"
#include "daemon/sampling/sampling.h"
#include "daemon/sampling/target.h"

#define MS 1000000ull
/* When the fake clock begins: not 0, and not a realtime. */
#define START_NS (1000000 * MS)

struct fake_process {
	uint64_t now_ns, cpu_ns; /* the second: the sampler's */
	struct activity_clocks clocks;
	bool blocked;
	bool queued;            /* ready, and off the CPU */
	bool driven_off;        /* by the thread that looks */
	bool blocks_soon;       /* when its page is read next */
	uint64_t outs_ahead;    /* as many of its switch-ins were not counted */
	bool page_is_not_there; /* no /proc/PID/sched */
	int clocks_error;
	int answer; /* of php_process_sample() */
	struct php_sample sample;
	struct frame frames[2]; /* of it */
	struct counters counters;
	char sapi[32];
	unsigned looks, closed, pages;
};

static struct fake_process fake;

static struct php_binary fake_binary;

uint64_t monotonic_now_ns(void)
{
	return fake.now_ns;
}

uint64_t thread_cpu_ns(void)
{
	return fake.cpu_ns;
}

int64_t realtime_now_ns(void)
{
	return (int64_t)(fake.now_ns + 1700000000000 * MS);
}

int php_process_open(pid_t pid, const struct frame_names *names, const struct php_process_options *options,
	struct php_process **ret_process, char *ret_why, size_t why_bytes)
{
	return -ENOSYS;
}

void php_process_set_placement(struct php_process *process, enum placement placement)
{
}

void php_process_close(struct php_process *process)
{
	fake.closed++;
}

pid_t php_process_pid(const struct php_process *process)
{
	return 4711;
}

const struct php_binary *php_process_binary(const struct php_process *process)
{
	snprintf(fake_binary.version, sizeof(fake_binary.version), "8.2.29");
	snprintf(fake_binary.sapi, sizeof(fake_binary.sapi), "%s", fake.sapi);
	return &fake_binary;
}

struct activity *php_process_activity(struct php_process *process)
{
	return NULL;
}

int php_process_sample(struct php_process *process, struct php_sample *ret_sample)
{
	fake.looks++;
	*ret_sample = fake.sample;
	return fake.answer;
}

int php_process_counters(struct php_process *process, struct counters *ret_counters)
{
	*ret_counters = fake.counters;
	return 0;
}

int activity_open(pid_t pid, struct activity **ret_activity)
{
	*ret_activity = (struct activity *)&fake;
	return 0;
}

void activity_close(struct activity *activity)
{
}

int activity_read_clocks(struct activity *activity, struct activity_clocks *ret_clocks)
{
	*ret_clocks = fake.clocks;
	return fake.clocks_error;
}

int activity_read_syscall(struct activity *activity, struct activity_syscall *ret_syscall)
{
	*ret_syscall = (struct activity_syscall){.blocked = fake.blocked};
	return 0;
}

int activity_read_place(struct activity *activity, struct activity_place *ret_place)
{
	*ret_place = (struct activity_place){.ready = !fake.blocked};
	return 0;
}

/* The looking thread's came to its CPU at 77. */
static struct activity *const fake_own_thread = (struct activity *)&fake;

int activity_read_schedule(struct activity *activity, struct activity_schedule *ret_schedule)
{
	bool off_cpu;

	if (fake.page_is_not_there)
		return -EOPNOTSUPP;
	fake.blocked |= fake.blocks_soon;
	fake.blocks_soon = false;
	off_cpu = fake.blocked || fake.queued || fake.driven_off;
	fake.pages++;
	*ret_schedule = (struct activity_schedule){
		.switch_outs = fake.clocks.switch_ins - !off_cpu + fake.outs_ahead,
		.accounted_ns = activity == fake_own_thread || fake.driven_off ? 77 : 42,
	};
	return 0;
}

bool activity_knows_syscall(const struct activity *activity)
{
	return true;
}

uint64_t activity_reads(void)
{
	return 0;
}

/* ---- what happens to it ---- */

/* It runs, or sleeps and is switched in again at the end of it. */
static inline void fake_run(uint64_t ns)
{
	fake.now_ns += ns;
	fake.clocks.run_ns += ns;
	fake.clocks.switch_ins++;
	fake.blocked = fake.queued = false;
}

/* It is ready, and gets no CPU. */
static inline void fake_queue(uint64_t ns)
{
	fake.now_ns += ns;
	fake.blocked = false;
	fake.queued = true;
}

static inline void fake_sleep(uint64_t ns)
{
	fake.now_ns += ns;
	fake.blocked = true;
	fake.queued = false;
}

/* A look finds it in @function, which its main script has called. */
static inline void fake_in_function(struct sampling *sampling, const char *function)
{
	struct function_name main = {.name = "{main}", .file = "/srv/index.php", .line = 1};
	struct function_name name = {.name = function, .file = "/srv/index.php", .line = 10};

	fake.answer = 0;
	fake.frames[0] = (struct frame){.name_id = frame_table_intern(sampling->frames, &name), .line = 12};
	fake.frames[1] = (struct frame){.name_id = frame_table_intern(sampling->frames, &main), .line = 3};
	fake.sample.frames = fake.frames;
	fake.sample.count = 2;
	fake.sample.request.active = true;
}

/* It serves another request, which began at @began_ns. */
static inline void fake_request(const char *path, uint64_t began_ns)
{
	struct request *request = &fake.sample.request;
	uint64_t generation = request->generation + 1;

	*request = (struct request){.generation = generation, .active = true, .script_began_ns = began_ns};
	snprintf(request->method, sizeof(request->method), "GET");
	snprintf(request->path, sizeof(request->path), "%s", path);
}

static inline void fake_idle(void)
{
	fake.answer = PHP_PROCESS_E_IDLE;
	fake.sample.count = 0;
	fake.sample.request.active = false;
	fake.sample.request.context_state = CONTEXT_ABSENT;
}

static inline struct trace_context fake_context(const char *text)
{
	struct trace_context context;

	if (trace_context_parse(text, strlen(text), &context) < 0)
		abort();
	return context;
}

/* The well-known global is set; NULL: unset; "?": to something that is no context. */
static inline void fake_set_global(const char *text)
{
	struct request *request = &fake.sample.request;

	request->context = (struct trace_context){0};
	request->context_state = CONTEXT_ABSENT;
	if (text && *text == '?') {
		request->context_state = CONTEXT_INVALID;
	} else if (text) {
		request->context = fake_context(text);
		request->context_state = CONTEXT_VALID;
	}
}

/* ---- a target that is this process ---- */

static inline struct engine_options fake_options(void)
{
	return (struct engine_options){
		.period_ns = 10 * MS,
		.min_period_ns = MS / 10,
		.max_period_ns = 1000 * MS,
		.max_depth = 100,
		.threads = 1,
		.max_targets = 4,
		.max_frames = 1000,
		.max_nodes = 1000,
		.retained_units = 100,
		.retained_bytes = 1 << 20,
		.retained_ns = 60000 * MS,
		.auto_max_ns = 60000 * MS,
		.trust_traceparent = true,
	};
}

static inline struct target *fake_target(struct sampling *sampling)
{
	struct discovered identity = {.pid = 4711, .start_time_ticks = 99, .uid = 33, .pool = "www"};

	return target_new(sampling, &identity, NULL, -1);
}

static inline int fake_set_up(struct sampling *sampling, struct target **ret_target)
{
	struct engine_options options = fake_options();

	memset(&fake, 0, sizeof(fake));
	fake.now_ns = START_NS;
	fake.clocks = (struct activity_clocks){.run_ns = 500 * MS, .queue_ns = 5 * MS, .switch_ins = 10};
	snprintf(fake.sapi, sizeof(fake.sapi), "fpm-fcgi");
	if (sampling_init(sampling, &options) < 0)
		return -1;
	presence_observer_init(&sampling->observer);
	fake_idle();
	*ret_target = fake_target(sampling);
	return *ret_target ? 0 : -1;
}

/* One tick, on time. */
static inline enum target_fate fake_tick(struct target *target, struct sampling *sampling)
{
	struct cadence_due due = {.expected = 1, .period_ns = target->period_ns};

	return target_tick(target, sampling, &due);
}

/* ---- sums ---- */

/* All nodes of @function together. */
static inline struct profile_node time_of(const struct profile *profile, const char *function)
{
	struct profile_node sum = {0};

	for (size_t i = 0; i < profile->node_count; i++) {
		const struct profile_node *node = &profile->nodes[i];

		if (strcmp(profile->frames[node->frame].name, function) != 0)
			continue;
		sum.samples += node->samples;
		sum.wall_ns += node->wall_ns;
		sum.cpu_ns += node->cpu_ns;
		sum.queue_ns += node->queue_ns;
	}
	return sum;
}

/* The tree adds up to what the unit says of itself. */
static inline void assert_conserved(const struct unit_result *unit)
{
	struct profile_node sum = profile_sum(unit->profile);

	assert_int_equal(sum.wall_ns, unit->duration_ns);
	assert_int_equal(sum.cpu_ns, unit->cpu_ns);
	assert_int_equal(sum.queue_ns, unit->queue_ns);
	assert_true(accounting_is_balanced(&unit->accounting));
	assert_int_equal(sum.samples,
		unit->accounting.taken + unit->accounting.unchanged + unit->accounting.torn_lost);
}
