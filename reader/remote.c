/* SPDX-License-Identifier: MIT
 *
 * Everything this program knows of another process's memory came through remote_read(). There is no second
 * call of process_vm_readv(), so that there is one place that decides what its answers mean.
 *
 * The kernel copies the spans in order and stops at the first byte it can't read; what it then returns is a
 * count of bytes, of any granularity, and says nothing about what came behind. So the count is compared with
 * what was asked for, and a short one becomes the number of the span that broke. The call neither stops the
 * target nor takes its locks.
 */
#include "reader/remote.h"

#include <errno.h>
#include <sys/uio.h>

static _Thread_local uint64_t calls_made;

/* The taxonomy: what an errno of process_vm_readv(2) means to a caller. */
static int remote_error(int error)
{
	switch (error) {
	case ESRCH:
		return REMOTE_E_GONE;
	case EFAULT:
		return REMOTE_E_FAULT;
	case EPERM:  /* no CAP_SYS_PTRACE, another user's process, Yama */
	case ENOSYS: /* not in this kernel, or refused by a seccomp filter */
	case ENOMEM:
	case EINVAL:
	default:
		return -error;
	}
}

int remote_read(pid_t pid, const struct remote_span *spans, size_t span_count, size_t *ret_failed_span)
{
	struct iovec local[REMOTE_MAX_SPANS], remote[REMOTE_MAX_SPANS];
	size_t arrived, local_count = 0;

	if (span_count == 0)
		return 0;
	if (span_count > REMOTE_MAX_SPANS)
		return -EINVAL;

	for (size_t i = 0; i < span_count; i++) {
		remote[i] = (struct iovec){
			.iov_base = (void *)(uintptr_t)spans[i].addr, .iov_len = spans[i].bytes};
		/* Neighbours here make one vector: the kernel is charged for each. */
		if (local_count > 0 &&
			(char *)local[local_count - 1].iov_base + local[local_count - 1].iov_len ==
				spans[i].into)
			local[local_count - 1].iov_len += spans[i].bytes;
		else
			local[local_count++] =
				(struct iovec){.iov_base = spans[i].into, .iov_len = spans[i].bytes};
	}

	calls_made++;
	ssize_t result = process_vm_readv(pid, local, local_count, remote, span_count, 0);
	if (result < 0) {
		int r = remote_error(errno);

		if (r == REMOTE_E_FAULT && ret_failed_span)
			*ret_failed_span = 0; /* nothing arrived, so it was the first */
		return r;
	}

	arrived = (size_t)result;
	for (size_t i = 0; i < span_count; i++) {
		if (arrived < spans[i].bytes) {
			if (ret_failed_span)
				*ret_failed_span = i;
			return REMOTE_E_FAULT;
		}
		arrived -= spans[i].bytes;
	}
	return 0;
}

uint64_t remote_read_calls(void)
{
	return calls_made;
}

static int memory_of_process(void *context, remote_addr addr, void *into, size_t bytes)
{
	struct remote_span span = {.addr = addr, .into = into, .bytes = bytes};

	return remote_read(*(const pid_t *)context, &span, 1, NULL);
}

struct memory remote_memory(const pid_t *pid)
{
	return (struct memory){.read = memory_of_process, .context = (void *)pid};
}
