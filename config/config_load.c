/* SPDX-License-Identifier: MIT
 *
 * The configuration file from disk into memory, whole and bounded; what is in it, config.c reads.
 */
#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

static void free_text(char **text)
{
	free(*text);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

int config_load(const char *path, struct config *ret_config, char *ret_why, size_t why_bytes)
{
	_cleanup_(free_text) char *text = malloc(CONFIG_MAX_FILE_BYTES + 1);
	/* Not blocking: opening a FIFO by that name must not hang the daemon's start or its reload. */
	_cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;
	size_t bytes = 0;

	if (!text) {
		snprintf(ret_why, why_bytes, "%s: not enough memory", path);
		return -ENOMEM;
	}
	if (fd < 0) {
		int error = errno;

		snprintf(ret_why, why_bytes, "%s: can't be opened: %s%s", path, strerror(error),
			error == ENOENT
				? "; make one (an empty file means all defaults), or name another with "
				  "--config"
				: "");
		return -error;
	}
	/* A character device is let through for /dev/null, which is nothing but the defaults. */
	if (fstat(fd, &status) < 0 || (!S_ISREG(status.st_mode) && !S_ISCHR(status.st_mode))) {
		snprintf(ret_why, why_bytes, "%s: is not a regular file", path);
		return -EINVAL;
	}
	/* One byte more than allowed, so that a file which is too large is told from one that just fits. */
	while (bytes < CONFIG_MAX_FILE_BYTES + 1) {
		ssize_t got = read(fd, text + bytes, CONFIG_MAX_FILE_BYTES + 1 - bytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int error = errno;

			snprintf(ret_why, why_bytes, "%s: can't be read: %s", path, strerror(error));
			return -error;
		}
		if (got == 0)
			break;
		bytes += (size_t)got;
	}
	return config_parse(text, bytes, path, ret_config, ret_why, why_bytes);
}
