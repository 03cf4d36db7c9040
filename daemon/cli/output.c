/* SPDX-License-Identifier: MIT
 *
 * The result is written beside its place, under another name, brought to the disk, and renamed: whoever reads
 * the file, after an interrupt too, reads the old one or the new one. What can't be replaced so (a device, a
 * named pipe) is written to as it is. So is what the shell has opened for us: /dev/stdout and /dev/fd/N mean
 * that descriptor and not the file behind it, which may be a pipe without a name, or be appended to.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/cleanup.h"
#include "daemon/cli/output.h"

#define TEMPORARY_SUFFIX ".XXXXXX"

/* The descriptor of ours that @path is another name of; -1: none. */
static int own_descriptor(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

	if (strcmp(path, "/dev/stdout") == 0)
		return STDOUT_FILENO;
	if (strcmp(path, "/dev/stderr") == 0)
		return STDERR_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		size_t length = strlen(folders[i]);
		char *end;

		if (strncmp(path, folders[i], length) != 0 || !isdigit((unsigned char)path[length]))
			continue;
		unsigned long number = strtoul(path + length, &end, 10);
		if (!*end && number <= INT_MAX)
			return (int)number;
	}
	return -1;
}

static int open_descriptor(int number, int *ret_fd)
{
	int flags = fcntl(number, F_GETFL);

	if (flags < 0)
		return -errno;
	if ((flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	int fd = fcntl(number, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* Without O_NONBLOCK, opening a pipe that nobody reads would wait for a reader; with it it is -ENXIO. */
static int open_as_it_is(const char *path, int *ret_fd)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -errno;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* A symbolic link stays, the file it names is replaced. */
static int resolve(const char *path, char into[PATH_MAX])
{
	struct stat status;

	if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode) && stat(path, &status) == 0)
		return realpath(path, into) ? 0 : -errno;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(into, path, strlen(path) + 1);
	return 0;
}

int output_open(const char *path, struct output *ret_output)
{
	struct output output = OUTPUT_STANDARD;
	struct stat status;

	if (!path || strcmp(path, "-") == 0) {
		*ret_output = output;
		return 0;
	}
	int descriptor = own_descriptor(path);
	int r = descriptor >= 0 ? open_descriptor(descriptor, &output.fd) : resolve(path, output.path);
	if (r < 0)
		return r;
	if (descriptor >= 0) {
		*ret_output = output;
		return 0;
	}
	bool exists = stat(output.path, &status) == 0;
	if (exists && S_ISDIR(status.st_mode))
		return -EISDIR;
	if (exists && !S_ISREG(status.st_mode)) {
		r = open_as_it_is(output.path, &output.fd);
		if (r < 0)
			return r;
	} else {
		int length = snprintf(
			output.temporary, sizeof(output.temporary), "%s" TEMPORARY_SUFFIX, output.path);
		if (length < 0 || (size_t)length >= sizeof(output.temporary))
			return -ENAMETOOLONG;
		output.fd = mkostemp(output.temporary, O_CLOEXEC);
		if (output.fd < 0)
			return -errno;
	}
	*ret_output = output;
	return 0;
}

static int write_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		bytes += written;
		length -= (size_t)written;
	}
	return 0;
}

/* The permissions that a file made in the ordinary way would have, or those it had. */
static int set_mode(const struct output *output)
{
	struct stat status;
	mode_t mask = umask(0);

	umask(mask);
	mode_t mode = stat(output->path, &status) == 0 ? status.st_mode & 07777 : 0666 & ~mask;
	return fchmod(output->fd, mode) < 0 ? -errno : 0;
}

/* The new name is in the directory only once that is on the disk too. Some file systems can't. */
static void sync_directory(const char *path)
{
	char directory[PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (slash)
		snprintf(directory, sizeof(directory), "%.*s/", (int)(slash - path), path);
	else
		snprintf(directory, sizeof(directory), ".");
	_cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		(void)fsync(fd);
}

bool output_is_replaced(const struct output *output)
{
	return output->temporary[0];
}

int output_commit(struct output *output, const char *bytes, size_t length)
{
	if (output->fd < 0)
		return write_all(STDOUT_FILENO, bytes, length);
	int r = write_all(output->fd, bytes, length);
	if (r < 0 || !output->temporary[0])
		return r;
	r = set_mode(output);
	if (r < 0)
		return r;
	if (fsync(output->fd) < 0 || rename(output->temporary, output->path) < 0)
		return -errno;
	output->temporary[0] = 0;
	sync_directory(output->path);
	return 0;
}

void output_close(struct output *output)
{
	if (output->temporary[0])
		unlink(output->temporary);
	if (output->fd >= 0)
		close(output->fd);
	*output = OUTPUT_STANDARD;
}
