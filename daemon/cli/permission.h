/* SPDX-License-Identifier: MIT
 *
 * What can stand between this program and another process's memory, each asked by itself: so that "not
 * permitted" can be told with the cause and the remedy.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Is CAP_SYS_PTRACE among this process's effective capabilities? */
bool permission_has_ptrace(void);

/* kernel.yama.ptrace_scope; -1 where there is no Yama. */
int permission_yama_scope(void);

/* "Seccomp:" of /proc/self/status: 0 none, 2 a filter; -1: not told. */
int permission_seccomp_mode(void);

/* Calls process_vm_readv() on this very process, for which no permission is needed: what fails now is the
 * call itself. 0, -EPERM or -ENOSYS (a seccomp filter, or a kernel without it). */
int permission_try_readv(void);

/* Does /proc/@pid/ns/@space name the same namespace as ours? False also when it can't be read. */
bool permission_shares_namespace(pid_t pid, const char *space);

/* Why @pid's memory may not be read, and what to do about it: "process_vm_readv is refused by …; …". */
void permission_explain(pid_t pid, char *ret_why, size_t why_bytes);
