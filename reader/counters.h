/* SPDX-License-Identifier: MIT
 *
 * PHP's own counters: memory manager and garbage collector.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "symbols/php_binary.h"
#include "reader/view.h"

struct counters {
	bool has_memory, has_gc;                            /* false: the numbers mean nothing */
	uint64_t memory_bytes, memory_peak_bytes;           /* memory_get_usage(), memory_get_peak_usage() */
	uint64_t memory_real_bytes, memory_real_peak_bytes; /* the same with true */
	uint32_t gc_runs, gc_collected;                     /* as in gc_status(): since the request began */
};

/* One or two reads. What can't be read is absent; VIEW_E_TORN, REMOTE_E_GONE and negative errno are errors.
 */
int counters_read(const struct php_binary *binary, struct view *view, struct counters *ret_counters);
