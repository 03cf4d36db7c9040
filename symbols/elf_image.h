/* SPDX-License-Identifier: MIT
 *
 * One ELF file, read through libelf: its exported symbols and where it was loaded. Works from PT_DYNAMIC
 * alone, so that a binary without section headers is no special case.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cleanup.h"
#include "memory.h"
#include "procmap.h"

enum {
	ELF_IMAGE_E_NOT_ELF = 1, /* not an ELF executable or shared object */
	ELF_IMAGE_E_MALFORMED,   /* its tables point outside of it, or are larger than the named bounds */
	ELF_IMAGE_E_NO_DYNAMIC,  /* static: exports nothing */
	ELF_IMAGE_E_NO_SYMBOL,   /* no such exported symbol; elf_image_find(): no such text */
	ELF_IMAGE_E_NOT_LOADED,  /* elf_image_load_bias(): no mapping fits its first segment */
	ELF_IMAGE_E_NOT_X86_64,  /* ELF, of another machine or class */
};

/* Program headers read of a file; linkers write about a dozen. */
#define ELF_IMAGE_MAX_SEGMENTS 128
/* Entries of the dynamic section looked at; linkers write some 30, and one for each library needed. */
#define ELF_IMAGE_MAX_DYNAMIC 4096
#define ELF_IMAGE_MAX_NOTE_BYTES 65536
/* A build id as hex, and its NUL: ids are 20 bytes (--build-id=sha1), up to 32 in practice. */
#define ELF_IMAGE_MAX_BUILD_ID 129

struct elf_image;

/* Opens the file behind @fd, which may be closed afterwards. */
int elf_image_open(int fd, struct elf_image **ret_image);

/* Opens the image of a live process whose file can't be opened, from its loaded segments. @base is the start
 * of its first mapping, where its ELF header is. Reads through @memory, and what that points to, until it is
 * freed. */
int elf_image_open_memory(const struct memory *memory, remote_addr base, struct elf_image **ret_image);

/* Looks up one exported (.dynsym) object or function: its value as in the file (before the load bias) and
 * size. */
int elf_image_symbol(
	const struct elf_image *image, const char *name, uint64_t *ret_value, uint64_t *ret_bytes);

/* What to add to a symbol's value to get its address, given the mappings of this file (those with the device
 * and inode of @any). Of a file that is loaded more than once, the copy that @any belongs to. */
int elf_image_load_bias(const struct elf_image *image, const struct procmap *maps, const struct mapping *any,
	uint64_t *ret_bias);

/* Copies the file's bytes at a virtual address (.rodata, code), for the decoders of short accessor functions.
 */
int elf_image_bytes(const struct elf_image *image, uint64_t value, void *into, size_t bytes);

/* Finds the first @text in the segments that can't be written to, and copies the @bytes that follow it. Reads
 * all of them if need be (some ms): for messages, not for the usual way. */
int elf_image_find(const struct elf_image *image, const char *text, void *into, size_t bytes);

/* The GNU build id, in lower-case hex; "" if there is none. Owned by the image. */
const char *elf_image_build_id(const struct elf_image *image);

void elf_image_free(struct elf_image *image);
DEFINE_CLEANUP(struct elf_image, elf_image_free)
