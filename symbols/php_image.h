/* SPDX-License-Identifier: MIT
 *
 * Which of the files that a process has mapped is PHP, and where it was loaded.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "elf_image.h"
#include "memory.h"
#include "procmap.h"

/* Files looked at before a process is taken for something else than PHP. */
#define PHP_IMAGE_MAX_CANDIDATES 1024

enum {
	PHP_IMAGE_E_NOT_PHP = 1,
	PHP_IMAGE_E_NOT_X86_64, /* the executable is of another machine, or 32-bit */
};

/* One file, as loaded. */
struct php_image_file {
	struct elf_image *image; /* NULL: not looked at, or of no use */
	uint64_t bias;
	int fd; /* -1 when it could not be opened and was read from memory */
	const struct mapping *mapping;
};

struct php_image {
	struct php_image_file executable; /* when it is not PHP itself: for symbols it overrides */
	struct php_image_file php;
	bool thread_safe; /* a ZTS build: exports offsets instead of globals */
};

/* Looks at the executable, then at mapped files with "php" in their names, then at all others. A negative
 * errno: none is PHP, but some could be neither opened nor read from memory. @maps and @memory must outlive
 * the result. */
int php_image_find(
	pid_t pid, const struct memory *memory, const struct procmap *maps, struct php_image *ret_image);

/* The address of an exported object or function; 0: there is none. */
remote_addr php_image_address(const struct php_image *image, const char *name);

void php_image_deinit(struct php_image *image);
