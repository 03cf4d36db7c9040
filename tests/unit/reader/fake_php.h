/* SPDX-License-Identifier: MIT
 *
 * A PHP process made of bytes: executor globals, VM stack frames, functions, strings and opcodes, laid out as
 * a version's layout says, in a fake address space.
 */
#pragma once

#include "symbols/layout.h"
#include "tests/unit/reader/fake_memory.h"

#define FAKE_EG 0x10000
#define FAKE_EG_BYTES 2048
#define FAKE_STACK 0x200000 /* the innermost VM stack page */
#define FAKE_STACK_BYTES 0x40000
#define FAKE_HEAP 0x800000
#define FAKE_HEAP_BYTES 0x20000

struct fake_php {
	struct fake_memory memory;
	const struct layout *layout;
	struct view *view;
	remote_addr stack_top; /* where the next frame goes */
	remote_addr current;   /* EG(current_execute_data) */
	remote_addr heap_top;
};

static inline void fake_php_globals(struct fake_php *php)
{
	const struct layout *layout = php->layout;

	fake_put64(&php->memory, FAKE_EG + layout->eg_vm_stack_top, php->stack_top);
	fake_put64(&php->memory, FAKE_EG + layout->eg_vm_stack_end, FAKE_STACK + FAKE_STACK_BYTES);
	fake_put64(&php->memory, FAKE_EG + layout->eg_vm_stack, FAKE_STACK);
	fake_put64(&php->memory, FAKE_EG + layout->eg_vm_stack_page_size, FAKE_STACK_BYTES);
	fake_put64(&php->memory, FAKE_EG + layout->eg_current_execute_data, php->current);
}

static inline void fake_php_init(struct fake_php *php, unsigned version_id)
{
	memset(php, 0, sizeof(*php));
	php->layout = layout_for_version(version_id);
	fake_map(&php->memory, FAKE_EG, FAKE_EG_BYTES);
	fake_map(&php->memory, FAKE_STACK, FAKE_STACK_BYTES);
	fake_map(&php->memory, FAKE_HEAP, FAKE_HEAP_BYTES);
	php->stack_top = FAKE_STACK + 32;
	php->heap_top = FAKE_HEAP;
	fake_php_globals(php);
	if (view_new(fake_read, &php->memory, FAKE_EG + php->layout->eg_vm_stack_top, 40, &php->view) != 0)
		abort();
}

static inline void fake_php_deinit(struct fake_php *php)
{
	view_free(php->view);
	fake_free(&php->memory);
}

static inline remote_addr fake_allocate(struct fake_php *php, size_t bytes)
{
	remote_addr addr = php->heap_top;

	php->heap_top += (bytes + 15) & ~(size_t)15;
	if (php->heap_top > FAKE_HEAP + FAKE_HEAP_BYTES)
		abort();
	return addr;
}

/* Writes an execute_data. */
static inline void fake_frame(struct fake_php *php, remote_addr addr, remote_addr func, remote_addr prev,
	remote_addr opline, uint32_t call_info, remote_addr this_object)
{
	const struct layout *layout = php->layout;

	fake_put64(&php->memory, addr + layout->ex_func, func);
	fake_put64(&php->memory, addr + layout->ex_prev_execute_data, prev);
	fake_put64(&php->memory, addr + layout->ex_opline, opline);
	fake_put32(&php->memory, addr + layout->ex_type_info, call_info);
	fake_put64(&php->memory, addr + layout->ex_This, this_object);
}

/* Calls @func: a frame of its own on the VM stack. Returns its address. */
static inline remote_addr fake_call(
	struct fake_php *php, remote_addr func, remote_addr opline, uint32_t call_info)
{
	remote_addr addr = php->stack_top;

	fake_frame(php, addr, func, php->current, opline, call_info, 0);
	php->stack_top += 96;
	php->current = addr;
	fake_php_globals(php);
	return addr;
}

static inline int fake_refresh(struct fake_php *php)
{
	return view_refresh(php->view, FAKE_STACK, php->stack_top - FAKE_STACK, VIEW_MAX_REREAD_BYTES);
}

/* ---- functions ---- */

static inline void fake_write_string(struct fake_php *php, remote_addr addr, const char *text, size_t bytes)
{
	uint64_t hash = 5381;

	for (size_t i = 0; i < bytes; i++)
		hash = hash * 33 + (unsigned char)text[i];
	fake_put64(&php->memory, addr + php->layout->str_h, hash | UINT64_C(1) << 63);
	fake_put64(&php->memory, addr + php->layout->str_len, bytes);
	fake_put(&php->memory, addr + php->layout->str_val, text, bytes);
}

static inline remote_addr fake_string_of(struct fake_php *php, const char *text, size_t bytes)
{
	remote_addr addr = fake_allocate(php, php->layout->str_val + bytes + 1);

	fake_write_string(php, addr, text, bytes);
	return addr;
}

static inline remote_addr fake_string(struct fake_php *php, const char *text)
{
	return fake_string_of(php, text, strlen(text));
}

static inline remote_addr fake_class(struct fake_php *php, remote_addr name)
{
	remote_addr addr = fake_allocate(php, 64);

	fake_put64(&php->memory, addr + php->layout->ce_name, name);
	return addr;
}

/* Opcodes, the i-th on line @first_line + i. */
static inline remote_addr fake_opcodes(struct fake_php *php, uint32_t count, uint32_t first_line)
{
	remote_addr addr = fake_allocate(php, count * php->layout->op_sizeof);

	for (uint32_t i = 0; i < count; i++)
		fake_put32(&php->memory, addr + i * php->layout->op_sizeof + php->layout->op_lineno,
			first_line + i);
	return addr;
}

struct fake_function {
	uint8_t type; /* 0: ZEND_USER_FUNCTION */
	uint32_t flags;
	remote_addr name, scope, filename, opcodes;
	uint32_t last, line_start;
};

static inline void fake_write_function(
	struct fake_php *php, remote_addr addr, const struct fake_function *function)
{
	const struct layout *layout = php->layout;
	uint8_t type = function->type ? function->type : (uint8_t)layout->ZEND_USER_FUNCTION;

	fake_put8(&php->memory, addr + layout->op_array_type, type);
	fake_put32(&php->memory, addr + layout->op_array_fn_flags, function->flags);
	fake_put64(&php->memory, addr + layout->op_array_function_name, function->name);
	fake_put64(&php->memory, addr + layout->op_array_scope, function->scope);
	if (type == layout->ZEND_INTERNAL_FUNCTION)
		return;
	fake_put32(&php->memory, addr + layout->op_array_last, function->last);
	fake_put64(&php->memory, addr + layout->op_array_opcodes, function->opcodes);
	fake_put64(&php->memory, addr + layout->op_array_filename, function->filename);
	fake_put32(&php->memory, addr + layout->op_array_line_start, function->line_start);
}

static inline remote_addr fake_function(struct fake_php *php, const struct fake_function *function)
{
	remote_addr addr = fake_allocate(php, php->layout->op_array_sizeof);

	fake_write_function(php, addr, function);
	return addr;
}

/* The script's top level, in main.php, is called, and stands at its line 3. */
static inline remote_addr fake_call_main(struct fake_php *php)
{
	struct fake_function main = {.filename = fake_string(php, "/srv/main.php"),
		.opcodes = fake_opcodes(php, 8, 1),
		.last = 8,
		.line_start = 1};

	return fake_call(php, fake_function(php, &main), main.opcodes + 2 * php->layout->op_sizeof,
		php->layout->ZEND_CALL_CODE | php->layout->ZEND_CALL_TOP);
}

/* A user function declared at line 10 of lib.php, whose i-th opcode is at line 10 + i. */
static inline struct fake_function fake_user_function(struct fake_php *php, const char *name)
{
	return (struct fake_function){.name = name ? fake_string(php, name) : 0,
		.filename = fake_string(php, "/srv/lib.php"),
		.opcodes = fake_opcodes(php, 8, 10),
		.last = 8,
		.line_start = 10};
}

static inline remote_addr fake_call_user(
	struct fake_php *php, const struct fake_function *function, unsigned opcode)
{
	return fake_call(
		php, fake_function(php, function), function->opcodes + opcode * php->layout->op_sizeof, 0);
}
