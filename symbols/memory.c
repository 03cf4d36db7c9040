/* SPDX-License-Identifier: MIT
 *
 * Strings in a process's memory. A string of unknown length is asked for page by page: the page behind the
 * one in which it ends may not exist, and asking for both at once would find nothing.
 */
#include "symbols/memory.h"

#include <errno.h>
#include <string.h>

#define PAGE_BYTES 4096u

int memory_read_string(const struct memory *memory, remote_addr addr, char *into, size_t bytes)
{
	size_t used = 0;

	while (used < bytes) {
		size_t to_page_end = PAGE_BYTES - (size_t)((addr + used) % PAGE_BYTES);
		size_t step = bytes - used < to_page_end ? bytes - used : to_page_end;
		int r = memory_read(memory, addr + used, into + used, step);

		if (r != 0)
			return r;
		if (memchr(into + used, '\0', step))
			return 0;
		used += step;
	}
	return -ENAMETOOLONG;
}
