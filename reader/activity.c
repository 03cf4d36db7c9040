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
 * the kernel answers ESRCH (proc_single_show, fs/proc/base.c), whoever has the pid by then. All files are
 * those of the main thread (/proc/PID is /proc/PID/task/PID for these): PHP without threads runs there.
 *
 * /proc/PID/sched counts the switches away from it. It is made for people and takes the kernel five
 * microseconds to write, so it is for those who need to know whether a process that is ready has a CPU. In
 * between stands what differs from kernel to kernel; the names of its first line and of the switches have
 * been the same since 2.6.23 (proc_sched_show_task, kernel/sched/debug.c).
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
/* As much of /proc/PID/sched as has what we look for, also with schedstats switched on (some 2,500 bytes). */
#define SCHED_TEXT_BYTES 4096
/* What stands between the state (field 3) and the CPU (field 39). */
#define STAT_FIELDS_TO_CPU 36

/* In place of a descriptor. */
enum { NOT_ASKED_FOR = -1, NOT_TO_BE_HAD = -2 };

struct activity {
	pid_t pid;
	int schedstat_fd;
	int syscall_fd; /* -1: not to be had here */
	int stat_fd;    /* NOT_ASKED_FOR, like the next */
	int sched_fd;   /* NOT_TO_BE_HAD */
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
	*activity = (struct activity){.pid = pid,
		.schedstat_fd = -1,
		.syscall_fd = -1,
		.stat_fd = NOT_ASKED_FOR,
		.sched_fd = NOT_ASKED_FOR};

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
	if (activity->sched_fd >= 0)
		close(activity->sched_fd);
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

/* The value of @name's line in @text, "NAME   :   VALUE". NULL: there is none. */
static const char *find_value(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	if (!at)
		return NULL;
	at += strlen(name);
	at += strspn(at, " ");
	if (!skip_byte(&at, ':'))
		return NULL;
	return at + strspn(at, " ");
}

static int parse_schedule(const char *text, struct activity_schedule *ret_schedule)
{
	/* Above the rule stands the process's name, which it chooses itself: up to 15 bytes, new lines too.
	 */
	const char *rule = strstr(text, "\n--------------------------------");
	const char *outs, *accounted;
	struct activity_schedule schedule;
	uint64_t ms, ns;

	if (!rule)
		return -EPROTO;
	outs = find_value(rule, "\nnr_switches");
	accounted = find_value(rule, "\nse.exec_start");
	/* Milliseconds, and six digits of nanoseconds. */
	if (!outs || !take_decimal(&outs, &schedule.switch_outs) || !accounted ||
		!take_decimal(&accounted, &ms) || !skip_byte(&accounted, '.') ||
		!take_decimal(&accounted, &ns) || ns > 999999 || ms > UINT64_MAX / 1000000 - 1)
		return -EPROTO;
	schedule.accounted_ns = ms * 1000000 + ns;
	*ret_schedule = schedule;
	return 0;
}

int activity_read_schedule(struct activity *activity, struct activity_schedule *ret_schedule)
{
	char text[SCHED_TEXT_BYTES];
	int r;

	if (activity->sched_fd == NOT_ASKED_FOR) {
		r = open_proc_file(activity->pid, "sched");
		activity->sched_fd = r >= 0 ? r : NOT_TO_BE_HAD;
	}
	if (activity->sched_fd < 0)
		return -EOPNOTSUPP;
	r = read_proc_text(activity->sched_fd, text, sizeof(text));
	if (r < 0)
		return r;
	return parse_schedule(text, ret_schedule);
}

bool activity_knows_syscall(const struct activity *activity)
{
	return activity->syscall_fd >= 0;
}

uint64_t activity_reads(void)
{
	return reads;
}
