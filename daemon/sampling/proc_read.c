/* SPDX-License-Identifier: MIT
 *
 * What /proc says about one process. All files of one answer are opened under one descriptor of /proc/PID,
 * which the kernel ties to the process and not to its number: an answer never mixes two processes that had
 * the same pid. Everything read here was written by the process itself (its name, its title) and is bounded
 * and taken apart with suspicion. Knows nothing of FPM and nothing of memory.
 */
#include "daemon/sampling/proc_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/cleanup.h"

#define FLAG_KERNEL_THREAD 0x00200000ul /* PF_KTHREAD, include/linux/sched.h */

enum {
	STAT_BYTES = 1024,   /* 52 numbers and a name of at most 64 bytes */
	STATUS_BYTES = 4096, /* Uid stands in the first ten lines, before the lists of any length */
	PROC_PATH_BYTES = 48,
	STAT_FIELD_STATE = 3, /* numbered as proc_pid_stat(5) does */
	STAT_FIELD_PARENT = 4,
	STAT_FIELD_FLAGS = 9,
	STAT_FIELD_START_TIME = 22,
};

static const char deleted_mark[] = " (deleted)";

/* Reads up to @bytes - 1 and ends them with NUL. Returns the length. */
static ssize_t read_text_at(int directory, const char *name, char *ret_text, size_t bytes)
{
	_cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	size_t length = 0;

	if (fd < 0)
		return -errno;
	while (length < bytes - 1) {
		ssize_t got = read(fd, ret_text + length, bytes - 1 - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		length += (size_t)got;
	}
	ret_text[length] = '\0';
	return (ssize_t)length;
}

static int open_process(pid_t pid)
{
	char path[PROC_PATH_BYTES];
	int fd;

	if (pid <= 0)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

/* The name in parentheses may hold anything, also ") R 1 2 3": the fields begin behind the last one that
 * closes. */
static int parse_stat(const char *text, struct proc_identity *identity)
{
	const char *field = strrchr(text, ')');

	if (!field || field[1] != ' ')
		return -EBADMSG;
	field += 2;
	for (int number = STAT_FIELD_STATE; number <= STAT_FIELD_START_TIME; number++) {
		if (number == STAT_FIELD_STATE && (*field == 'Z' || *field == 'X' || *field == 'x'))
			return -ESRCH;
		if (number == STAT_FIELD_PARENT)
			identity->parent_pid = (pid_t)strtol(field, NULL, 10);
		if (number == STAT_FIELD_FLAGS)
			identity->is_kernel_thread = (strtoul(field, NULL, 10) & FLAG_KERNEL_THREAD) != 0;
		if (number == STAT_FIELD_START_TIME)
			identity->start_time_ticks = strtoull(field, NULL, 10);
		field = strchr(field, ' ');
		if (!field)
			return -EBADMSG;
		field++;
	}
	return 0;
}

/* "Uid:	real	effective	saved	filesystem". The owner of /proc/PID would be cheaper but is
 * root for workers that FPM made undumpable. The first line is the name, in which the kernel escapes
 * newlines. */
static int parse_uid(const char *text, uid_t *ret_uid)
{
	const char *line = strstr(text, "\nUid:\t");
	unsigned real, effective;

	if (!line || sscanf(line + 6, "%u\t%u", &real, &effective) != 2)
		return -EBADMSG;
	*ret_uid = effective;
	return 0;
}

int proc_identify(pid_t pid, struct proc_identity *ret_identity)
{
	_cleanup_close_ int directory = open_process(pid);
	struct proc_identity identity = {.pid = pid};
	char text[STATUS_BYTES];
	ssize_t length;
	int r;

	if (directory < 0)
		return directory;
	length = read_text_at(directory, "stat", text, STAT_BYTES);
	if (length < 0)
		return length == -ENOENT ? -ESRCH : (int)length;
	r = parse_stat(text, &identity);
	if (r < 0)
		return r;
	length = read_text_at(directory, "status", text, sizeof(text));
	if (length < 0)
		return length == -ENOENT ? -ESRCH : (int)length;
	r = parse_uid(text, &identity.uid);
	if (r < 0)
		return r;
	*ret_identity = identity;
	return 0;
}

bool proc_is_same(pid_t pid, uint64_t start_time_ticks)
{
	struct proc_identity identity;

	return proc_identify(pid, &identity) == 0 && identity.start_time_ticks == start_time_ticks;
}

int proc_read_title(pid_t pid, char ret_title[PROC_TITLE_BYTES])
{
	_cleanup_close_ int directory = open_process(pid);
	char title[PROC_TITLE_BYTES];
	ssize_t length;

	if (directory < 0)
		return directory;
	length = read_text_at(directory, "cmdline", title, sizeof(title));
	if (length < 0)
		return length == -ENOENT ? -ESRCH : (int)length;
	memcpy(ret_title, title, strlen(title) + 1);
	return 0;
}

int proc_read_executable(pid_t pid, char *ret_executable, size_t bytes)
{
	char link[PROC_PATH_BYTES];
	const size_t mark = strlen(deleted_mark);
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	length = readlink(link, ret_executable, bytes);
	if (length < 0)
		return -errno;
	if ((size_t)length >= bytes)
		return -ENAMETOOLONG;
	ret_executable[length] = '\0';
	if ((size_t)length > mark && strcmp(ret_executable + length - mark, deleted_mark) == 0)
		ret_executable[(size_t)length - mark] = '\0';
	return 0;
}

const char *proc_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
