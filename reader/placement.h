/* SPDX-License-Identifier: MIT
 *
 * Reading a process from its own CPU. While this thread runs there, the process can't: a snapshot can't tear.
 * Used for processes that move under every snapshot taken from elsewhere.
 */
#pragma once

/* When a process is read from its own CPU. */
enum placement {
	PLACEMENT_AUTO = 0, /* once a snapshot of it was torn, for the rest of the sample */
	PLACEMENT_NEVER,
	PLACEMENT_ALWAYS, /* from the first snapshot on, unless it waits */
};

/* Moves the calling thread to @cpu, where it stays until placement_leave(). -EINVAL: not one of those the
 * thread may run on. */
int placement_join(int cpu);

/* Lets it run wherever it might before. Costs nothing when it had not moved. */
void placement_leave(void);
