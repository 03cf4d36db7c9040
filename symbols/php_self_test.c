/* SPDX-License-Identifier: MIT
 *
 * The self-test reads executor_globals once and checks what must hold in any state of a healthy process, idle
 * or deep in a fiber:
 *
 * - EG(uninitialized_zval) is null and EG(error_zval) an error (Zend/zend_execute_API.c, init_executor()).
 * Both are all zero in a process that has not served its first request yet, such as an FPM master.
 * - EG(vm_stack_top) lies within EG(vm_stack) and EG(vm_stack_end), and the page's own header says the same
 * end. A layout that is off by a word can't pass this.
 * - EG(current_execute_data) is null, or a frame whose function has a type that exists.
 *
 * The process runs meanwhile, and the words are not read in the instant they are compared with memory: a
 * check that fails counts only when it fails again and again.
 */
#include "symbols/php_self_test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Attempts before a layout is refused, with a pause between them that grows from some microseconds (the
 * process is in the middle of a call) to a millisecond (it tears at every look). */
#define MAX_ATTEMPTS 12
#define FIRST_PAUSE_NS 2000
#define MAX_PAUSE_NS 1000000

/* IS_ERROR, Zend/zend_types.h: 15 in 7.4 to 8.6. */
#define IS_ERROR 15

/* A VM stack page: 16 KiB in fibers, 256 KiB else, more for a call with very many arguments. Coroutine
 * extensions use down to 8 KiB. */
#define MIN_PAGE_BYTES 1024
#define MAX_PAGE_BYTES (UINT64_C(1) << 30)

/* executor_globals as far as current_execute_data, and a zend_execute_data. */
#define MAX_GLOBALS_BYTES 1024
#define MAX_FRAME_BYTES 128

static uint64_t word_at(const void *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, (const char *)bytes + offset, sizeof(word));
	return word;
}

static unsigned zval_type_at(const struct layout *layout, const char *globals, uint32_t offset)
{
	return (unsigned char)globals[offset + layout->zval_type_info];
}

static const char *check_zvals(const struct layout *layout, const char *globals)
{
	unsigned uninitialized = zval_type_at(layout, globals, layout->eg_uninitialized_zval);
	unsigned error = zval_type_at(layout, globals, layout->eg_error_zval);

	if (uninitialized == layout->IS_UNDEF && error == layout->IS_UNDEF)
		return word_at(globals, layout->eg_current_execute_data)
			       ? "code runs in an executor never set up"
			       : NULL;
	if (uninitialized != layout->IS_NULL || error != IS_ERROR)
		return "executor_globals does not begin with a null and an error value";
	return NULL;
}

static const char *check_vm_stack(
	const struct memory *memory, const struct layout *layout, const char *globals)
{
	remote_addr top = word_at(globals, layout->eg_vm_stack_top);
	remote_addr end = word_at(globals, layout->eg_vm_stack_end);
	remote_addr page = word_at(globals, layout->eg_vm_stack);
	remote_addr page_end;

	if (!page)
		return top || end ? "the VM stack has a top but no page" : NULL;
	/* Between requests the words still name the page that was freed: only their order can be checked
	 * then. */
	if (page % 8 || top % 8 || end % 8 || !remote_addr_is_user(page) || !remote_addr_is_user(end))
		return "the VM stack's words are no addresses";
	if (top < page || top > end || end - page < MIN_PAGE_BYTES || end - page > MAX_PAGE_BYTES)
		return "the VM stack's top is not within its page";
	if (!word_at(globals, layout->eg_current_execute_data))
		return NULL;
	if (memory_read(memory, page + layout->vm_stack_end, &page_end, sizeof(page_end)) != 0)
		return "the VM stack's page can't be read";
	return page_end == end ? NULL : "the VM stack's page has another end than the executor says";
}

static const char *check_frame(const struct memory *memory, const struct layout *layout, const char *globals)
{
	remote_addr frame = word_at(globals, layout->eg_current_execute_data), func, prev;
	unsigned char type;
	char data[MAX_FRAME_BYTES] = {0};

	if (!frame)
		return NULL;
	if (frame % 8 || !remote_addr_is_user(frame) ||
		memory_read(memory, frame, data, layout->ex_sizeof) != 0)
		return "the running frame can't be read";
	func = word_at(data, layout->ex_func);
	prev = word_at(data, layout->ex_prev_execute_data);
	if (prev && (prev % 8 || !remote_addr_is_user(prev)))
		return "the running frame's caller is no address";
	if (!func) /* in the middle of a "yield from" */
		return NULL;
	if (func % 8 || !remote_addr_is_user(func) ||
		memory_read(memory, func + layout->op_array_type, &type, sizeof(type)) != 0)
		return "the running frame's function can't be read";
	if (type != layout->ZEND_INTERNAL_FUNCTION && type != layout->ZEND_USER_FUNCTION &&
		type != layout->ZEND_EVAL_CODE)
		return "the running frame's function is of no known type";
	return NULL;
}

/* Is @offset one of the words from EG(vm_stack_top) to before EG(current_execute_data)? */
static bool is_stack_word(const struct layout *layout, uint32_t offset)
{
	return offset >= layout->eg_vm_stack_top && offset < layout->eg_current_execute_data;
}

/* A layout from debug information is a file's word: what is read below must lie in what was copied, and the
 * reader copies the stack's words, from the first to the last, as one. */
static bool offsets_are_in_bounds(const struct layout *layout)
{
	uint64_t last = layout->eg_current_execute_data, zval_bytes = 16;

	return last <= MAX_GLOBALS_BYTES - sizeof(uint64_t) &&
	       layout->eg_uninitialized_zval + zval_bytes <= last &&
	       layout->eg_error_zval + zval_bytes <= last && layout->zval_type_info < zval_bytes &&
	       is_stack_word(layout, layout->eg_vm_stack_top) &&
	       is_stack_word(layout, layout->eg_vm_stack_end) && is_stack_word(layout, layout->eg_vm_stack) &&
	       is_stack_word(layout, layout->eg_vm_stack_page_size) && layout->ex_sizeof <= MAX_FRAME_BYTES &&
	       layout->ex_func <= MAX_FRAME_BYTES - sizeof(uint64_t) &&
	       layout->ex_prev_execute_data <= MAX_FRAME_BYTES - sizeof(uint64_t);
}

static void pause_before(int attempt)
{
	long ns = FIRST_PAUSE_NS;

	for (int i = 1; i < attempt && ns < MAX_PAUSE_NS; i++)
		ns *= 2;
	nanosleep(&(struct timespec){.tv_nsec = ns < MAX_PAUSE_NS ? ns : MAX_PAUSE_NS}, NULL);
}

int php_self_test(const struct memory *memory, remote_addr executor_globals, const struct layout *layout,
	const char **ret_why)
{
	size_t bytes = layout->eg_current_execute_data + sizeof(uint64_t);
	char globals[MAX_GLOBALS_BYTES];
	const char *why = NULL;

	if (!offsets_are_in_bounds(layout)) {
		*ret_why = "its debug information describes structures larger than any of PHP's";
		return PHP_SELF_TEST_E_FAILED;
	}
	for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
		int r;

		if (attempt)
			pause_before(attempt);
		r = memory_read(memory, executor_globals, globals, bytes);
		if (r < 0)
			return r;
		if (r > 0) {
			why = "executor_globals can't be read";
			continue;
		}
		why = check_zvals(layout, globals);
		if (!why)
			why = check_vm_stack(memory, layout, globals);
		if (!why)
			why = check_frame(memory, layout, globals);
		if (!why)
			return 0;
	}
	*ret_why = why;
	return PHP_SELF_TEST_E_FAILED;
}
