/* SPDX-License-Identifier: MIT
 *
 * Variables of PHP that no symbol names, found by decoding exported functions that do nothing but return
 * them.
 */
#pragma once

#include "elf_image.h"
#include "memory.h"
#include "procmap.h"

/* The address of the variable that holds the zend_mm_heap's, from zend_mm_get_heap(); 0 if it is not to be
 * had. */
remote_addr php_accessors_mm_heap_pointer(const struct elf_image *image, uint64_t bias,
	const struct memory *memory, const struct procmap *maps);

/* The address of gc_globals, from gc_enabled(); 0 if it is not to be had. */
remote_addr php_accessors_gc_globals(const struct elf_image *image, uint64_t bias,
	const struct memory *memory, const struct procmap *maps);
