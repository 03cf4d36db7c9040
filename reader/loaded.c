/* SPDX-License-Identifier: MIT
 *
 * A sorted array. A refresh adds its spans nearly in order, follow-up reads add few; what is done often is to
 * search.
 */
#include "reader/loaded.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CAPACITY_STEP 64

void loaded_clear(struct loaded *loaded)
{
	loaded->count = 0;
}

void loaded_deinit(struct loaded *loaded)
{
	free(loaded->spans);
	*loaded = (struct loaded){0};
}

int loaded_add(struct loaded *loaded, remote_addr addr, size_t bytes, const void *data, bool exact)
{
	size_t at = loaded->count;

	if (loaded->count == loaded->capacity) {
		size_t capacity = loaded->capacity + CAPACITY_STEP;
		struct loaded_span *grown = realloc(loaded->spans, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		loaded->spans = grown;
		loaded->capacity = capacity;
	}
	while (at > 0 && loaded->spans[at - 1].addr > addr)
		at--;
	memmove(&loaded->spans[at + 1], &loaded->spans[at], (loaded->count - at) * sizeof(loaded->spans[0]));
	loaded->spans[at] =
		(struct loaded_span){.addr = addr, .end = addr + bytes, .bytes = data, .exact = exact};
	loaded->count++;
	for (; at < loaded->count; at++) {
		struct loaded_span *span = &loaded->spans[at];

		span->max_end = span->end;
		if (at > 0 && span[-1].max_end > span->max_end)
			span->max_end = span[-1].max_end;
	}
	return 0;
}

const uint8_t *loaded_find(const struct loaded *loaded, remote_addr addr, size_t bytes, bool only_exact)
{
	size_t low = 0, high = loaded->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (loaded->spans[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- > 0) {
		const struct loaded_span *span = &loaded->spans[low];

		if (span->max_end < addr + bytes)
			return NULL;
		if (span->end >= addr + bytes && (span->exact || !only_exact))
			return span->bytes + (addr - span->addr);
	}
	return NULL;
}
