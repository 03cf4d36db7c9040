/* SPDX-License-Identifier: MIT
 *
 * What "the memory of a process" is to the rooms that only interpret it: an address and a way to read. The
 * reader supplies the way (process_vm_readv), tests supply saved images. Nothing below the reader reads by
 * itself.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* An address in another process. Never a pointer: it can't be dereferenced by mistake. */
typedef uint64_t remote_addr;

struct memory {
	/* Reads exactly @bytes at @addr into @into. 0, or what the reader says: a negative errno, or a
	 * positive REMOTE_E_* (reader/remote.h). A short read is an error. */
	int (*read)(void *context, remote_addr addr, void *into, size_t bytes);
	void *context;
};

static inline int memory_read(const struct memory *memory, remote_addr addr, void *into, size_t bytes)
{
	return memory->read(memory->context, addr, into, bytes);
}

/* Reads the NUL-terminated string at @addr. -ENAMETOOLONG: it and its NUL don't fit in @bytes; else as above.
 * @into may have been written to on failure. */
int memory_read_string(const struct memory *memory, remote_addr addr, char *into, size_t bytes);

/* Can @addr be in user space, and not in the never-mapped first page? (x86-64, four-level page tables; PHP
 * can't be given addresses above by mmap() without asking for them.) */
static inline int remote_addr_is_user(remote_addr addr)
{
	return addr >= 4096 && addr < (UINT64_C(1) << 47);
}
