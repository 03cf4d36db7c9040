/* SPDX-License-Identifier: MIT
 *
 * The selectors in force, and the processes that those which name one are tied to.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/sampling/discovery.h"
#include "daemon/sampling/fpm_master.h"
#include "daemon/sampling/proc_read.h"
#include "daemon/sampling/selector.h"

#define SELECTION_MAX_SELECTORS 1024
#define SELECTION_NO_RULE (-1)

/* A selector and the process it is tied to. */
struct rule {
	struct selector selector;
	pid_t pid; /* 0: to none yet */
	uint64_t start_time_ticks;
	bool is_master; /* its workers are meant */
	bool is_spent;  /* SELECT_PID whose process is gone */
};

struct selection {
	struct rule *rules;
	size_t count;
};

/* What is known of a process while the rules are tried on it. */
struct candidate {
	struct proc_identity identity;
	pid_t master_pid; /* 0: not a worker */
	const char *pool; /* FPM's, of a worker */
	char executable[PATH_MAX];
};

/* Puts new selectors in force; copied. Those that were there before stay tied to what they were tied to. */
int selection_replace(struct selection *selection, const struct selector *selectors, size_t count);
void selection_deinit(struct selection *selection);

/* The index of the first rule that selects @candidate, or SELECTION_NO_RULE. */
int selection_first_rule(const struct selection *selection, const struct candidate *candidate);

/* @candidate as found under @rule: its group is the selector's, else FPM's, else the executable's name. */
struct discovered selection_describe(
	const struct selection *selection, const struct candidate *candidate, int rule);

/* Is there any rule that processes not known yet could fall under? */
bool selection_is_open(const struct selection *selection);

/* Is there a rule for executables that this one falls under? */
bool selection_names_executable(const struct selection *selection, const char *path);

/* The pid in the file. -EINVAL: there is none in it; another negative errno: it can't be read. */
int selection_read_pid_file(const char *path, pid_t *ret_pid);

/* Ties the rules that name a process or a PID file to what is there now, and notices what is gone. With
 * @verify also those that turned out to be masters after all (caught while they started). Adds to @masters.
 */
int selection_tie(struct selection *selection, struct fpm_masters *masters, bool verify);
