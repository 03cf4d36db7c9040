/* SPDX-License-Identifier: MIT
 *
 * Why may this program not read that process? For a person: the cause and the remedy in one line.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* What the kernel's refusal can depend on, as far as this program can see. */
struct refusal_facts {
	int has_ptrace_capability; /* CAP_SYS_PTRACE in our effective set; -1: not known */
	int same_user;             /* the target's user is ours; -1: not known */
	int yama_scope;            /* kernel.yama.ptrace_scope; -1: no Yama */
	int seccomp_filtered;      /* a seccomp filter is on us; -1: not known */
};

void refusal_collect(pid_t pid, struct refusal_facts *ret_facts);

/* Writes the sentence for @error (a negative errno: -EPERM, -EACCES, -ENOSYS, any other). Pure. */
void refusal_explain(pid_t pid, int error, const struct refusal_facts *facts, char *why, size_t why_bytes);
