/* SPDX-License-Identifier: MIT
 *
 * ptrace, as briefly and as politely as it allows. The process is traced (PTRACE_SEIZE), interrupted, read
 * and let go for each sample: between samples nobody traces it, so no signal ever waits for us, and strace or
 * gdb can come. While it is traced, three things can stop it, and each of them will do:
 *
 * - our PTRACE_INTERRUPT;
 * - a signal on its way to it. It stands still before it is delivered, and is let go with that very signal,
 *   whose siginfo the kernel still has;
 * - a group stop (SIGSTOP, SIGTSTP), in which it may have been before. The kernel puts it back there
 *   (__ptrace_unlink() in kernel/ptrace.c).
 *
 * The stop is looked at without being taken off the kernel's hands (WNOWAIT). That makes our own death
 * harmless: the kernel lets go whom a dying thread traces, and a signal whose stop nobody has waited for
 * still is in exit_code and is delivered (ptrace_stop() in kernel/signal.c); after an ordinary wait it would
 * be lost.
 *
 * A wait for a tracee knows no time limit, and one in uninterruptible sleep doesn't stop before it wakes up.
 * So it is asked for again and again, with sleeps between, for as long as HOLD_PATIENCE_NS. After that it
 * stays traced, since only what is stopped can be let go (PTRACE_DETACH: ESRCH), and the next sample asks
 * again.
 *
 * The end of a traced process is told to us first, and to its parent when we have taken note: that too is
 * waited for.
 */
#include "reader/hold.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "symbols/cleanup.h"
#include "symbols/printable.h"

#define FIRST_SLEEP_NS 10000
#define LONGEST_SLEEP_NS 1000000

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The program that traces @pid; 0: none, or none that can be seen from here. */
static pid_t tracer_of(pid_t pid)
{
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "TracerPid:", 10) == 0)
			return (pid_t)strtol(line + 10, NULL, 10);
	}
	return 0;
}

static void name_of(pid_t pid, char *ret_name, size_t bytes)
{
	char path[64], line[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	if (!file || !fgets(line, sizeof(line), file))
		snprintf(line, sizeof(line), "a program");
	line[strcspn(line, "\n")] = '\0';
	printable_copy(ret_name, bytes, line);
}

int hold_check(pid_t pid, char *ret_why, size_t why_bytes)
{
	pid_t tracer = tracer_of(pid);
	char name[64];

	if (tracer == 0)
		return 0;
	name_of(tracer, name, sizeof(name));
	if (ret_why)
		snprintf(ret_why, why_bytes,
			"process %d: it can't be stopped for samples, because %s (process %d) traces it; end "
			"that, "
			"or sample it without stopping it",
			(int)pid, name, (int)tracer);
	return -EBUSY;
}

/* Takes note of what became of it so far. 0: it stands still; HOLD_E_LATE: neither that nor its end. */
static int look(struct hold *hold)
{
	siginfo_t seen = {0};
	id_t id = (id_t)hold->pid;

	if (waitid(P_PID, id, &seen, WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) < 0) {
		/* Another of its threads has called execve(): this one is no more, and what has its number
		 * now is not traced. */
		hold->state = HOLD_FREE;
		return -ESRCH;
	}
	if (seen.si_pid == 0)
		return HOLD_E_LATE;
	if (seen.si_code != CLD_TRAPPED) {
		waitid(P_PID, id, &seen, WEXITED | WNOHANG | __WALL);
		hold->state = HOLD_FREE;
		return -ESRCH;
	}
	/* The signal, and above it the event if it is not one that is being delivered. */
	hold->signal = seen.si_status >> 8 ? 0 : seen.si_status;
	hold->state = HOLD_STOPPED;
	return 0;
}

static int await(struct hold *hold)
{
	const uint64_t deadline_ns = now_ns() + HOLD_PATIENCE_NS;
	struct timespec sleep = {.tv_nsec = FIRST_SLEEP_NS};

	for (;;) {
		int r = look(hold);

		if (r != HOLD_E_LATE || now_ns() >= deadline_ns)
			return r;
		/* Not yield: this may be a SCHED_FIFO thread on the CPU that the process needs to stop. */
		nanosleep(&sleep, NULL);
		if (sleep.tv_nsec < LONGEST_SLEEP_NS)
			sleep.tv_nsec *= 2;
	}
}

int hold_take(struct hold *hold)
{
	if (hold->state == HOLD_STOPPED)
		return 0;
	if (hold->state == HOLD_FREE) {
		if (ptrace(PTRACE_SEIZE, hold->pid, NULL, NULL) < 0)
			return -errno;
		hold->state = HOLD_COMING;
		/* Fails if it is ending: then that is what look() sees. */
		(void)ptrace(PTRACE_INTERRUPT, hold->pid, NULL, NULL);
	}
	return await(hold);
}

bool hold_is_open(const struct hold *hold)
{
	return hold->state != HOLD_FREE;
}

void hold_release(struct hold *hold)
{
	if (hold->state != HOLD_STOPPED)
		return;
	if (ptrace(PTRACE_DETACH, hold->pid, NULL, (void *)(intptr_t)hold->signal) == 0) {
		hold->state = HOLD_FREE;
		return;
	}
	/* SIGKILL ends a stop: its parent waits for our note of its end. */
	hold->state = HOLD_COMING;
	await(hold);
}

void hold_deinit(struct hold *hold)
{
	if (hold->state == HOLD_COMING)
		await(hold);
	hold_release(hold);
}
