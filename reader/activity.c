/* SPDX-License-Identifier: MIT
 *
 * What the kernel knows about a process that its memory doesn't tell: whether it has been on a CPU, for how
 * long, and what it waits for. Two files of /proc, each kept open and read with one pread() a time.
 *
 * /proc/PID/schedstat has three numbers: time run, time queued, times switched in. The third is the proof
 * DESIGN step 2 rests on: it rises at every switch to the process and stands still while it is blocked,
 * unlike the CPU clock, which for a running process stands still between scheduler ticks. /proc/PID/syscall
 * says whether it is off the CPU, and in which call.
 *
 * A kept descriptor belongs to the process it was opened for, not to its number: once that process is gone
 * the kernel answers ESRCH (proc_single_show, fs/proc/base.c), whoever has the pid by then. Both files are
 * those of the main thread (/proc/PID is /proc/PID/task/PID for these two): PHP without threads runs there.
 *
 * The texts are the kernel's, but they are parsed as strictly as any other: a form that isn't known is
 * -EPROTO, never a guess.
 */
#include "reader/activity.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "-9223372036854775808", eight times "0xffffffffffffffff", blanks, newline: 171 bytes. */
#define PROC_TEXT_BYTES 256
/* 52 numbers and a name of up to 64 bytes. */
#define STAT_TEXT_BYTES 1280
/* What stands between the state (field 3) and the CPU (field 39). */
#define STAT_FIELDS_TO_CPU 36

struct activity {
	pid_t pid;
	int schedstat_fd;
	int syscall_fd; /* -1: not to be had here */
	int stat_fd;    /* -1: not asked for yet */
};

static _Thread_local uint64_t reads;

/* Opens /proc/@pid/@file: a descriptor, or a negative errno. */
static int open_proc_file(pid_t pid, const char *file)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Reads all of @fd's text, 0-terminated. Its length, or a negative errno; -ESRCH once the process is gone. */
static int read_proc_text(int fd, char *text, size_t room)
{
	ssize_t bytes;

	reads++;
	bytes = pread(fd, text, room - 1, 0);
	if (bytes < 0)
		return -errno;
	if (bytes == 0)
		return -ESRCH;
	text[bytes] = '\0';
	return (int)bytes;
}

static bool skip_byte(const char **at, char expected)
{
	if (**at != expected)
		return false;
	(*at)++;
	return true;
}

static bool take_decimal(const char **at, uint64_t *ret_number)
{
	const char *start = *at;
	uint64_t number = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++) {
		unsigned digit = (unsigned)(**at - '0');

		if (number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return *at != start;
}

static bool take_hex(const char **at, uint64_t *ret_number)
{
	const char *start;
	uint64_t number = 0;

	if (!skip_byte(at, '0') || !skip_byte(at, 'x'))
		return false;
	for (start = *at; *at - start <= 16; (*at)++) {
		unsigned digit;

		if (**at >= '0' && **at <= '9')
			digit = (unsigned)(**at - '0');
		else if (**at >= 'a' && **at <= 'f')
			digit = (unsigned)(**at - 'a') + 10;
		else
			break;
		number = number << 4 | digit;
	}
	*ret_number = number;
	return *at != start && *at - start <= 16;
}

/* "RUN QUEUED SWITCHES\n" (Documentation/scheduler/sched-stats.rst). */
static int parse_schedstat(const char *text, struct activity_clocks *ret_clocks)
{
	struct activity_clocks clocks;

	if (!take_decimal(&text, &clocks.run_ns) || !skip_byte(&text, ' ') ||
		!take_decimal(&text, &clocks.queue_ns) || !skip_byte(&text, ' ') ||
		!take_decimal(&text, &clocks.switch_ins) || strcmp(text, "\n") != 0)
		return -EPROTO;
	*ret_clocks = clocks;
	return 0;
}

/* "running\n", "-1 SP PC\n" or "NUMBER ARG×6 SP PC\n" (proc_pid_syscall, fs/proc/base.c). */
static int parse_syscall(const char *text, struct activity_syscall *ret_syscall)
{
	struct activity_syscall syscall = {.blocked = true, .number = -1};

	if (strcmp(text, "running\n") == 0) {
		*ret_syscall = (struct activity_syscall){.blocked = false, .number = -1};
		return 0;
	}
	if (strncmp(text, "-1 ", 3) == 0) {
		text += 2;
	} else {
		uint64_t number;

		if (!take_decimal(&text, &number) || number > LONG_MAX)
			return -EPROTO;
		syscall.number = (long)number;
		for (size_t i = 0; i < 6; i++)
			if (!skip_byte(&text, ' ') || !take_hex(&text, &syscall.arguments[i]))
				return -EPROTO;
	}
	if (!skip_byte(&text, ' ') || !take_hex(&text, &syscall.stack_pointer) || !skip_byte(&text, ' ') ||
		!take_hex(&text, &syscall.program_counter) || strcmp(text, "\n") != 0)
		return -EPROTO;
	*ret_syscall = syscall;
	return 0;
}

int activity_open(pid_t pid, struct activity **ret_activity)
{
	_cleanup_(activity_closep) struct activity *activity = NULL;
	struct activity_syscall ignored;
	struct activity_clocks clocks;
	int r;

	activity = malloc(sizeof(*activity));
	if (!activity)
		return -ENOMEM;
	*activity = (struct activity){.pid = pid, .schedstat_fd = -1, .syscall_fd = -1, .stat_fd = -1};

	activity->schedstat_fd = open_proc_file(pid, "schedstat");
	if (activity->schedstat_fd == -ENOENT && access("/proc/self/schedstat", F_OK) == 0)
		return -ESRCH;
	if (activity->schedstat_fd < 0)
		return activity->schedstat_fd;
	r = activity_read_clocks(activity, &clocks);
	if (r < 0)
		return r;

	/* Reading it needs ptrace rights over the process, opening it only its uid: try. */
	activity->syscall_fd = open_proc_file(pid, "syscall");
	if (activity->syscall_fd >= 0 && activity_read_syscall(activity, &ignored) < 0) {
		close(activity->syscall_fd);
		activity->syscall_fd = -1;
	}

	*ret_activity = TAKE(activity);
	return 0;
}

void activity_close(struct activity *activity)
{
	if (activity->schedstat_fd >= 0)
		close(activity->schedstat_fd);
	if (activity->syscall_fd >= 0)
		close(activity->syscall_fd);
	if (activity->stat_fd >= 0)
		close(activity->stat_fd);
	free(activity);
}

int activity_read_clocks(struct activity *activity, struct activity_clocks *ret_clocks)
{
	char text[PROC_TEXT_BYTES];
	int r;

	r = read_proc_text(activity->schedstat_fd, text, sizeof(text));
	if (r < 0)
		return r;
	return parse_schedstat(text, ret_clocks);
}

int activity_read_syscall(struct activity *activity, struct activity_syscall *ret_syscall)
{
	char text[PROC_TEXT_BYTES];
	int r;

	if (activity->syscall_fd < 0)
		return -EOPNOTSUPP;
	r = read_proc_text(activity->syscall_fd, text, sizeof(text));
	if (r < 0)
		return r;
	return parse_syscall(text, ret_syscall);
}

int activity_read_place(struct activity *activity, struct activity_place *ret_place)
{
	char text[STAT_TEXT_BYTES];
	const char *at;
	bool ready;
	uint64_t cpu;
	int r;

	/* Most processes are never asked. */
	if (activity->stat_fd < 0)
		activity->stat_fd = open_proc_file(activity->pid, "stat");
	if (activity->stat_fd < 0)
		return activity->stat_fd;
	r = read_proc_text(activity->stat_fd, text, sizeof(text));
	if (r < 0)
		return r;
	/* The name may hold blanks and parentheses; no number does. */
	at = strrchr(text, ')');
	if (!at || !skip_byte(&at, ')') || !skip_byte(&at, ' '))
		return -EPROTO;
	ready = *at == 'R';
	for (int field = 0; at && field < STAT_FIELDS_TO_CPU; field++)
		at = strchr(at + 1, ' ');
	if (!at || !skip_byte(&at, ' ') || !take_decimal(&at, &cpu) || cpu > INT_MAX)
		return -EPROTO;
	*ret_place = (struct activity_place){.ready = ready, .cpu = (int)cpu};
	return 0;
}

bool activity_knows_syscall(const struct activity *activity)
{
	return activity->syscall_fd >= 0;
}

uint64_t activity_reads(void)
{
	return reads;
}
