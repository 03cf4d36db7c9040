/* SPDX-License-Identifier: MIT
 *
 * One scalar of the configuration file: text in, a typed and range-checked value out.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_FOUND_BYTES 48    /* of a wrong value, as messages quote it */
#define CONFIG_ALLOWED_BYTES 160 /* "1 to 1024" */

enum config_kind {
	CONFIG_BOOL,      /* bool */
	CONFIG_COUNT,     /* uint32_t */
	CONFIG_PID,       /* pid_t */
	CONFIG_SIZE32,    /* uint32_t; 64KiB, 8MiB */
	CONFIG_SIZE64,    /* uint64_t */
	CONFIG_DURATION,  /* uint64_t in ns; 100us, 10ms, 5s, 2m, 1h */
	CONFIG_RATE,      /* uint64_t, the period in ns; a number of Hz */
	CONFIG_SHARE,     /* uint32_t in millionths of one CPU; 5%, 0.5%; "none" is 0 */
	CONFIG_CHOICE,    /* uint32_t, the index of one of .choices */
	CONFIG_MODE,      /* mode_t; octal */
	CONFIG_NAME,      /* char[]; "" is none */
	CONFIG_GROUP,     /* char[]; "" is none */
	CONFIG_PATH,      /* char[]; absolute */
	CONFIG_GLOB,      /* char[] */
	CONFIG_PATH_GLOB, /* char[]; begins with / or an asterisk */
};

struct config_key {
	const char *name;
	enum config_kind kind;
	size_t offset;
	size_t size;                /* of what stands there */
	uint64_t min, max;          /* of numbers; Hz for CONFIG_RATE, ns and bytes for durations and sizes */
	const char *const *choices; /* of CONFIG_CHOICE; ends with NULL */
	const char *excludes;       /* the key that says the same in another way, or NULL */
};

struct config_scalar {
	const char *text; /* ends with NUL, may hold others */
	size_t bytes;
	bool is_quoted;
};

/* Writes the value of @scalar to @base + key->offset. False: it is not what @key allows, and nothing was
 * written. */
bool config_value_parse(const struct config_key *key, const struct config_scalar *scalar, void *base);

/* May the values of @key stand in no quotes? */
bool config_value_is_plain(const struct config_key *key);

/* What @key allows, for people: "100us to 1h". */
void config_value_allowed(const struct config_key *key, char ret_allowed[CONFIG_ALLOWED_BYTES]);

/* @scalar in quotes, cut, printable. */
void config_value_quote(const struct config_scalar *scalar, char ret_found[CONFIG_FOUND_BYTES]);
