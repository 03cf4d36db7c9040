/* SPDX-License-Identifier: MIT
 *
 * One call of function_cache_name(), as its two halves share it: reader/function.c finds the functions of a
 * stack and has them read and proved; reader/naming.c says what its frames are called then.
 */
#pragma once

#include "reader/function.h"
#include "reader/function_table.h"

struct function_cache {
	const struct layout *layout;
	remote_addr executor_globals;
	struct function_table table;
	uint32_t request;
	uint32_t new_volatile; /* since they were last forgotten */
	uint32_t names_epoch;
};

struct naming {
	struct function_cache *cache;
	const struct layout *layout;
	struct view *view;
	const struct raw_stack *stack;
	const struct frame_names *names;
	size_t count;                       /* frames of the stack that are looked at */
	uint32_t numbers[STACK_MAX_FRAMES]; /* of the frames' entries */
};

static inline struct function_entry *naming_entry(struct naming *naming, size_t frame)
{
	const struct function_table *table = &naming->cache->table;

	/* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.ArraySubscript): look_up() wrote all numbers */
	return &table->entries[naming->numbers[frame]];
}

/* Does the frame's opline say exactly where it is? It does if the frame called another one. */
static inline bool naming_is_caller(size_t frame)
{
	return frame > 0;
}

/* The opline of a frame. While it is unwound for an exception PHP points it at EG(exception_op), and keeps
 * where it was in EG(opline_before_exception). */
remote_addr naming_opline(struct naming *naming, const struct raw_frame *frame);

/* The words of an opcode that are of interest: extended_value, lineno, opcode. */
struct remote_span naming_op_span(const struct layout *layout, remote_addr opline);

/* What is known of an opcode holds for one request: the next one's function may look the same, be it freed
 * and compiled anew or in what opcache_reset() emptied, and have a line more in its middle. */
uint32_t naming_content(const struct naming *naming, const struct function_entry *entry);

/* Names all frames that are looked at; what this takes has been read. REMOTE_E_GONE, negative errno and what
 * else the view says. */
int naming_name(struct naming *naming, struct named_stack *ret_named);
