/* SPDX-License-Identifier: MIT
 *
 * What /proc says about one process: who it is, what it calls itself, which binary it runs.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_TITLE_BYTES \
	512 /* FPM's titles are a dozen bytes and a path or a name; the rest of a longer one is of no use */

struct proc_identity {
	pid_t pid;
	pid_t parent_pid;
	uint64_t start_time_ticks; /* since boot, in clock ticks: field 22 of /proc/PID/stat */
	uid_t uid;                 /* effective */
	bool is_kernel_thread;     /* PF_KTHREAD among the flags, field 9 */
};

/* 0, or -ESRCH when there is no such process or it is dead and only waits to be reaped. */
int proc_identify(pid_t pid, struct proc_identity *ret_identity);

/* Does @pid still name the process that started at @start_time_ticks? */
bool proc_is_same(pid_t pid, uint64_t start_time_ticks);

/* The process title: argv as the process wrote it over, up to its first NUL; longer ones are cut. 0 or a
 * negative errno; kernel threads have the title "". */
int proc_read_title(pid_t pid, char ret_title[PROC_TITLE_BYTES]);

/* The path of the executable in the target's own mount namespace, without the " (deleted)" of one that was
 * replaced. -ENOENT for kernel threads, -EACCES without CAP_SYS_PTRACE, -ENAMETOOLONG when it does not fit.
 */
int proc_read_executable(pid_t pid, char *ret_executable, size_t bytes);

/* The part of @path behind its last slash. */
const char *proc_base_name(const char *path);
