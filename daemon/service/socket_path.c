/* SPDX-License-Identifier: MIT
 *
 * A root daemon that binds, chmods and removes a path can be turned against the machine by whoever can change
 * a directory on the way there. So the way is walked from / component by component, never through a symbolic
 * link, and every directory on it must belong to root or to us and be writable by nobody else (a sticky one,
 * like /tmp, will do: there others can add names but not replace ours). After that walk nobody but root can
 * change what the path means, and plain path names are safe to use.
 *
 * A socket left behind by a daemon that was killed is removed only when connecting to it says that nobody
 * listens. (Two daemons started in the same instant can take the other's socket, bound and not yet listening,
 * for such a one. A lock on the directory would prevent that and let any user who can read it keep the daemon
 * from starting.)
 */
#include "daemon/service/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "symbols/cleanup.h"

#define BACKLOG 1024 /* connections the kernel holds for us while we are busy */

/* One line for the person who has to repair it; the error goes on to the caller. */
__attribute__((format(printf, 4, 5))) static int failed(
	char *ret_why, size_t why_bytes, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(ret_why, why_bytes, format, arguments);
	va_end(arguments);
	return error;
}

static int check_directory(int fd, const char *path, int path_bytes, char *ret_why, size_t why_bytes)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return failed(ret_why, why_bytes, -errno, "%.*s: %s", path_bytes, path, strerror(errno));
	if (status.st_uid != 0 && status.st_uid != geteuid())
		return failed(ret_why, why_bytes, -EPERM,
			"%.*s: belongs to uid %u, who could put another socket there; chown it to root",
			path_bytes, path, status.st_uid);
	if ((status.st_mode & (S_IWGRP | S_IWOTH)) && !(status.st_mode & S_ISVTX))
		return failed(ret_why, why_bytes, -EPERM,
			"%.*s: writable by others (mode %04o), who could put another socket there; chmod "
			"go-w it",
			path_bytes, path, status.st_mode & 07777);
	return 0;
}

/* Checks the directory in which @path's last component stands, and all above it. */
static int check_way(const char *path, char *ret_why, size_t why_bytes)
{
	_cleanup_close_ int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *component = path + 1, *slash;
	char name[NAME_MAX + 1];
	int error;

	if (fd < 0)
		return failed(ret_why, why_bytes, -errno, "/: %s", strerror(errno));
	error = check_directory(fd, "/", 1, ret_why, why_bytes);
	for (; !error && (slash = strchr(component, '/')); component = slash + 1) {
		int next, walked_bytes = (int)(slash - path);
		bool last = !strchr(slash + 1, '/');

		/* "//" and "/." mean nothing, "/.." would make the walk check other directories than those it
		 * names. */
		snprintf(name, sizeof(name), "%.*s", (int)(slash - component), component);
		if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			return failed(ret_why, why_bytes, -EINVAL,
				"%s: write the path without empty components, . and ..", path);
		if (last && mkdirat(fd, name, 0755) < 0 && errno != EEXIST && errno != EROFS)
			return failed(ret_why, why_bytes, -errno, "%.*s: can't be made: %s", walked_bytes,
				path, strerror(errno));
		next = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && (errno == ELOOP || errno == ENOTDIR))
			return failed(ret_why, why_bytes, -errno,
				"%.*s: not a directory, or a symbolic link; give the real path of the socket",
				walked_bytes, path);
		if (next < 0)
			return failed(
				ret_why, why_bytes, -errno, "%.*s: %s", walked_bytes, path, strerror(errno));
		close(fd);
		fd = next;
		error = check_directory(fd, path, walked_bytes, ret_why, why_bytes);
	}
	return error;
}

/* Removes the socket of a daemon that is gone, if there is one. */
static int remove_stale(const struct sockaddr_un *address, char *ret_why, size_t why_bytes)
{
	_cleanup_close_ int probe = -1;
	const char *path = address->sun_path;
	struct stat status;

	if (lstat(path, &status) < 0)
		return errno == ENOENT ? 0
				       : failed(ret_why, why_bytes, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(status.st_mode))
		return failed(ret_why, why_bytes, -EEXIST,
			"%s: something that is no socket stands there; remove it or choose another "
			"socket.path",
			path);
	/* Only a sticky directory can hold somebody else's. */
	if (status.st_uid != 0 && status.st_uid != geteuid())
		return failed(ret_why, why_bytes, -EEXIST,
			"%s: a socket of uid %u stands there; remove it or choose another socket.path", path,
			status.st_uid);
	probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (probe < 0)
		return failed(ret_why, why_bytes, -errno, "socket(): %s", strerror(errno));
	/* Not listening is ECONNREFUSED; EAGAIN is a daemon with a full backlog. */
	if (connect(probe, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno != ECONNREFUSED)
		return failed(ret_why, why_bytes, -EADDRINUSE,
			"%s: another daemon listens there; stop it or choose another socket.path", path);
	if (unlink(path) < 0)
		return failed(ret_why, why_bytes, -errno, "%s: the socket left behind can't be removed: %s",
			path, strerror(errno));
	return 0;
}

/* Binds and listens; on failure nothing of ours is left at the path. */
static int bind_and_listen(int fd, const struct sockaddr_un *address, mode_t mode, gid_t group,
	struct stat *ret_status, char *ret_why, size_t why_bytes)
{
	const char *path = address->sun_path;
	struct stat status;
	int error;

	/* The path gets the mode the socket has when it is bound: closed to all others until group and mode
	 * are right. umask() would do the same for the whole process, other threads' files included. */
	if (fchmod(fd, S_IRUSR | S_IWUSR) < 0 ||
		bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
		return failed(ret_why, why_bytes, -errno, "%s: can't be bound: %s", path, strerror(errno));
	if ((group != (gid_t)-1 && lchown(path, (uid_t)-1, group) < 0) || chmod(path, mode) < 0 ||
		lstat(path, &status) < 0 || listen(fd, BACKLOG) < 0) {
		error = failed(ret_why, why_bytes, -errno, "%s: can't be set up: %s", path, strerror(errno));
		unlink(path);
		return error;
	}
	*ret_status = status;
	return 0;
}

int listening_socket_make(const char *path, mode_t mode, gid_t group, struct listening_socket *ret_socket,
	char *ret_why, size_t why_bytes)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat status = {0};
	int error;

	if (path[0] != '/')
		return failed(ret_why, why_bytes, -EINVAL, "%s: not an absolute path", path);
	if (strlen(path) >= sizeof(address.sun_path))
		return failed(ret_why, why_bytes, -ENAMETOOLONG,
			"%s: longer than the %zu bytes a socket's path may have", path,
			sizeof(address.sun_path) - 1);
	if (path[strlen(path) - 1] == '/')
		return failed(ret_why, why_bytes, -EINVAL, "%s: a directory's name, not a socket's", path);
	memcpy(address.sun_path, path, strlen(path) + 1);

	error = check_way(path, ret_why, why_bytes);
	if (error)
		return error;
	error = remove_stale(&address, ret_why, why_bytes);
	if (error)
		return error;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return failed(ret_why, why_bytes, -errno, "socket(): %s", strerror(errno));
	error = bind_and_listen(fd, &address, mode, group, &status, ret_why, why_bytes);
	if (error)
		return error;
	*ret_socket = (struct listening_socket){
		.fd = TAKE_FD(fd), .ours = true, .device = status.st_dev, .inode = status.st_ino};
	memcpy(ret_socket->path, path, strlen(path) + 1);
	return 0;
}

int listening_socket_inherit(int fd, struct listening_socket *ret_socket, char *ret_why, size_t why_bytes)
{
	struct sockaddr_un address = {0};
	socklen_t address_bytes = sizeof(address), bytes = sizeof(int);
	int listening = 0, type = 0, flags;

	if (getsockname(fd, (struct sockaddr *)&address, &address_bytes) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &bytes) < 0 ||
		getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) < 0)
		return failed(ret_why, why_bytes, -errno, "inherited descriptor %d: %s", fd, strerror(errno));
	if (address.sun_family != AF_UNIX || type != SOCK_STREAM || !listening)
		return failed(ret_why, why_bytes, -EINVAL,
			"inherited descriptor %d: not a listening Unix stream socket; the socket unit needs "
			"ListenStream=/path",
			fd);
	flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return failed(ret_why, why_bytes, -errno, "inherited descriptor %d: %s", fd, strerror(errno));
	*ret_socket = (struct listening_socket){.fd = fd};
	snprintf(ret_socket->path, sizeof(ret_socket->path), "%.*s", (int)sizeof(address.sun_path) - 1,
		address.sun_path);
	return 0;
}

void listening_socket_close(struct listening_socket *socket)
{
	struct stat status;

	if (socket->fd < 0)
		return;
	/* Removed before it is closed: a daemon that starts meanwhile finds either us or nothing. Another's
	 * socket at our path has another inode, which can't be ours again as long as ours is open. */
	if (socket->ours && lstat(socket->path, &status) == 0 && status.st_dev == socket->device &&
		status.st_ino == socket->inode)
		unlink(socket->path);
	close(socket->fd);
	socket->fd = -1;
}
