/* SPDX-License-Identifier: MIT
 *
 * Ways to the file behind a mapping. /proc/PID/exe and /proc/PID/map_files/START-END lead to the file itself,
 * be it deleted, replaced, or in another mount namespace or chroot; the second needs CAP_CHECKPOINT_RESTORE
 * or CAP_SYS_ADMIN. /proc/PID/root/PATH leads to what has that name now, so it counts only if device and
 * inode are those of the mapping. (On btrfs and some overlays the maps name another device than stat() does:
 * that way then finds nothing, and the caller reads memory instead.)
 *
 * A process chooses what it maps and what it calls it, so a path is first opened with O_PATH, which has no
 * effects on FIFOs, devices and terminals; only what turns out to be a regular file is opened for reading.
 */
#include "symbols/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static bool is_file_of(const struct mapping *mapping, const struct stat *status)
{
	return status->st_ino == mapping->inode &&
	       status->st_dev == makedev(mapping->device_major, mapping->device_minor);
}

/* Opens @path for reading if it is a regular file, and, where @only_of is given, the file of that mapping. */
static int open_regular(const char *path, int flags, const struct mapping *only_of, int *ret_fd)
{
	_cleanup_close_ int handle = -1;
	struct stat status;
	char self[64];
	int fd;

	handle = open(path, O_PATH | O_CLOEXEC | flags);
	if (handle < 0)
		return -errno;
	if (fstat(handle, &status) != 0)
		return -errno;
	if (!S_ISREG(status.st_mode) || (only_of && !is_file_of(only_of, &status)))
		return -ENOENT;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int mapped_file_open(pid_t pid, const struct mapping *mapping, int *ret_fd)
{
	char path[PATH_MAX];
	int length;

	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid, mapping->start,
		mapping->end);
	if (open_regular(path, 0, NULL, ret_fd) == 0)
		return 0;
	length = snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, mapping->path);
	if (mapping->path[0] != '/' || length < 0 || (size_t)length >= sizeof(path))
		return -ENOENT;
	return open_regular(path, O_NOFOLLOW, mapping, ret_fd);
}

int mapped_file_open_executable(
	pid_t pid, const struct procmap *maps, const struct mapping **ret_mapping, int *ret_fd)
{
	char path[64], name[PATH_MAX];
	_cleanup_close_ int fd = -1;
	struct stat status;
	ssize_t length;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	length = readlink(path, name, sizeof(name) - 1);
	if (length < 0)
		return -errno;
	name[length] = '\0';
	r = open_regular(path, 0, NULL, &fd);
	if (r != 0)
		return r;
	if (fstat(fd, &status) != 0)
		return -errno;
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		size_t bytes = strlen(mapping->path);

		/* By name where the device is misnamed: exe says "/usr/bin/php (deleted)" too. */
		if (is_file_of(mapping, &status) ||
			(bytes && strncmp(name, mapping->path, bytes) == 0 &&
				(!name[bytes] || strcmp(name + bytes, " (deleted)") == 0))) {
			*ret_mapping = mapping;
			*ret_fd = TAKE_FD(fd);
			return 0;
		}
	}
	return -ENOENT;
}
