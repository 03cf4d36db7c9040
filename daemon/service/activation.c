/* SPDX-License-Identifier: MIT
 *
 * The manager passes descriptors from number 3 upwards, says how many in LISTEN_FDS, for which process in
 * LISTEN_PID and what they are called in LISTEN_FDNAMES (sd_listen_fds(3), documented as stable). The pid
 * matters: variables outlive the process they were meant for, and descriptor 3 of anybody else is anything.
 * Whether what came is a listening Unix socket, the service checks.
 */
#include "daemon/service/activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_FD 3
#define MAX_FDS 64 /* more than any unit of ours has; bounds what a broken environment makes us close */

static long number_of(const char *text)
{
	char *end;
	long number;

	if (!text)
		return -1;
	errno = 0;
	number = strtol(text, &end, 10);
	return errno || end == text || *end || number < 0 ? -1 : number;
}

/* The index of ACTIVATION_SOCKET_NAME among the names with colons between them; -1: it isn't there. */
static long index_of_ours(const char *names, long count)
{
	for (long i = 0; names && i < count; i++) {
		size_t length = strcspn(names, ":");

		if (length == strlen(ACTIVATION_SOCKET_NAME) &&
			memcmp(names, ACTIVATION_SOCKET_NAME, length) == 0)
			return i;
		if (!names[length])
			break;
		names += length + 1;
	}
	return -1;
}

static int choose(int *ret_fd, char *ret_why, size_t why_bytes)
{
	long count = number_of(getenv("LISTEN_FDS"));
	long ours;

	*ret_fd = -1;
	if (number_of(getenv("LISTEN_PID")) != (long)getpid() || count == 0)
		return 0;
	if (count < 0 || count > MAX_FDS) {
		snprintf(ret_why, why_bytes,
			"LISTEN_FDS is no number from 1 to %d; start the daemon through its socket unit",
			MAX_FDS);
		return -EINVAL;
	}
	ours = count == 1 ? 0 : index_of_ours(getenv("LISTEN_FDNAMES"), count);
	for (long i = 0; i < count; i++) {
		if (i != ours)
			close(FIRST_FD + (int)i);
	}
	if (ours < 0) {
		snprintf(ret_why, why_bytes,
			"%ld sockets were passed and none is called %s; give its socket unit "
			"FileDescriptorName=%s",
			count, ACTIVATION_SOCKET_NAME, ACTIVATION_SOCKET_NAME);
		return -EINVAL;
	}
	if (fcntl(FIRST_FD + (int)ours, F_SETFD, FD_CLOEXEC) < 0) {
		snprintf(ret_why, why_bytes, "LISTEN_FDS promises descriptor %d, which is not open",
			FIRST_FD + (int)ours);
		return -EINVAL;
	}
	*ret_fd = FIRST_FD + (int)ours;
	return 0;
}

int activation_take(int *ret_fd, char *ret_why, size_t why_bytes)
{
	int fd = -1;
	int r = choose(&fd, ret_why, why_bytes);

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (r < 0)
		return r;
	*ret_fd = fd;
	return 0;
}
