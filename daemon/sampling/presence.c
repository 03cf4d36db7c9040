/* SPDX-License-Identifier: MIT
 *
 * See presence.h. Whatever can't be known here (no right to read a file, a kernel without the page) makes a
 * process that may be ready one that runs, as if there were always a CPU for it.
 */
#include "daemon/sampling/presence.h"

#include <unistd.h>

#include "daemon/sampling/clock.h"

/* How long one that has queued is watched closely. */
#define WATCHED_NS 1000000000ull
/* So much queue time between two looks may be the thread's own doing, who comes to the process's CPU to look;
 * others leave it for a millisecond at least (the scheduler's base slice). And such a part of the time is not
 * worth asking for. */
#define OWN_DELAY_NS 250000ull
#define NEGLIGIBLE_SHARE 64

void presence_observer_init(struct presence_observer *observer)
{
	struct activity_schedule ignored;

	*observer = (struct presence_observer){0};
	/* Without it only who shares a CPU with the thread is taken for one that queues. */
	if (activity_open(gettid(), &observer->thread) == 0)
		activity_read_schedule(observer->thread, &ignored);
}

void presence_observer_deinit(struct presence_observer *observer)
{
	if (observer->thread)
		activity_close(observer->thread);
	*observer = (struct presence_observer){0};
}

/* Did the thread, coming to its CPU, drive off the process of @schedule? */
static bool is_driven_off(const struct presence_observer *observer, const struct activity_schedule *schedule)
{
	struct activity_schedule own;

	return observer->thread && activity_read_schedule(observer->thread, &own) == 0 &&
	       own.accounted_ns == schedule->accounted_ns;
}

void presence_note_clocks(struct presence_watch *watch, const struct activity_clocks *before,
	const struct activity_clocks *clocks, uint64_t elapsed_ns, uint64_t now_ns)
{
	uint64_t queued_ns = clock_advance(clocks->queue_ns, before->queue_ns);

	if (queued_ns > OWN_DELAY_NS + elapsed_ns / NEGLIGIBLE_SHARE)
		watch->queues_until_ns = now_ns + WATCHED_NS;
	/* It may have queued again since; what was the first time is not known. */
	if (watch->driven_off && clocks->switch_ins > before->switch_ins)
		watch->kept_off_ns = queued_ns / (clocks->switch_ins - before->switch_ins);
	watch->driven_off = false;
}

bool presence_is_unmoved(struct presence_watch *watch, const struct activity_clocks *clocks)
{
	if (!watch->off_cpu || clocks->switch_ins != watch->off_clocks.switch_ins)
		return false;
	/* One that waits may have used the CPU after its clocks were read, and before it was seen to wait. */
	if (watch->since != PRESENCE_WAITING && clocks->run_ns != watch->off_clocks.run_ns) {
		/* It ran, and was not switched in: it is on a CPU, with that many outs. */
		watch->outs_ahead++;
		watch->off_cpu = false;
		return false;
	}
	watch->off_clocks = *clocks;
	return true;
}

/* Is it off the CPU, as its page says? */
static bool is_off_cpu(struct presence_watch *watch, struct activity *activity,
	const struct activity_clocks *clocks, const struct activity_schedule *schedule)
{
	/* It may have come, and gone, since its clocks were read. If not, they are exact now. */
	if (activity_read_clocks(activity, &watch->off_clocks) < 0 ||
		watch->off_clocks.switch_ins != clocks->switch_ins)
		return false;
	watch->outs_ahead = schedule->switch_outs - clocks->switch_ins;
	return true;
}

static bool is_blocked(struct activity *activity)
{
	struct activity_syscall syscall;

	return activity_read_syscall(activity, &syscall) == 0 && syscall.blocked;
}

/* Where one is that was ready a moment ago. */
static enum presence look_closely(struct presence_watch *watch, const struct presence_observer *observer,
	struct activity *activity, const struct activity_clocks *clocks)
{
	struct activity_schedule schedule;

	if (activity_read_schedule(activity, &schedule) < 0)
		return PRESENCE_RUNNING;
	watch->on_cpu = schedule.switch_outs < clocks->switch_ins + watch->outs_ahead;
	watch->on_clocks = *clocks;
	if (watch->on_cpu || !is_off_cpu(watch, activity, clocks, &schedule))
		return PRESENCE_RUNNING;
	watch->off_cpu = true;
	/* It was not switched in, so if it waits by now, it was on a CPU. Who is quick to sleep would else
	 * lose as much of each turn on the CPU as the page takes to read. */
	watch->since = is_blocked(activity) ? PRESENCE_WAITING : PRESENCE_QUEUED;
	watch->driven_off = watch->since == PRESENCE_QUEUED && is_driven_off(observer, &schedule);
	return watch->since == PRESENCE_WAITING || watch->driven_off ? PRESENCE_RUNNING : PRESENCE_QUEUED;
}

/* Has it been on its CPU ever since its page said so? */
static bool is_still_on_cpu(const struct presence_watch *watch, const struct activity_clocks *clocks)
{
	return watch->on_cpu && clocks->switch_ins == watch->on_clocks.switch_ins &&
	       clocks->run_ns == watch->on_clocks.run_ns;
}

enum presence presence_look(struct presence_watch *watch, const struct presence_observer *observer,
	struct activity *activity, const struct activity_clocks *clocks, uint64_t now_ns)
{
	watch->found = PRESENCE_RUNNING;
	watch->off_cpu = false;
	if (is_blocked(activity)) {
		watch->found = watch->since = PRESENCE_WAITING;
		watch->off_cpu = true;
		watch->on_cpu = false;
		watch->off_clocks = *clocks;
	} else if (activity_knows_syscall(activity) && now_ns < watch->queues_until_ns &&
		   !is_still_on_cpu(watch, clocks)) {
		watch->found = look_closely(watch, observer, activity, clocks);
	}
	if (watch->found == PRESENCE_QUEUED)
		watch->queues_until_ns = now_ns + WATCHED_NS;
	return watch->found;
}

enum presence presence_look_again(struct presence_watch *watch, struct activity *activity, uint64_t now_ns)
{
	/* It may have been woken up, and not got a CPU since. */
	if (watch->since == PRESENCE_WAITING && now_ns < watch->queues_until_ns && !is_blocked(activity))
		watch->since = PRESENCE_QUEUED;
	return watch->found = watch->since;
}
