/* SPDX-License-Identifier: MIT
 *
 * Which places of a process the next sample will look at: those the last samples looked at. Pure data: a
 * sorted, bounded list of spans, merged where they touch.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/memory.h"

/* Spans remembered. Each costs 0.1 us in the one call (FACTS, process_vm_readv); a deep stack of closures
 * with its functions, files and trace context needs some 100. */
#define PREDICTION_MAX_SPANS 192
/* Bytes they may sum to: a 5,000-deep stack on pages behind the innermost one is 1 MiB. */
#define PREDICTION_MAX_BYTES (4u << 20)
/* Instants after which a span nobody looked at is forgotten. Not 1: what a loop does alternately stays known.
 */
#define PREDICTION_MAX_AGE 16
/* Spans this near to each other become one: a vector costs more than the bytes of a gap, 0.25 us as against
 * 0.05 us a KiB (measured on a whole sample, docs/BENCHMARKS.md). Only within one 4 KiB page, so that the gap
 * is as readable as they are. */
#define PREDICTION_MERGE_GAP_BYTES 2048
#define PREDICTION_MERGE_MAX_BYTES 4096

struct prediction_span {
	remote_addr addr;
	uint32_t bytes;
	uint32_t used_at;
};

struct prediction {
	struct prediction_span spans[PREDICTION_MAX_SPANS]; /* by address, not overlapping */
	size_t count;
	size_t total_bytes;
	uint32_t now; /* the instant */
};

/* Begins a new instant and forgets what has not been looked at for more than @max_age instants. */
void prediction_tick(struct prediction *prediction, uint32_t max_age);

/* Notes that [@addr, @addr + @bytes) was looked at in this instant. Past the bounds the span that was unused
 * for longest gives way; if none was unused, the new one is not remembered. */
void prediction_use(struct prediction *prediction, remote_addr addr, size_t bytes);

/* Forgets the span that starts at @addr: it can't be read any more. False: there is none. */
bool prediction_drop(struct prediction *prediction, remote_addr addr);

void prediction_clear(struct prediction *prediction);
