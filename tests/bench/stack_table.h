/* SPDX-License-Identifier: MIT
 *
 * How often each distinct stack was seen, and when: the run is cut into batches of equal numbers of samples.
 * A busy machine makes neighbouring samples alike (a target that has no CPU shows the same stack ten times),
 * so a confidence interval is taken from how far the batches differ, not from the number of samples.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"

#define STACK_TABLE_BATCHES 40

struct counted_stack {
	uint32_t *frames; /* name numbers, leaf first; owned by the table */
	size_t depth;
	bool torn; /* what was proved of a sample that was torn; else a whole stack */
	uint32_t counts[STACK_TABLE_BATCHES];
};

struct stack_table;

/* -ENOMEM. */
int stack_table_new(struct stack_table **ret_table);
void stack_table_free(struct stack_table *table);
DEFINE_CLEANUP(struct stack_table, stack_table_free)

/* One more of this stack (@depth may be 0) in this batch (0 to STACK_TABLE_BATCHES - 1). -ENOMEM. */
int stack_table_count(
	struct stack_table *table, const uint32_t *frames, size_t depth, bool torn, unsigned batch);

size_t stack_table_size(const struct stack_table *table);
/* In the order in which they were first seen. */
const struct counted_stack *stack_table_at(const struct stack_table *table, size_t number);
