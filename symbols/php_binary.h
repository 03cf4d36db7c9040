/* SPDX-License-Identifier: MIT
 *
 * Finds PHP inside a live process: which mapped file it is (the executable or a libphp.so), what it exports
 * and at which addresses, which version it is, and which layout describes it. Refuses what it can't read
 * truthfully, with the reason.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "cleanup.h"
#include "layout.h"
#include "memory.h"
#include "procmap.h"

enum {
	PHP_BINARY_E_NOT_PHP = 1,     /* no mapped file exports executor_globals */
	PHP_BINARY_E_UNKNOWN_VERSION, /* PHP, of a version no layout table describes */
	PHP_BINARY_E_ZTS,             /* thread-safe build */
	PHP_BINARY_E_DEBUG,           /* debug build without debug information to learn its layout from */
	PHP_BINARY_E_NOT_STARTED,     /* PHP is mapped but its module registry is still empty: try again */
	PHP_BINARY_E_SELF_TEST,       /* the layout does not fit the live memory */
	PHP_BINARY_E_NOT_X86_64,
};

struct php_binary {
	char version[32];    /* "8.2.36", exact */
	unsigned version_id; /* 80236 */
	bool zts, debug;
	char sapi[32]; /* sapi_module.name: "fpm-fcgi", "cli" */
	char build_id[64];
	char path[256]; /* as the target's maps name it; for messages */
	const struct layout *layout;
	struct layout *own_layout; /* when it came from DWARF: owned */
	enum { LAYOUT_FROM_TABLE, LAYOUT_FROM_DWARF, LAYOUT_TABLE_AND_DWARF } layout_source;

	remote_addr executor_globals, compiler_globals, sapi_globals, core_globals, module_registry,
		sapi_module;
	remote_addr mm_heap_pointer; /* address of the variable that holds the zend_mm_heap; 0: unknown */
	remote_addr gc_globals;      /* 0: unknown */
};

/* Examines process @pid, whose memory is read through @memory. On a positive PHP_BINARY_E_* the sentence in
 * @ret_why (may be NULL; truncated to @why_bytes) names the thing, the cause and the remedy. Owned by the
 * caller. */
int php_binary_examine(pid_t pid, const struct memory *memory, struct php_binary **ret_binary, char *ret_why,
	size_t why_bytes);

void php_binary_free(struct php_binary *binary);
DEFINE_CLEANUP(struct php_binary, php_binary_free)
