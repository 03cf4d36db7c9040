/* SPDX-License-Identifier: MIT
 *
 * Look-up of exported symbols by their hash tables, as the dynamic linker does it: a handful of small reads,
 * whatever the size of the table.
 */
#pragma once

#include <stdint.h>

struct elf_image;

/* Where the tables are, as virtual addresses of the file; 0: there is none. */
struct elf_symbol_tables {
	uint64_t symbols;     /* DT_SYMTAB */
	uint64_t names;       /* DT_STRTAB */
	uint64_t names_bytes; /* DT_STRSZ */
	uint64_t gnu_hash;    /* DT_GNU_HASH */
	uint64_t sysv_hash;   /* DT_HASH */
};

/* 0, ELF_IMAGE_E_NO_SYMBOL, ELF_IMAGE_E_MALFORMED, negative errno. */
int elf_symbols_find(const struct elf_image *image, const struct elf_symbol_tables *tables, const char *name,
	uint64_t *ret_value, uint64_t *ret_bytes);
