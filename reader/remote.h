/* SPDX-License-Identifier: MIT
 *
 * The one function that reads another process's memory.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/memory.h"

/* What process_vm_readv() can answer that a caller must handle. Anything else is a negative errno: -EPERM (no
 * CAP_SYS_PTRACE, or another user's process), -ENOSYS (seccomp), -ENOMEM. */
enum {
	REMOTE_E_GONE = 1, /* ESRCH: the process has ended */
	REMOTE_E_FAULT,    /* EFAULT or a short read: a span is not mapped; see *ret_failed_span */
};

struct remote_span {
	remote_addr addr;
	void *into;
	size_t bytes;
};

/* The kernel's IOV_MAX (limits.h); more spans than this in one call is -EINVAL. */
#define REMOTE_MAX_SPANS 1024

/* Reads all @spans with one system call, in order. 0 only if every byte arrived. On REMOTE_E_FAULT
 * *ret_failed_span (may be NULL) is the first span that did not arrive whole; those before it did. */
int remote_read(pid_t pid, const struct remote_span *spans, size_t span_count, size_t *ret_failed_span);

/* Calls of process_vm_readv() this thread has made: for the program's own metrics. */
uint64_t remote_read_calls(void);

/* The same function as a struct memory. @pid must outlive it. */
struct memory remote_memory(const pid_t *pid);
