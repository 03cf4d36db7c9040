/* SPDX-License-Identifier: MIT
 *
 * A process by its pid, as the verbs that work without a daemon take it: what it is, and if it can't be read,
 * one line that names the cause and the remedy, with its exit status.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "reader/php_process.h"
#include "daemon/sampling/discovery.h"

/* Opens it for sampling. 0 or what php_process_open() gave; @ret_why has the line then, with the cause of a
 * missing permission found out. */
int process_open(pid_t pid, const struct frame_names *names, struct php_process **ret_process, char *ret_why,
	size_t why_bytes);

/* The exit status that goes with an error of process_open(). */
int process_exit_status(int error);

/* Is it an FPM master? */
bool process_is_master(pid_t pid);

/* The processes that @pid means: the workers of a master, else itself. The array is @discovery's. 0, or a
 * negative errno. */
int process_means(
	pid_t pid, struct discovery *discovery, const struct discovered **ret_processes, size_t *ret_count);
