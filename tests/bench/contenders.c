/* SPDX-License-Identifier: MIT
 *
 * Each has what it needs for itself (caches, predictions, proofs), so that none is served by what another has
 * read, except that CONTENDER_AGAIN is CONTENDER_SAMPLE with everything it has. The tick is the engine's own,
 * on a target that no sampler thread owns.
 */
#include "tests/bench/contenders.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/sampling/target.h"
#include "reader/php_process.h"
#include "reader/remote.h"
#include "tests/bench/naive_reader.h"

#define MILLISECOND_NS UINT64_C(1000000)

const char *const contender_names[CONTENDERS] = {
	[CONTENDER_SNAPSHOT] = "snapshot",
	[CONTENDER_SAMPLE] = "sample",
	[CONTENDER_TICK] = "tick",
	[CONTENDER_NAIVE] = "naive",
	[CONTENDER_AGAIN] = "again",
	[CONTENDER_NOTHING] = "nothing",
};

struct contenders {
	struct sampling sampling;
	struct php_sample sample;

	struct php_process *snapshot;

	struct php_process *process;
	struct activity_clocks clocks; /* of the last sample of @process */
	bool proved;                   /* and it was blocked then */

	struct target *target;

	struct naive_reader naive;
};

/* As the daemon has them by default, but for the rate. */
static const struct engine_options options = {
	.period_ns = MILLISECOND_NS,
	.min_period_ns = MILLISECOND_NS / 10,
	.max_period_ns = 1000 * MILLISECOND_NS,
	.max_depth = 512,
	.max_targets = 1,
	.threads = 1,
	.max_frames = 65536,
	.max_nodes = 16384,
	.retained_units = 64,
	.retained_bytes = 1 << 20,
	.retained_ns = 60000 * MILLISECOND_NS,
	.auto_max_ns = 3600000 * MILLISECOND_NS,
};

static const struct php_process_options as_it_runs;

static int open_process(struct contenders *contenders, pid_t pid, struct php_process **ret_process)
{
	char why[256] = "";
	int r = php_process_open(
		pid, &contenders->sampling.names, &as_it_runs, ret_process, why, sizeof(why));

	if (r != 0)
		fprintf(stderr, "process %d: %s\n", (int)pid, why);
	return r;
}

static int open_target(struct contenders *contenders, pid_t pid)
{
	struct php_process *process = NULL;
	struct discovered identity;
	int r = discovery_identify(pid, &identity);

	if (r == 0)
		r = open_process(contenders, pid, &process);
	if (r != 0)
		return r;
	contenders->target =
		target_new(&contenders->sampling, &identity, process, (int)syscall(SYS_pidfd_open, pid, 0));
	return contenders->target ? 0 : -ENOMEM;
}

int contenders_new(pid_t pid, struct contenders **ret_contenders)
{
	_cleanup_(contenders_freep) struct contenders *contenders = calloc(1, sizeof(*contenders));
	int r;

	if (!contenders)
		return -ENOMEM;
	r = sampling_init(&contenders->sampling, &options);
	if (r == 0)
		r = open_process(contenders, pid, &contenders->snapshot);
	if (r == 0)
		r = open_process(contenders, pid, &contenders->process);
	if (r == 0)
		r = open_target(contenders, pid);
	if (r != 0)
		return r;
	contenders->naive.pid = pid;
	contenders->naive.binary = php_process_binary(contenders->process);
	*ret_contenders = TAKE(contenders);
	return 0;
}

void contenders_free(struct contenders *contenders)
{
	if (contenders->target)
		target_free(contenders->target, &contenders->sampling);
	php_process_close(contenders->process);
	php_process_close(contenders->snapshot);
	sampling_deinit(&contenders->sampling);
	free(contenders);
}

static int take_snapshot(struct contenders *contenders, struct php_process *process)
{
	int r = php_process_sample(process, &contenders->sample);

	return r == 0 ? (int)contenders->sample.count : r < 0 ? r : -r;
}

/* The order and the conditions of target_tick(). */
static int take_sample(struct contenders *contenders)
{
	struct activity *activity = php_process_activity(contenders->process);
	struct activity_clocks clocks;
	struct activity_syscall syscall;
	int r = activity_read_clocks(activity, &clocks);

	if (r < 0)
		return r;
	if (contenders->proved && clocks.switch_ins == contenders->clocks.switch_ins)
		return 0;
	contenders->clocks = clocks;
	contenders->proved = activity_read_syscall(activity, &syscall) == 0 && syscall.blocked;
	return take_snapshot(contenders, contenders->process);
}

static int take_tick(struct contenders *contenders)
{
	const struct cadence_due due = {.expected = 1, .period_ns = MILLISECOND_NS};

	if (target_tick(contenders->target, &contenders->sampling, &due) != TARGET_LIVES)
		return -ESRCH;
	return contenders->target->accounting.unreadable > 0 ? -EIO : 0;
}

int contenders_sample(struct contenders *contenders, enum contender which)
{
	switch (which) {
	case CONTENDER_SNAPSHOT:
		return take_snapshot(contenders, contenders->snapshot);
	case CONTENDER_SAMPLE:
	case CONTENDER_AGAIN:
		return take_sample(contenders);
	case CONTENDER_TICK:
		return take_tick(contenders);
	case CONTENDER_NAIVE:
		return naive_reader_sample(&contenders->naive);
	case CONTENDER_NOTHING:
	case CONTENDERS:
		break;
	}
	return 0;
}

uint64_t contenders_calls(const struct contenders *contenders)
{
	return remote_read_calls() + activity_reads() + contenders->naive.calls;
}
