/* SPDX-License-Identifier: MIT
 *
 * Opens the file that a process has mapped: the very one, whatever stands under its name by now.
 */
#pragma once

#include <sys/types.h>

#include "procmap.h"

/* Opens the file behind @mapping of process @pid for reading. Regular files only; nothing else is ever
 * opened. -ENOENT: it can't be reached by any way; else the errno of the last way tried. */
int mapped_file_open(pid_t pid, const struct mapping *mapping, int *ret_fd);

/* Opens the program that @pid runs and finds a mapping of it in @maps. -ENOENT: it isn't mapped, or the
 * mapping is not recognised. */
int mapped_file_open_executable(
	pid_t pid, const struct procmap *maps, const struct mapping **ret_mapping, int *ret_fd);
