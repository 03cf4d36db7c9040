/* SPDX-License-Identifier: MIT
 *
 * Which PHP it is: exact version, thread safety, debug build.
 */
#pragma once

#include <stdbool.h>

#include "elf_image.h"
#include "memory.h"

#define PHP_VERSION_MAX_BYTES 32

enum {
	PHP_VERSION_E_NOT_STARTED = 1, /* the module registry doesn't hold "standard" yet */
	PHP_VERSION_E_UNREADABLE,      /* it is not the module registry of any PHP since 7.0 */
};

struct php_version {
	char text[PHP_VERSION_MAX_BYTES]; /* "8.2.36", "8.6.0RC3" */
	unsigned id;                      /* 80236, as PHP_VERSION_ID */
	bool zts, debug;
};

/* "8.2.36" -> 80236. -EINVAL: not digits, dot, digits, dot, digits and then no more dots or digits in the
 * way. */
int php_version_parse(const char *text, unsigned *ret_id);

/* Asks the live process: the entry "standard" of its module registry. 0, PHP_VERSION_E_*, negative errno. */
int php_version_read(
	const struct memory *memory, remote_addr module_registry, struct php_version *ret_version);

/* Asks the binary: the X-Powered-By header it carries. For processes that can't be asked, and for messages.
 * 0, ELF_IMAGE_E_NO_SYMBOL, negative errno. */
int php_version_find(const struct elf_image *image, struct php_version *ret_version);
