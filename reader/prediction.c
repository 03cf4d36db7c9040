/* SPDX-License-Identifier: MIT
 *
 * The list behind "one system call a sample". A PHP process looks the same to the reader from one sample to
 * the next: same function headers, same trace context, same generators. So what was looked at is read again,
 * unasked, in the next sample's single call.
 *
 * Kept as a sorted array: some 100 entries that are searched often and changed seldom. Nothing is allocated.
 */
#include "reader/prediction.h"

#include <string.h>

#define PAGE_MASK (~(remote_addr)4095)

static remote_addr span_end(const struct prediction_span *span)
{
	return span->addr + span->bytes;
}

static void remove_range(struct prediction *prediction, size_t first, size_t count)
{
	for (size_t i = first; i < first + count; i++)
		prediction->total_bytes -= prediction->spans[i].bytes;
	memmove(&prediction->spans[first], &prediction->spans[first + count],
		(prediction->count - first - count) * sizeof(prediction->spans[0]));
	prediction->count -= count;
}

void prediction_tick(struct prediction *prediction, uint32_t max_age)
{
	size_t kept = 0;

	prediction->now++;
	for (size_t i = 0; i < prediction->count; i++) {
		if (prediction->now - prediction->spans[i].used_at > max_age)
			prediction->total_bytes -= prediction->spans[i].bytes;
		else
			prediction->spans[kept++] = prediction->spans[i];
	}
	prediction->count = kept;
}

/* The first span that ends behind @addr. */
static size_t first_ending_behind(const struct prediction *prediction, remote_addr addr)
{
	size_t low = 0, high = prediction->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (span_end(&prediction->spans[middle]) > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* May two spans, @left before @right, become one? They must if they overlap, since the list may not. */
static bool belong_together(remote_addr left, remote_addr left_end, remote_addr right, remote_addr right_end)
{
	if (right < left_end)
		return true;
	return right - left_end <= PREDICTION_MERGE_GAP_BYTES &&
	       ((left_end - 1) & PAGE_MASK) == (right & PAGE_MASK) &&
	       right_end - left <= PREDICTION_MERGE_MAX_BYTES;
}

/* Makes room for one more; false if every span was used in this very instant. */
static bool evict_oldest(struct prediction *prediction)
{
	size_t oldest = 0;

	if (prediction->count == 0)
		return false;
	for (size_t i = 1; i < prediction->count; i++)
		if (prediction->now - prediction->spans[i].used_at >
			prediction->now - prediction->spans[oldest].used_at)
			oldest = i;
	if (prediction->spans[oldest].used_at == prediction->now)
		return false;
	remove_range(prediction, oldest, 1);
	return true;
}

void prediction_use(struct prediction *prediction, remote_addr addr, size_t bytes)
{
	remote_addr end = addr + bytes;
	size_t first = first_ending_behind(prediction, addr);
	size_t last; /* behind the last one that is absorbed */

	if (bytes == 0 || end < addr || bytes > PREDICTION_MAX_BYTES)
		return;
	if (first < prediction->count && prediction->spans[first].addr <= addr &&
		span_end(&prediction->spans[first]) >= end) {
		prediction->spans[first].used_at = prediction->now;
		return;
	}

	if (first > 0 && belong_together(prediction->spans[first - 1].addr,
				 span_end(&prediction->spans[first - 1]), addr, end)) {
		first--;
		addr = prediction->spans[first].addr;
	}
	for (last = first; last < prediction->count; last++) {
		const struct prediction_span *next = &prediction->spans[last];

		if (next->addr >= addr && !belong_together(addr, end, next->addr, span_end(next)))
			break;
		if (next->addr < addr)
			addr = next->addr;
		if (span_end(next) > end)
			end = span_end(next);
	}
	if (end - addr > PREDICTION_MAX_BYTES)
		return;
	remove_range(prediction, first, last - first);

	while (prediction->count == PREDICTION_MAX_SPANS ||
		prediction->total_bytes + (end - addr) > PREDICTION_MAX_BYTES)
		if (!evict_oldest(prediction))
			return;

	first = first_ending_behind(prediction, addr); /* eviction may have moved it */
	memmove(&prediction->spans[first + 1], &prediction->spans[first],
		(prediction->count - first) * sizeof(prediction->spans[0]));
	prediction->spans[first] = (struct prediction_span){
		.addr = addr, .bytes = (uint32_t)(end - addr), .used_at = prediction->now};
	prediction->count++;
	prediction->total_bytes += end - addr;
}

bool prediction_drop(struct prediction *prediction, remote_addr addr)
{
	size_t found = first_ending_behind(prediction, addr);

	if (found == prediction->count || prediction->spans[found].addr != addr)
		return false;
	remove_range(prediction, found, 1);
	return true;
}

void prediction_clear(struct prediction *prediction)
{
	prediction->count = prediction->total_bytes = 0;
}
