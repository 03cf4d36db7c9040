/* SPDX-License-Identifier: MIT
 *
 * Entries lie densely in an array that grows by doubling; a separate index of 4-byte slots finds them. So a
 * target that runs 300 functions costs 50 KiB, and 64 such targets fit where one full table would. Opcodes
 * are small enough to lie in the slots themselves. Both use open addressing; nothing is ever removed one by
 * one.
 */
#include "reader/function_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_INDEX_SIZE 128
#define FIRST_OP_SIZE 256

static size_t slot_of(remote_addr addr, size_t size)
{
	/* Fibonacci hashing: addresses differ in their middle bits. */
	return (size_t)((addr * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (size - 1);
}

void function_table_deinit(struct function_table *table)
{
	free(table->entries);
	free(table->index);
	free(table->ops);
	memset(table, 0, sizeof(*table));
}

void function_table_clear(struct function_table *table)
{
	table->count = table->op_count = 0;
	if (table->index)
		memset(table->index, 0, table->index_size * sizeof(*table->index));
	if (table->ops)
		memset(table->ops, 0, table->op_size * sizeof(*table->ops));
}

/* The slot of @func, or the free one where it would go. */
static size_t find_slot(const struct function_table *table, remote_addr func)
{
	size_t slot = slot_of(func, table->index_size);

	while (table->index[slot] != 0 && table->entries[table->index[slot] - 1].func != func)
		slot = (slot + 1) & (table->index_size - 1);
	return slot;
}

uint32_t function_table_find(const struct function_table *table, remote_addr func)
{
	size_t slot;

	if (table->index_size == 0)
		return FUNCTION_NONE;
	slot = find_slot(table, func);
	return table->index[slot] != 0 ? table->index[slot] - 1 : FUNCTION_NONE;
}

static void fill_index(struct function_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		table->index[find_slot(table, table->entries[i].func)] = (uint32_t)i + 1;
}

static int grow_index(struct function_table *table)
{
	size_t size = table->index_size ? table->index_size * 2 : FIRST_INDEX_SIZE;
	uint32_t *index = calloc(size, sizeof(*index));

	if (!index)
		return -ENOMEM;
	free(table->index);
	table->index = index;
	table->index_size = size;
	fill_index(table);
	return 0;
}

void function_table_forget(struct function_table *table, uint16_t flag)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->count; i++)
		if (!(table->entries[i].flags & flag))
			table->entries[kept++] = table->entries[i];
	table->count = kept;
	if (table->index)
		memset(table->index, 0, table->index_size * sizeof(*table->index));
	fill_index(table);
}

int function_table_add(struct function_table *table, remote_addr func, size_t max, uint32_t *ret_number)
{
	int r;

	if (table->count >= max)
		return -ENOSPC;
	if ((table->count + 1) * 2 > table->index_size) {
		r = grow_index(table);
		if (r < 0)
			return r;
	}
	if (table->count == table->capacity) {
		size_t capacity = table->capacity ? table->capacity * 2 : FIRST_INDEX_SIZE / 2;
		struct function_entry *grown = realloc(table->entries, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		table->entries = grown;
		table->capacity = capacity;
	}
	table->entries[table->count] = (struct function_entry){.func = func};
	table->count++;
	table->index[find_slot(table, func)] = (uint32_t)table->count;
	*ret_number = (uint32_t)table->count - 1;
	return 0;
}

static struct op_entry *op_slot(struct op_entry *ops, size_t size, remote_addr opline)
{
	size_t slot = slot_of(opline, size);

	while (ops[slot].opline != 0 && ops[slot].opline != opline)
		slot = (slot + 1) & (size - 1);
	return &ops[slot];
}

const struct op_entry *function_table_op(
	const struct function_table *table, remote_addr opline, uint32_t content)
{
	const struct op_entry *op;

	if (table->op_size == 0)
		return NULL;
	op = op_slot(table->ops, table->op_size, opline);
	return op->opline != 0 && op->content == content ? op : NULL;
}

static int grow_ops(struct function_table *table)
{
	size_t size = table->op_size ? table->op_size * 2 : FIRST_OP_SIZE;
	struct op_entry *ops = calloc(size, sizeof(*ops));

	if (!ops)
		return -ENOMEM;
	for (size_t i = 0; i < table->op_size; i++)
		if (table->ops[i].opline != 0)
			*op_slot(ops, size, table->ops[i].opline) = table->ops[i];
	free(table->ops);
	table->ops = ops;
	table->op_size = size;
	return 0;
}

int function_table_add_op(struct function_table *table, const struct op_entry *op)
{
	struct op_entry *slot;
	int r;

	if (table->op_count >= FUNCTION_MAX_OPS) {
		memset(table->ops, 0, table->op_size * sizeof(*table->ops));
		table->op_count = 0;
	}
	if ((table->op_count + 1) * 2 > table->op_size) {
		r = grow_ops(table);
		if (r < 0)
			return r;
	}
	slot = op_slot(table->ops, table->op_size, op->opline);
	if (slot->opline == 0)
		table->op_count++;
	*slot = *op;
	return 0;
}
