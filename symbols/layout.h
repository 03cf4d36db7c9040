/* SPDX-License-Identifier: MIT
 *
 * Where the fields of PHP's structures are, per minor version. layout.def is the one readable source: a row a
 * field, a column a version. This header turns its rows into the members of struct layout; layout.c turns its
 * columns into tables. All numbers are bytes from the start of the structure, x86-64, NTS, release build.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "memory.h"

/* A field that does not exist in a version. */
#define LAYOUT_ABSENT UINT32_MAX

struct layout {
	const char *version; /* "8.2" */
#define STRUCTURE(prefix, c_name)
#define FIELD(prefix, name, path, ...) uint32_t prefix##_##name;
#define CONSTANT(name, ...) uint32_t name;
#include "layout.def"
#undef STRUCTURE
#undef FIELD
#undef CONSTANT
};

/* The table for a PHP version such as 80236 (PHP_VERSION_ID); NULL if this build knows none. */
const struct layout *layout_for_version(unsigned version_id);

/* "7.4 to 8.6": for messages. */
const char *layout_known_versions(void);

/* The i-th difference between two layouts, for diffing tables and for comparing with DWARF: writes the
 * field's name and both values, returns 1; 0 when there are no more. *iterator starts at 0. */
int layout_difference(const struct layout *a, const struct layout *b, size_t *iterator,
	const char **ret_field, uint32_t *ret_a, uint32_t *ret_b);
