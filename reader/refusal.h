/* SPDX-License-Identifier: MIT
 *
 * Why may this program not read that process? For a person: the cause and the remedy in one line.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What the kernel's refusal can depend on, as far as this program can see. */
struct refusal_facts {
	int has_ptrace_capability; /* CAP_SYS_PTRACE in our effective set; -1: not known */
	int same_user;             /* the target's user is ours; -1: not known */
	int same_user_namespace;   /* 0 also when it can't be seen which */
	int yama_scope;            /* kernel.yama.ptrace_scope; -1: no Yama */
	int seccomp_mode;          /* 0: none, 2: a filter is on us; -1: not known */
	int own_read_error;        /* of reading ourselves, which needs no permission: what fails then is the
				    * call itself. 0, -EPERM (a seccomp filter), -ENOSYS (or a kernel without) */
};

void refusal_collect(pid_t pid, struct refusal_facts *ret_facts);

/* Does /proc/@pid/ns/@space name the same namespace as ours? False also when it can't be read. */
bool refusal_shares_namespace(pid_t pid, const char *space);

/* Writes the sentence for @error (a negative errno: -EPERM, -EACCES, -ENOSYS, any other). Pure. */
void refusal_explain(pid_t pid, int error, const struct refusal_facts *facts, char *why, size_t why_bytes);
