/* SPDX-License-Identifier: MIT
 *
 * Which keys there are: the sections of the file and the keys of each, with what they allow.
 */
#pragma once

#include <stddef.h>

#include "config/config_values.h"

/* Bounds that are part of the program's promises rather than anybody's choice. */
#define CONFIG_MAX_RATE_HZ 10000
#define CONFIG_MAX_PERIOD_NS 1000000000ull
#define CONFIG_MAX_DEPTH 1024
#define CONFIG_MAX_THREADS 64

struct config_section {
	const char *name;
	const struct config_key *keys;
	size_t key_count;
};

extern const struct config_section config_sections[];
extern const size_t config_section_count;

/* An entry of `pools:`; offsets are into struct config_pool. */
extern const struct config_section config_pool_section;
