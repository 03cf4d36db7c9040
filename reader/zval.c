/* SPDX-License-Identifier: MIT
 *
 * PHP's strings and hash tables, followed by address in another process. Knows how Zend/zend_hash.h lays out
 * a table (the hash slots stand before the buckets, addressed with a negative index) and what stands between
 * a symbol table and a value: INDIRECT when a compiled variable of the main script holds the value, REFERENCE
 * when `global` or `&` made it shared. What PHP writes as $GLOBALS['x'] goes through neither, so all three
 * forms must be found.
 *
 * Everything read here is the target's to write. A table's size, mask and fill must fit each other as PHP
 * makes them before an index is computed from them; chains, hops and lengths end at named bounds; and a
 * string is believed only if its header fits its bytes (type, length, closing 0, hash). The view's guard says
 * that the target did not move between the reads; these checks say that what it had there was a string.
 *
 * Each look-up walks the whole path again. The view predicts the addresses, so from the second time on the
 * walk costs no system call.
 */
#include "reader/zval.h"

#include <stdbool.h>
#include <string.h>

#include "reader/load.h"

#define PAGE_BYTES 4096ULL
/* Zend/zend_types.h: HT_INVALID_IDX, HT_MAX_SIZE on 64 bits (all versions), Z_TYPE_MASK. */
#define HASH_INVALID_INDEX UINT32_MAX
#define HASH_MAX_TABLE_SIZE 0x40000000U
#define TYPE_MASK 0xffU
/* Zend/zend_types.h: GC_TYPE_MASK, the type in zend_refcounted_h.u.type_info, which is the second word. */
#define GC_TYPE_OFFSET 4
#define GC_TYPE_MASK 0xfU

/* The @bytes at @addr, or NULL and the error in *ret_error. */
static const unsigned char *fetch(struct view *view, remote_addr addr, size_t bytes, int *ret_error)
{
	const unsigned char *at;

	if (!plausible_address(addr) || bytes > USER_SPACE_END - addr) {
		*ret_error = ZVAL_E_MALFORMED;
		return NULL;
	}
	at = view_at(view, addr, bytes);
	if (!at)
		*ret_error = view_error(view);
	return at;
}

uint64_t zval_hash(const char *key, size_t bytes)
{
	uint64_t hash = 5381;

	for (size_t i = 0; i < bytes; i++)
		hash = hash * 33 + (unsigned char)key[i];
	return hash | UINT64_C(1) << 63;
}

/* Does what stands in front of the text agree with it? PHP computes h when it first needs it: 0 until then.
 */
static bool header_fits_text(const unsigned char *header, const struct layout *layout, size_t text_bytes)
{
	const char *text = (const char *)header + layout->str_val;
	uint64_t hash = load_u64(header + layout->str_h);

	if ((load_u32(header + GC_TYPE_OFFSET) & GC_TYPE_MASK) != layout->IS_STRING)
		return false;
	if (text[text_bytes] != '\0')
		return false;
	return hash == 0 || hash == zval_hash(text, text_bytes);
}

int zval_string(struct view *view, const struct layout *layout, remote_addr string, size_t max_bytes,
	const char **ret_text, size_t *ret_bytes)
{
	size_t header_bytes = layout->str_val;
	size_t to_page_end = (size_t)(PAGE_BYTES - string % PAGE_BYTES);
	/* One read for header and text: as much as a string of the greatest length has, but, where the length
	 * is not known yet, not into the next page, which need not be mapped. */
	size_t bytes = header_bytes + max_bytes + 1;
	const unsigned char *header;
	uint64_t text_bytes;
	int error;

	if (bytes > to_page_end)
		bytes = to_page_end > header_bytes ? to_page_end : header_bytes;
	header = fetch(view, string, bytes, &error);
	if (!header)
		return error;
	text_bytes = load_u64(header + layout->str_len);
	if (text_bytes > max_bytes)
		return ZVAL_E_TOO_LONG;
	if (header_bytes + text_bytes + 1 > bytes) {
		header = fetch(view, string, header_bytes + text_bytes + 1, &error);
		if (!header)
			return error;
	}
	if (!header_fits_text(header, layout, text_bytes))
		return ZVAL_E_MALFORMED;
	*ret_text = (const char *)header + header_bytes;
	*ret_bytes = text_bytes;
	return 0;
}

/* What a look-up needs to know of a zend_array. */
struct table {
	remote_addr buckets;
	uint32_t mask, used;
};

/* 0, ZVAL_E_ABSENT: a table that can't have string keys; ZVAL_E_MALFORMED, or what the view says. */
static int read_table(
	struct view *view, const struct layout *layout, remote_addr addr, struct table *ret_table)
{
	const unsigned char *array;
	uint32_t flags, size;
	struct table table = {0};
	int error;

	array = fetch(view, addr, layout->ht_sizeof, &error);
	if (!array)
		return error;
	flags = load_u32(array + layout->ht_flags);
	size = load_u32(array + layout->ht_nTableSize);
	table = (struct table){
		.buckets = load_u64(array + layout->ht_arData),
		.mask = load_u32(array + layout->ht_nTableMask),
		.used = load_u32(array + layout->ht_nNumUsed),
	};
	/* Packed: keys are 0…n-1; from 8.2 arData has plain zvals. Uninitialised: arData is a shared dummy.
	 */
	if (flags & (layout->HASH_FLAG_PACKED | layout->HASH_FLAG_UNINITIALIZED) || table.used == 0)
		return ZVAL_E_ABSENT;
	/* A power of two, with twice as many slots as buckets: HT_SIZE_TO_MASK(), 7.3 and later. */
	if (size == 0 || size > HASH_MAX_TABLE_SIZE || size & (size - 1) || table.used > size ||
		table.mask != (uint32_t) - (int64_t)(2 * (uint64_t)size))
		return ZVAL_E_MALFORMED;
	*ret_table = table;
	return 0;
}

/* Is the string at @addr, whose hash is known to be right, this key? 0: yes; ZVAL_E_ABSENT: no. */
static int key_is(
	struct view *view, const struct layout *layout, remote_addr addr, const char *key, size_t key_bytes)
{
	const unsigned char *string;
	int error;

	string = fetch(view, addr, layout->str_val + key_bytes, &error);
	if (!string)
		return error;
	if (load_u64(string + layout->str_len) != key_bytes ||
		memcmp(string + layout->str_val, key, key_bytes) != 0)
		return ZVAL_E_ABSENT;
	return 0;
}

/* The address of the zval under @key. */
static int find_in_table(struct view *view, const struct layout *layout, const struct table *table,
	const char *key, size_t key_bytes, remote_addr *ret_zval)
{
	uint64_t hash = zval_hash(key, key_bytes);
	int32_t slot = (int32_t)((uint32_t)hash | table->mask); /* negative: HT_HASH_EX() */
	remote_addr slot_addr = table->buckets + (uint64_t)(4 * (int64_t)slot);
	const unsigned char *at;
	uint32_t index;
	int error;

	/* A slot has four bytes, so its address need not be a multiple of 8: read the pair it stands in. */
	at = fetch(view, slot_addr & ~UINT64_C(7), 8, &error);
	if (!at)
		return error;
	index = load_u32(at + slot_addr % 8);
	for (unsigned looked_at = 0; index != HASH_INVALID_INDEX; looked_at++) {
		remote_addr bucket = table->buckets + (uint64_t)index * layout->bucket_sizeof;
		remote_addr key_addr;

		if (looked_at == ZVAL_MAX_CHAIN || index >= table->used)
			return ZVAL_E_MALFORMED;
		at = fetch(view, bucket, layout->bucket_sizeof, &error);
		if (!at)
			return error;
		index = load_u32(at + layout->bucket_val + layout->zval_u2); /* the next of the chain */
		key_addr = load_u64(at + layout->bucket_key);
		if (load_u64(at + layout->bucket_h) != hash || key_addr == 0)
			continue;
		error = key_is(view, layout, key_addr, key, key_bytes);
		if (error == 0)
			*ret_zval = bucket + layout->bucket_val;
		if (error != ZVAL_E_ABSENT)
			return error;
	}
	return ZVAL_E_ABSENT;
}

/* From a symbol table's zval to the zend_string it ends at. */
static int follow_to_string(
	struct view *view, const struct layout *layout, remote_addr zval, remote_addr *ret_string)
{
	for (unsigned hop = 0; hop < ZVAL_MAX_HOPS; hop++) {
		const unsigned char *at;
		remote_addr value;
		uint32_t type;
		int error;

		at = fetch(view, zval, layout->zval_sizeof, &error);
		if (!at)
			return error;
		type = load_u32(at + layout->zval_type_info) & TYPE_MASK;
		value = load_u64(at + layout->zval_value);
		if (type == layout->IS_UNDEF || type == layout->IS_NULL)
			return ZVAL_E_ABSENT;
		if (type == layout->IS_STRING) {
			*ret_string = value;
			return 0;
		}
		if (type == layout->IS_INDIRECT)
			zval = value;
		else if (type == layout->IS_REFERENCE)
			zval = value + layout->ref_val;
		else
			return ZVAL_E_NOT_STRING;
	}
	return ZVAL_E_MALFORMED;
}

int zval_symbol_string(struct view *view, const struct layout *layout, remote_addr table_addr,
	const char *key, size_t key_bytes, size_t max_bytes, const char **ret_text, size_t *ret_bytes,
	remote_addr *ret_zend_string)
{
	remote_addr zval = 0, string = 0;
	struct table table = {0};
	int r;

	r = read_table(view, layout, table_addr, &table);
	if (r == 0)
		r = find_in_table(view, layout, &table, key, key_bytes, &zval);
	if (r == 0)
		r = follow_to_string(view, layout, zval, &string);
	if (r == 0)
		r = zval_string(view, layout, string, max_bytes, ret_text, ret_bytes);
	if (r == 0)
		*ret_zend_string = string;
	return r;
}
