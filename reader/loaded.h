/* SPDX-License-Identifier: MIT
 *
 * The pieces of memory that one instant of a view has read, found by address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/memory.h"

struct loaded_span {
	remote_addr addr, end;
	remote_addr max_end; /* of this and all before it: where a search backwards may stop */
	const uint8_t *bytes;
	bool exact; /* proved to belong to the instant */
};

struct loaded {
	struct loaded_span *spans; /* by address; they may overlap */
	size_t count, capacity;
};

void loaded_clear(struct loaded *loaded);
void loaded_deinit(struct loaded *loaded);

/* Notes that @data holds [@addr, @addr + @bytes). 0 or -ENOMEM. */
int loaded_add(struct loaded *loaded, remote_addr addr, size_t bytes, const void *data, bool exact);

/* The bytes at @addr, or NULL. @only_exact: among those of the instant. */
const uint8_t *loaded_find(const struct loaded *loaded, remote_addr addr, size_t bytes, bool only_exact);
