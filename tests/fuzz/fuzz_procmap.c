/* SPDX-License-Identifier: MIT
 *
 * Fuzzes the parser of /proc/PID/maps. What it accepts must be sorted, and each mapping be found by its
 * addresses.
 */
#include <stdlib.h>

#include "symbols/procmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;

	if (procmap_parse((const char *)data, bytes, &maps) != 0)
		return 0;
	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->mappings[i];

		if (mapping->start >= mapping->end || (i && maps->mappings[i - 1].end > mapping->start) ||
			procmap_find(maps, mapping->start) != mapping ||
			procmap_find(maps, mapping->end - 1) != mapping)
			abort();
	}
	return 0;
}
