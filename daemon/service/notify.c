/* SPDX-License-Identifier: MIT
 *
 * The protocol is datagrams of NAME=value lines to the socket in NOTIFY_SOCKET, documented as stable in
 * sd_notify(3); speaking it takes less than linking libsystemd would. An address that begins with @ is an
 * abstract one: the @ stands for a NUL.
 *
 * A manager that does not read must not stop the daemon: a message waits a second at most for room. Who is
 * told too little of the watchdog ends the daemon; so be it, then the manager is the one that is stuck.
 */
#include "daemon/service/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/sampling/clock.h"
#include "symbols/cleanup.h"

#define SEND_TIMEOUT_S 1
#define MESSAGE_BYTES 512
#define NS_PER_US 1000u

/* A number from the environment; 0: it is not there or is none. */
static uint64_t number_of(const char *text)
{
	char *end;
	unsigned long long number;

	if (!text || text[0] < '0' || text[0] > '9')
		return 0;
	errno = 0;
	number = strtoull(text, &end, 10);
	return errno || *end ? 0 : number;
}

static uint64_t watchdog_from_environment(void)
{
	uint64_t usec = number_of(getenv("WATCHDOG_USEC"));
	const char *pid = getenv("WATCHDOG_PID");

	/* With a pid it is meant for that process only. */
	if (pid && number_of(pid) != (uint64_t)getpid())
		return 0;
	return usec > UINT64_MAX / NS_PER_US ? 0 : usec * NS_PER_US;
}

static int connect_to(const char *path, int *ret_fd)
{
	struct timeval timeout = {.tv_sec = SEND_TIMEOUT_S};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;
	size_t length = strlen(path);

	if (path[0] != '/' && path[0] != '@')
		return -EPROTONOSUPPORT;
	if (length < 2 || length >= sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/* The length decides what an abstract name is: one NUL more at its end would be another name. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0 ||
		connect(fd, (const struct sockaddr *)&address,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int notify_open(struct notify *ret_notify)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct notify notify = {.fd = -1, .watchdog_ns = watchdog_from_environment()};
	int r = 0;

	if (path)
		r = connect_to(path, &notify.fd);
	if (notify.fd < 0)
		notify.watchdog_ns = 0;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	unsetenv("WATCHDOG_PID");
	*ret_notify = notify;
	return r;
}

void notify_close(struct notify *notify)
{
	cleanup_close(&notify->fd);
	notify->fd = -1;
}

static int tell(const struct notify *notify, const char *message)
{
	if (notify->fd < 0)
		return 0;
	return send(notify->fd, message, strlen(message), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int notify_ready(const struct notify *notify, const char *status)
{
	char message[MESSAGE_BYTES];

	snprintf(message, sizeof(message), "READY=1\nSTATUS=%s", status);
	return tell(notify, message);
}

int notify_reloading(const struct notify *notify)
{
	char message[MESSAGE_BYTES];

	/* The time lets the manager tell this reload's READY=1 from an earlier one's. */
	snprintf(message, sizeof(message), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		monotonic_now_ns() / NS_PER_US);
	return tell(notify, message);
}

int notify_stopping(const struct notify *notify)
{
	return tell(notify, "STOPPING=1");
}

int notify_watchdog(const struct notify *notify)
{
	return tell(notify, "WATCHDOG=1");
}
