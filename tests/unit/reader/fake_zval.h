/* SPDX-License-Identifier: MIT
 *
 * PHP's strings, hash tables and zvals, written into a fake memory the way PHP writes them. Not by the code
 * under test: the order of things is spelled out here again, from Zend/zend_types.h and Zend/zend_hash.h.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "symbols/layout.h"
#include "tests/unit/reader/fake_memory.h"

#define FAKE_HASH_SLOTS 16 /* of a table of 8 buckets, PHP's least */
#define FAKE_HASH_BUCKETS 8

/* A zend_string of @bytes at @addr, of which header, text and closing 0 must be mapped. @hash 0: not computed
 * yet. */
static inline void fake_string(
	struct fake_memory *memory, remote_addr addr, const char *text, size_t bytes, uint64_t hash)
{
	fake_put32(memory, addr, 1);              /* refcount */
	fake_put32(memory, addr + 4, 6 | 1 << 4); /* IS_STRING, GC_NOT_COLLECTABLE */
	fake_put64(memory, addr + 8, hash);
	fake_put64(memory, addr + 16, bytes);
	fake_put(memory, addr + 24, text, bytes);
	fake_put8(memory, addr + 24 + bytes, 0);
}

static inline void fake_zval(struct fake_memory *memory, remote_addr addr, uint64_t value, uint32_t type_info)
{
	fake_put64(memory, addr, value);
	fake_put32(memory, addr + 8, type_info);
}

/* An empty hash table of 8 buckets at @table, its slots and buckets from @data on. */
static inline void fake_table(struct fake_memory *memory, remote_addr table, remote_addr data)
{
	fake_put32(memory, table + 8, 0);
	fake_put32(memory, table + 12, (uint32_t)-FAKE_HASH_SLOTS);
	fake_put64(memory, table + 16, data + FAKE_HASH_SLOTS * 4);
	fake_put32(memory, table + 24, 0);
	fake_put32(memory, table + 28, 0);
	fake_put32(memory, table + 32, FAKE_HASH_BUCKETS);
	for (unsigned i = 0; i < FAKE_HASH_SLOTS; i++)
		fake_put32(memory, data + 4 * i, UINT32_MAX);
}

/* Adds a bucket with this hash and key: in front of its chain, as zend_hash_add() does. The address of its
 * zval. */
static inline remote_addr fake_table_add(
	struct fake_memory *memory, remote_addr table, uint64_t hash, remote_addr key)
{
	remote_addr buckets;
	remote_addr slot;
	uint32_t used, head;

	memcpy(&buckets, fake_at(memory, table + 16, 8), 8);
	memcpy(&used, fake_at(memory, table + 24, 4), 4);
	slot = buckets - FAKE_HASH_SLOTS * 4 + hash % FAKE_HASH_SLOTS * 4;
	memcpy(&head, fake_at(memory, slot, 4), 4);
	fake_put32(memory, buckets + 32 * used + 12, head);
	fake_put64(memory, buckets + 32 * used + 16, hash);
	fake_put64(memory, buckets + 32 * used + 24, key);
	fake_put32(memory, slot, used);
	fake_put32(memory, table + 24, used + 1);
	fake_put32(memory, table + 28, used + 1);
	return buckets + 32 * used;
}
