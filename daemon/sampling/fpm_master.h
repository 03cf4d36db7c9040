/* SPDX-License-Identifier: MIT
 *
 * One FPM master and the workers it has right now.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/sampling/proc_read.h"

#define FPM_POOL_NAME_BYTES 64 /* longer names are cut, for matching too */
#define FPM_MAX_MASTERS 256
#define FPM_MASTER_MAX_WORKERS 8192 /* of one master; what is beyond is not seen */

enum fpm_title {
	FPM_TITLE_OTHER,
	FPM_TITLE_MASTER,
	FPM_TITLE_WORKER,
};

/* What a process title says its owner is. *ret_pool is set for a worker: its pool's name, inside @title. */
enum fpm_title fpm_title_parse(const char *title, const char **ret_pool);

struct fpm_worker {
	struct proc_identity identity;
	char pool[FPM_POOL_NAME_BYTES]; /* as FPM has it, of any bytes; "" where there was no room for it in
					   the title */
	int note;                       /* the owner's; FPM_WORKER_NEW until it has seen the worker */
};

#define FPM_WORKER_NEW (-2)

struct fpm_master {
	pid_t pid;
	uint64_t start_time_ticks;
	int children_fd;
	struct fpm_worker *workers; /* ordered by pid */
	size_t worker_count;
};

/* Those that are known, in no order. */
struct fpm_masters {
	struct fpm_master items[FPM_MAX_MASTERS];
	size_t count;
};

struct fpm_master *fpm_masters_find(struct fpm_masters *masters, pid_t pid);

/* Takes hold of the process as a master, if it isn't known already; whether it is one, the caller has found
 * out. The result is valid until the next refresh. 0, -ESRCH, -E2BIG when FPM_MAX_MASTERS are known, or
 * another negative errno. */
int fpm_masters_add(struct fpm_masters *masters, pid_t pid, struct fpm_master **ret_master);

/* Brings the workers of all masters up to date and lets go of the masters that are gone. One system call for
 * a master with which nothing changed; with @verify each worker known is identified again. */
int fpm_masters_refresh(struct fpm_masters *masters, bool verify, bool *ret_some_gone);

/* Sets the note of every worker back to FPM_WORKER_NEW. */
void fpm_masters_see_workers_anew(struct fpm_masters *masters);

void fpm_masters_deinit(struct fpm_masters *masters);

enum fpm_title fpm_title_of(pid_t pid);

/* Is there "php" in the name of this executable? */
bool fpm_is_called_php(const char *executable);

/* Does @pid say that it is a master, and is its executable called so that it may be? */
bool fpm_is_believable_master(pid_t pid);

/* Does @pid, which says that it is a master, say so only because its parent is one and has just forked it? */
bool fpm_is_newborn_worker(pid_t pid);
