/* SPDX-License-Identifier: MIT
 *
 * Where a result goes: standard output, or a file that is there whole or not at all.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct output {
	int fd; /* -1: standard output */
	char path[PATH_MAX];
	char temporary[PATH_MAX]; /* "": the file is written as it is (a device, a pipe) */
};

#define OUTPUT_STANDARD  \
	(struct output)  \
	{                \
		.fd = -1 \
	}

/* Makes sure now that there will be a place to write to. NULL or "-": standard output; /dev/stdout and
 * /dev/fd/N: that descriptor. 0, or a negative errno: -ENXIO for a named pipe that nobody reads. */
int output_open(const char *path, struct output *ret_output);

/* Will a file be put in its place? Else what is written goes out at once, and may have to wait for a reader.
 */
bool output_is_replaced(const struct output *output);

/* Writes all of it, and puts the file in its place. 0, or a negative errno: then nothing has changed there.
 */
int output_commit(struct output *output, const char *bytes, size_t length);

/* Removes what was not committed. Right also for one never opened. */
void output_close(struct output *output);
