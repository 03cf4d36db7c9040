/* SPDX-License-Identifier: MIT
 *
 * What memory_get_usage() and gc_status() would answer, read from where PHP keeps it: struct _zend_mm_heap
 * (Zend/zend_alloc.c) and struct _zend_gc_globals (Zend/zend_gc.c). Neither is exported. symbols/ decodes
 * where they are from the code of exported functions; for the heap there is a second way, since every chunk
 * of the memory manager begins with a pointer to its heap and the VM's stack lies in a chunk.
 *
 * These are statistics that PHP updates at each allocation, so they are read once when asked for, not at each
 * sample, and numbers that contradict each other (a heap replaced by USE_ZEND_ALLOC=0, say) count as absent.
 */
#include "reader/counters.h"

#include <string.h>

#include "reader/load.h"
#include "reader/remote.h"

/* Zend/zend_alloc.c: ZEND_MM_CHUNK_SIZE, also a chunk's alignment; its first word is the heap. */
#define CHUNK_BYTES (2ULL * 1024 * 1024)
#define PAGE_BYTES 4096U

/* The error behind a NULL of view_at(): 0 if it only means "absent". */
static int error_or_absent(const struct view *view)
{
	int error = view_error(view);

	return error < 0 || error == VIEW_E_TORN || error == REMOTE_E_GONE ? error : 0;
}

/* The address of the zend_mm_heap; 0: not found. */
static int find_heap(const struct php_binary *binary, struct view *view, remote_addr *ret_heap)
{
	remote_addr pointer = binary->mm_heap_pointer;
	const unsigned char *at;

	*ret_heap = 0;
	if (pointer == 0) {
		at = view_at(
			view, binary->executor_globals + binary->layout->eg_vm_stack, sizeof(remote_addr));
		if (!at)
			return error_or_absent(view);
		pointer = load_u64(at) & ~(CHUNK_BYTES - 1);
	}
	if (pointer == 0)
		return 0;
	at = view_at(view, pointer, sizeof(remote_addr));
	if (!at)
		return error_or_absent(view);
	*ret_heap = load_u64(at);
	return 0;
}

static int read_memory(const struct php_binary *binary, struct view *view, struct counters *counters)
{
	const struct layout *layout = binary->layout;
	const unsigned char *heap;
	remote_addr addr;
	int r;

	r = find_heap(binary, view, &addr);
	if (r != 0 || addr == 0)
		return r;
	heap = view_at(view, addr, layout->mm_heap_real_peak + sizeof(uint64_t));
	if (!heap)
		return error_or_absent(view);
	counters->memory_bytes = load_u64(heap + layout->mm_heap_size);
	counters->memory_peak_bytes = load_u64(heap + layout->mm_heap_peak);
	counters->memory_real_bytes = load_u64(heap + layout->mm_heap_real_size);
	counters->memory_real_peak_bytes = load_u64(heap + layout->mm_heap_real_peak);
	/* PHP raises a peak after what it is the peak of. */
	if (counters->memory_peak_bytes < counters->memory_bytes)
		counters->memory_peak_bytes = counters->memory_bytes;
	if (counters->memory_real_peak_bytes < counters->memory_real_bytes)
		counters->memory_real_peak_bytes = counters->memory_real_bytes;
	/* What is taken from the system are chunks and whole pages, and what is in use is part of it. */
	counters->has_memory = counters->memory_real_bytes > 0 &&
			       counters->memory_real_bytes % PAGE_BYTES == 0 &&
			       counters->memory_bytes <= counters->memory_real_bytes;
	return 0;
}

static int read_gc(const struct php_binary *binary, struct view *view, struct counters *counters)
{
	const struct layout *layout = binary->layout;
	const unsigned char *gc;

	if (binary->gc_globals == 0)
		return 0;
	gc = view_at(view, binary->gc_globals, layout->gc_collected + sizeof(uint32_t));
	if (!gc)
		return error_or_absent(view);
	memcpy(&counters->gc_runs, gc + layout->gc_gc_runs, sizeof(counters->gc_runs));
	memcpy(&counters->gc_collected, gc + layout->gc_collected, sizeof(counters->gc_collected));
	counters->has_gc = true;
	return 0;
}

int counters_read(const struct php_binary *binary, struct view *view, struct counters *ret_counters)
{
	struct counters counters = {0};
	int r;

	r = read_memory(binary, view, &counters);
	if (r == 0)
		r = read_gc(binary, view, &counters);
	if (r != 0)
		return r;
	*ret_counters = counters;
	return 0;
}
