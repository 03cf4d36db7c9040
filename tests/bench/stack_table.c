/* SPDX-License-Identifier: MIT
 *
 * An array of stacks in the order in which they came, and an index with open addressing. A naive reader's
 * impossible stacks are all different, so the table is bounded by memory alone.
 */
#include "tests/bench/stack_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 1024U /* a power of two */

struct stack_table {
	struct counted_stack *stacks;
	size_t count, capacity;
	uint32_t *index; /* of stacks, plus one; 0: free. Twice the capacity */
};

int stack_table_new(struct stack_table **ret_table)
{
	_cleanup_(stack_table_freep) struct stack_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->capacity = FIRST_CAPACITY;
	table->stacks = calloc(table->capacity, sizeof(*table->stacks));
	table->index = calloc(2 * table->capacity, sizeof(*table->index));
	if (!table->stacks || !table->index)
		return -ENOMEM;
	*ret_table = TAKE(table);
	return 0;
}

void stack_table_free(struct stack_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->stacks[i].frames);
	free(table->stacks);
	free(table->index);
	free(table);
}

/* FNV-1a. */
static uint64_t hash_of(const uint32_t *frames, size_t depth, bool torn)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ torn;

	for (size_t i = 0; i < depth; i++)
		hash = (hash ^ frames[i]) * UINT64_C(0x100000001b3);
	return hash ^ hash >> 32;
}

/* Where this stack is in the index, or belongs. */
static uint32_t *slot_of(const struct stack_table *table, const uint32_t *frames, size_t depth, bool torn)
{
	size_t mask = 2 * table->capacity - 1, at = hash_of(frames, depth, torn) & mask;

	for (; table->index[at] != 0; at = (at + 1) & mask) {
		const struct counted_stack *stack = &table->stacks[table->index[at] - 1];

		if (stack->torn == torn && stack->depth == depth &&
			(depth == 0 || memcmp(stack->frames, frames, depth * sizeof(*frames)) == 0))
			break;
	}
	return &table->index[at];
}

static int grow(struct stack_table *table)
{
	size_t capacity = 2 * table->capacity;
	uint32_t *index = calloc(2 * capacity, sizeof(*index));
	struct counted_stack *stacks = index ? reallocarray(table->stacks, capacity, sizeof(*stacks)) : NULL;

	if (!stacks) {
		free(index);
		return -ENOMEM;
	}
	free(table->index);
	table->index = index;
	table->stacks = stacks;
	table->capacity = capacity;
	for (size_t i = 0; i < table->count; i++)
		*slot_of(table, stacks[i].frames, stacks[i].depth, stacks[i].torn) = (uint32_t)i + 1;
	return 0;
}

int stack_table_count(
	struct stack_table *table, const uint32_t *frames, size_t depth, bool torn, unsigned batch)
{
	uint32_t *slot = slot_of(table, frames, depth, torn);

	if (*slot == 0) {
		uint32_t *copy = malloc((depth + 1) * sizeof(*copy));

		if (!copy)
			return -ENOMEM;
		if (depth > 0)
			memcpy(copy, frames, depth * sizeof(*copy));
		table->stacks[table->count] =
			(struct counted_stack){.frames = copy, .depth = depth, .torn = torn};
		*slot = (uint32_t)++table->count;
		table->stacks[*slot - 1].counts[batch] = 1;
		return table->count == table->capacity ? grow(table) : 0;
	}
	table->stacks[*slot - 1].counts[batch]++;
	return 0;
}

size_t stack_table_size(const struct stack_table *table)
{
	return table->count;
}

const struct counted_stack *stack_table_at(const struct stack_table *table, size_t number)
{
	return &table->stacks[number];
}
