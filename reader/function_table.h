/* SPDX-License-Identifier: MIT
 *
 * What the function cache remembers: functions by address, and the lines of single opcodes. Two hash tables
 * that know nothing of memory or names.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/memory.h"

/* Opcodes whose line is remembered; past it all are forgotten. */
#define FUNCTION_MAX_OPS 4096

enum {
	FUNCTION_IS_INTERNAL = 1 << 0,
	FUNCTION_IS_IMMUTABLE = 1 << 1,       /* in opcache's shared memory, or PHP's own */
	FUNCTION_IS_VOLATILE = 1 << 2,        /* may be freed while its request goes on */
	FUNCTION_IS_EVAL = 1 << 3,            /* the top level of eval()'d code */
	FUNCTION_HAS_VOLATILE_LINES = 1 << 4, /* eval()'d: other code of the same look may take its place */
	FUNCTION_IS_NAMED = 1 << 5,           /* name_id and the marks are valid */
	FUNCTION_TO_PROVE = 1 << 6,
	FUNCTION_IS_FRESH = 1 << 7,            /* its header was read, its names were not yet */
	FUNCTION_HAS_LASTING_STRINGS = 1 << 8, /* its names and its class outlive the request */
};

/* One function, with the words that prove that it still is the one that was named. 96 bytes. */
struct function_entry {
	remote_addr func;
	remote_addr function_name, filename, scope, class_name, opcodes;
	remote_addr run_time_cache;
	uint32_t function_name_mark, filename_mark,
		class_name_mark; /* of hash and length: see string_mark() */
	uint32_t line_start;
	uint32_t last;      /* opcodes */
	uint32_t proved_in; /* request */
	uint32_t content;   /* what its opcodes belong to, see function_proof_seal() */
	uint32_t name_id;
	uint16_t flags;
	uint8_t kind;    /* enum function_kind */
	uint8_t op_kind; /* how it was included: the extended_value of the caller's INCLUDE_OR_EVAL; 0 */
};

/* What is known of one opcode. 16 bytes. */
struct op_entry {
	uint64_t opline : 48;      /* 0: free */
	uint64_t include_kind : 8; /* extended_value of an INCLUDE_OR_EVAL; 0 for all other opcodes */
	uint32_t content;          /* of the function it belongs to, in this request */
	uint32_t line;
};

#define FUNCTION_NONE UINT32_MAX

struct function_table {
	struct function_entry *entries;
	size_t count, capacity;
	uint32_t *index;   /* of entries, plus one; 0: free */
	size_t index_size; /* a power of two */

	struct op_entry *ops;
	size_t op_count, op_size;
};

void function_table_deinit(struct function_table *table);
void function_table_clear(struct function_table *table);

/* Forgets the entries that have @flag. Numbers of those that stay change. */
void function_table_forget(struct function_table *table, uint16_t flag);

/* The number of the entry of @func, or FUNCTION_NONE. */
uint32_t function_table_find(const struct function_table *table, remote_addr func);

/* Adds an entry for @func, all zero but for the address. -ENOMEM. The table holds at most @max entries:
 * -ENOSPC. */
int function_table_add(struct function_table *table, remote_addr func, size_t max, uint32_t *ret_number);

/* The opcode at @opline of a function with this @content, or NULL. Valid until the next change. */
const struct op_entry *function_table_op(
	const struct function_table *table, remote_addr opline, uint32_t content);
int function_table_add_op(struct function_table *table, const struct op_entry *op);
