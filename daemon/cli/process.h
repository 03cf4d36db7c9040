/* SPDX-License-Identifier: MIT
 *
 * A process by its pid, as the verbs that work without a daemon take it: what it is, and with which exit
 * status one ends that can't be read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "reader/php_process.h"
#include "daemon/sampling/discovery.h"

/* The exit status that goes with an error of php_process_open(). */
int process_exit_status(int error);

/* It runs no program at all: there is nothing to read. */
bool process_is_kernel_thread(pid_t pid);

/* Is it an FPM master? */
bool process_is_master(pid_t pid);

/* The processes that @pid means: the workers of a master, else itself. The array is @discovery's. 0, or a
 * negative errno. */
int process_means(
	pid_t pid, struct discovery *discovery, const struct discovered **ret_processes, size_t *ret_count);
