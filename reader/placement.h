/* SPDX-License-Identifier: MIT
 *
 * Reading a process from its own CPU. While this thread runs there, the process can't: a snapshot can't tear.
 * Used for processes that move under every snapshot taken from elsewhere.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* When a process is read from its own CPU. */
enum placement {
	PLACEMENT_AUTO = 0, /* once a snapshot of it was torn, for the rest of the sample; if many are, like
			       the last */
	PLACEMENT_NEVER,
	PLACEMENT_ALWAYS, /* from the first snapshot on, unless it waits */
};

/* Moves the calling thread to @cpu, where it stays until placement_leave(). -EINVAL: not one of those the
 * thread may run on. */
int placement_join(int cpu);

/* Does the calling thread drive off what runs where it goes (SCHED_FIFO)? An ordinary one waits there until
 * the process has had its turn, and reads what that came to: of a program that works and sleeps, the sleep.
 */
bool placement_is_of_use(void);

/* Lets it run wherever it might before. Costs nothing when it had not moved. */
void placement_leave(void);

/* How often the first snapshots of a process tear that are taken from elsewhere. What they show when they
 * don't is what stood still, and what is seen when they are taken again is what came after: the more of them
 * tear, the less is it both together what there was. All 0 at first. */
struct placement_habit {
	uint32_t torn;   /* of 65,536, lately */
	unsigned visits; /* in a row */
};

/* Is a process read from its own CPU from the first snapshot on, because too many tear? Now and then it is
 * not, to see whether they still do. */
bool placement_is_habit(struct placement_habit *habit);

/* A first snapshot that was taken from elsewhere was @torn, or was not. */
void placement_note_first(struct placement_habit *habit, bool torn);
