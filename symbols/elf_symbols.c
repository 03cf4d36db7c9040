/* SPDX-License-Identifier: MIT
 *
 * Symbol look-up through DT_GNU_HASH or DT_HASH. The tables are not copied and not even measured (the dynamic
 * section doesn't say how many symbols there are, only section headers do): each word is read where the hash
 * says it is, through elf_image_bytes(), which refuses what lies outside the file. The formats are those of
 * the System V ABI (chapter 5, "Hash Table") and of binutils' and glibc's sources for DT_GNU_HASH, of which
 * no standard exists.
 */
#include "symbols/elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "symbols/elf_image.h"

/* Longest chain of one bucket that is followed. Linkers aim at two to four entries a bucket; a cycle in a
 * hostile table ends here. */
#define MAX_CHAIN 1024
/* Longest symbol name that can be asked for. */
#define MAX_NAME_BYTES 128

static int read_word(const struct elf_image *image, uint64_t table, uint64_t index, uint32_t *ret_word)
{
	return elf_image_bytes(image, table + index * sizeof(*ret_word), ret_word, sizeof(*ret_word));
}

/* Reads symbol @index: 0 if it defines @name, ELF_IMAGE_E_NO_SYMBOL if not. */
static int match_symbol(const struct elf_image *image, const struct elf_symbol_tables *tables, uint32_t index,
	const char *name, Elf64_Sym *ret_symbol)
{
	size_t bytes = strlen(name) + 1;
	char found[MAX_NAME_BYTES];
	Elf64_Sym symbol;
	unsigned type;
	int r;

	r = elf_image_bytes(
		image, tables->symbols + (uint64_t)index * sizeof(symbol), &symbol, sizeof(symbol));
	if (r != 0)
		return r;
	type = ELF64_ST_TYPE(symbol.st_info);
	if (symbol.st_shndx == SHN_UNDEF || (type != STT_OBJECT && type != STT_FUNC && type != STT_NOTYPE))
		return ELF_IMAGE_E_NO_SYMBOL;
	if (symbol.st_name >= tables->names_bytes)
		return ELF_IMAGE_E_MALFORMED;
	if (tables->names_bytes - symbol.st_name < bytes)
		return ELF_IMAGE_E_NO_SYMBOL;
	r = elf_image_bytes(image, tables->names + symbol.st_name, found, bytes);
	if (r != 0)
		return r;
	if (memcmp(found, name, bytes) != 0)
		return ELF_IMAGE_E_NO_SYMBOL;
	*ret_symbol = symbol;
	return 0;
}

static uint32_t gnu_hash_of(const char *name)
{
	uint32_t hash = 5381;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		hash = hash * 33 + *c;
	return hash;
}

static int find_by_gnu_hash(const struct elf_image *image, const struct elf_symbol_tables *tables,
	const char *name, Elf64_Sym *ret_symbol)
{
	struct {
		uint32_t buckets, first_symbol, bloom_words, bloom_shift;
	} header;
	uint64_t bloom, bucket_table, chain_table, bloom_word, bits;
	uint32_t hash = gnu_hash_of(name), index;
	int r;

	r = elf_image_bytes(image, tables->gnu_hash, &header, sizeof(header));
	if (r != 0)
		return r;
	if (!header.buckets || !header.bloom_words || header.bloom_shift >= 32)
		return ELF_IMAGE_E_MALFORMED;
	bloom = tables->gnu_hash + sizeof(header);
	bucket_table = bloom + (uint64_t)header.bloom_words * sizeof(bloom_word);
	chain_table = bucket_table + (uint64_t)header.buckets * sizeof(uint32_t);

	/* Most files don't have the name, and say so here, after two reads. */
	r = elf_image_bytes(image, bloom + (uint64_t)(hash / 64 % header.bloom_words) * sizeof(bloom_word),
		&bloom_word, sizeof(bloom_word));
	if (r != 0)
		return r;
	bits = UINT64_C(1) << (hash % 64) | UINT64_C(1) << ((hash >> header.bloom_shift) % 64);
	if ((bloom_word & bits) != bits)
		return ELF_IMAGE_E_NO_SYMBOL;

	r = read_word(image, bucket_table, hash % header.buckets, &index);
	if (r != 0)
		return r;
	if (index < header.first_symbol) /* 0: an empty bucket */
		return ELF_IMAGE_E_NO_SYMBOL;
	for (unsigned step = 0; step < MAX_CHAIN; step++, index++) {
		uint32_t chained;

		/* The chain holds the symbols' hashes; bit 0 marks the last one instead. */
		r = read_word(image, chain_table, index - header.first_symbol, &chained);
		if (r != 0)
			return r;
		if ((chained | 1) == (hash | 1)) {
			r = match_symbol(image, tables, index, name, ret_symbol);
			if (r != ELF_IMAGE_E_NO_SYMBOL)
				return r;
		}
		if (chained & 1)
			return ELF_IMAGE_E_NO_SYMBOL;
	}
	return ELF_IMAGE_E_MALFORMED;
}

static uint32_t sysv_hash_of(const char *name)
{
	uint32_t hash = 0;

	for (const unsigned char *c = (const unsigned char *)name; *c; c++) {
		uint32_t top;

		hash = (hash << 4) + *c;
		top = hash & 0xf0000000;
		hash ^= top >> 24;
		hash &= ~top;
	}
	return hash;
}

static int find_by_sysv_hash(const struct elf_image *image, const struct elf_symbol_tables *tables,
	const char *name, Elf64_Sym *ret_symbol)
{
	struct {
		uint32_t buckets, chains;
	} header;
	uint64_t bucket_table, chain_table;
	uint32_t index;
	int r;

	r = elf_image_bytes(image, tables->sysv_hash, &header, sizeof(header));
	if (r != 0)
		return r;
	if (!header.buckets)
		return ELF_IMAGE_E_MALFORMED;
	bucket_table = tables->sysv_hash + sizeof(header);
	chain_table = bucket_table + (uint64_t)header.buckets * sizeof(uint32_t);

	r = read_word(image, bucket_table, sysv_hash_of(name) % header.buckets, &index);
	for (unsigned step = 0; r == 0 && step < MAX_CHAIN; step++) {
		if (index == STN_UNDEF)
			return ELF_IMAGE_E_NO_SYMBOL;
		if (index >= header.chains)
			return ELF_IMAGE_E_MALFORMED;
		r = match_symbol(image, tables, index, name, ret_symbol);
		if (r != ELF_IMAGE_E_NO_SYMBOL)
			return r;
		r = read_word(image, chain_table, index, &index);
	}
	return r != 0 ? r : ELF_IMAGE_E_MALFORMED;
}

int elf_symbols_find(const struct elf_image *image, const struct elf_symbol_tables *tables, const char *name,
	uint64_t *ret_value, uint64_t *ret_bytes)
{
	Elf64_Sym symbol = {0};
	int r;

	if (strlen(name) >= MAX_NAME_BYTES)
		return -EINVAL;
	if (!tables->symbols || !tables->names || (!tables->gnu_hash && !tables->sysv_hash))
		return ELF_IMAGE_E_NO_SYMBOL;
	if (tables->gnu_hash)
		r = find_by_gnu_hash(image, tables, name, &symbol);
	else
		r = find_by_sysv_hash(image, tables, name, &symbol);
	if (r != 0)
		return r;
	*ret_value = symbol.st_value;
	*ret_bytes = symbol.st_size;
	return 0;
}
