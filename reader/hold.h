/* SPDX-License-Identifier: MIT
 *
 * Stopping a process for the length of one sample. Only where somebody has asked for it (`attach
 * --blocking`): it slows the process down and its system calls can tell.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* How long hold_take() waits for a process to stop: one that is deep in the kernel takes until it comes out.
 */
#define HOLD_PATIENCE_NS 10000000

enum {
	HOLD_E_LATE = 64, /* it has not stopped yet; it will */
};

enum hold_state { HOLD_FREE = 0, HOLD_COMING, HOLD_STOPPED };

/* Of one process, and of the thread that takes it: the kernel lets no other touch what it traces. Zero but
 * for the pid: free. */
struct hold {
	pid_t pid;
	enum hold_state state;
	int signal; /* that it was about to receive when it stopped; 0: none */
};

/* Can @pid be held? 0, or -EBUSY: another program traces it already, which one sentence in @ret_why names. */
int hold_check(pid_t pid, char *ret_why, size_t why_bytes);

/* Stops the main thread of hold->pid. 0: it stands still until hold_release(). HOLD_E_LATE: it sleeps in the
 * kernel where nothing reaches it, and executes nothing of its own until hold_take() was called again.
 * -ESRCH: it has ended. -EPERM: somebody else traces it, or it may not be traced. */
int hold_take(struct hold *hold);

/* Has hold_take() begun what no hold_release() has ended? Then it must be called again, if only for the
 * process to be released. */
bool hold_is_open(const struct hold *hold);

/* Lets it go on as if nothing had been: a signal that was on its way arrives, what was stopped before stays
 * stopped. Does nothing when it is free. */
void hold_release(struct hold *hold);

/* For the end: also of one that has not stopped so far. What even then has not is released by the kernel when
 * the thread ends. */
void hold_deinit(struct hold *hold);
