/* SPDX-License-Identifier: MIT
 *
 * One ELF file, read through libelf: its exported symbols and where it was loaded. Works from PT_DYNAMIC alone,
 * so that a binary without section headers is no special case.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "memory.h"
#include "procmap.h"

enum {
	ELF_IMAGE_E_NOT_ELF = 1,     /* not an ELF file, or not x86-64 */
	ELF_IMAGE_E_MALFORMED,	     /* its tables point outside of it, or are larger than the named bounds */
	ELF_IMAGE_E_NO_DYNAMIC,	     /* static: exports nothing */
	ELF_IMAGE_E_NO_SYMBOL,	     /* elf_image_symbol(): no such exported symbol */
	ELF_IMAGE_E_NOT_LOADED,	     /* elf_image_load_bias(): no mapping fits its first segment */
};

struct elf_image;

/* Opens the file behind @fd, which may be closed afterwards. */
int elf_image_open(int fd, struct elf_image **ret_image);

/* Rebuilds the image from the loaded segments of a live process whose file can't be opened. @base is the start of
 * its first mapping. */
int elf_image_open_memory(const struct memory *memory, remote_addr base, struct elf_image **ret_image);

/* Looks up one exported (.dynsym) object or function: its value as in the file (before the load bias) and size. */
int elf_image_symbol(const struct elf_image *image, const char *name, uint64_t *ret_value, uint64_t *ret_bytes);

/* What to add to a symbol's value to get its address, given the mappings of this file (@device, @inode). */
int elf_image_load_bias(const struct elf_image *image, const struct procmap *maps, const struct mapping *any,
	uint64_t *ret_bias);

/* Copies the file's bytes at a virtual address (.rodata, code), for the decoders of short accessor functions. */
int elf_image_bytes(const struct elf_image *image, uint64_t value, void *into, size_t bytes);

/* The GNU build id, in lower-case hex; "" if there is none. Owned by the image. */
const char *elf_image_build_id(const struct elf_image *image);

void elf_image_free(struct elf_image *image);
DEFINE_CLEANUP(struct elf_image, elf_image_free)
