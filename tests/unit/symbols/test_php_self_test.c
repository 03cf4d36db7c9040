/* SPDX-License-Identifier: MIT
 *
 * The self-test on made-up executor_globals of PHP 8.2: every state of a healthy process passes, and a layout
 * of another version, or memory that isn't PHP's, does not.
 */
#include "support.h"

#include "symbols/php_self_test.h"

#define BASE 0x200000
#define GLOBALS (BASE + 0x0)
#define PAGE (BASE + 0x1000)
#define PAGE_BYTES 0x4000
#define FRAME (PAGE + 0x100)
#define FUNCTION (BASE + 0x8000)

static struct saved_memory saved;
static struct memory memory = {read_saved, &saved};

/* A request that runs one function. Offsets are those of 8.2. */
static int start_request(void **state)
{
	memset(&saved, 0, sizeof(saved));
	saved.base = BASE;
	put_half(&saved, GLOBALS + 8, 1);       /* null */
	put_half(&saved, GLOBALS + 16 + 8, 15); /* error */
	put_word(&saved, GLOBALS + 456, FRAME + 0x60);
	put_word(&saved, GLOBALS + 464, PAGE + PAGE_BYTES);
	put_word(&saved, GLOBALS + 472, PAGE);
	put_word(&saved, GLOBALS + 480, PAGE_BYTES);
	put_word(&saved, GLOBALS + 488, FRAME);
	put_word(&saved, PAGE + 8, PAGE + PAGE_BYTES);
	put_word(&saved, FRAME + 24, FUNCTION);
	put(&saved, FUNCTION, "\2", 1); /* ZEND_USER_FUNCTION */
	return 0;
}

static int test_as(unsigned version_id)
{
	const char *why = NULL;
	int r = php_self_test(&memory, GLOBALS, layout_for_version(version_id), &why);

	assert_true((r == 0) == (why == NULL));
	return r;
}

static void a_running_request_passes(void **state)
{
	assert_int_equal(test_as(80236), 0);
}

static void a_process_before_its_first_request_passes(void **state)
{
	memset(saved.image, 0, sizeof(saved.image));
	assert_int_equal(test_as(80236), 0);
}

static void an_idle_worker_passes_though_its_stack_page_is_gone(void **state)
{
	put_word(&saved, GLOBALS + 456, 0x7f0000000100);
	put_word(&saved, GLOBALS + 464, 0x7f0000040000);
	put_word(&saved, GLOBALS + 472, 0x7f0000000000);
	put_word(&saved, GLOBALS + 488, 0);
	assert_int_equal(test_as(80236), 0);
}

static void a_frame_without_a_function_passes(void **state)
{
	put_word(&saved, FRAME + 24, 0);
	assert_int_equal(test_as(80236), 0);
}

static void internal_functions_and_evaluated_code_pass(void **state)
{
	put(&saved, FUNCTION, "\1", 1);
	assert_int_equal(test_as(80236), 0);
	put(&saved, FUNCTION, "\4", 1);
	assert_int_equal(test_as(80236), 0);
}

static void a_table_whose_words_are_elsewhere_fails(void **state)
{
	/* 8.5 and 8.6 have the stack's words 24 bytes further on. */
	assert_int_equal(test_as(80502), PHP_SELF_TEST_E_FAILED);
	assert_int_equal(test_as(80600), PHP_SELF_TEST_E_FAILED);
}

static void values_that_are_not_null_and_error_fail(void **state)
{
	put_half(&saved, GLOBALS + 8, 4);
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
	put_half(&saved, GLOBALS + 8, 1);
	put_half(&saved, GLOBALS + 16 + 8, 1);
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
}

static void a_stack_that_contradicts_itself_fails(void **state)
{
	put_word(&saved, GLOBALS + 456, PAGE - 8); /* top before the page */
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
	put_word(&saved, GLOBALS + 456, PAGE + PAGE_BYTES + 8); /* behind its end */
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
	put_word(&saved, GLOBALS + 456, FRAME + 0x60);
	put_word(&saved, PAGE + 8, PAGE + PAGE_BYTES - 16); /* another end in the page's header */
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
	put_word(&saved, GLOBALS + 472, 0); /* a top and an end without a page */
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
	put_word(&saved, GLOBALS + 472, 0xffff800000000000);
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
}

static void a_frame_that_can_not_be_one_fails(void **state)
{
	put(&saved, FUNCTION, "\7", 1);
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
	put(&saved, FUNCTION, "\2", 1);
	put_word(&saved, FRAME + 24, 0x1234);
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
	put_word(&saved, FRAME + 24, FUNCTION);
	put_word(&saved, FRAME + 48, 3); /* prev_execute_data */
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
	put_word(&saved, FRAME + 48, 0);
	put_word(&saved, GLOBALS + 488, 0x7fffdead0000);
	assert_int_equal(test_as(80236), PHP_SELF_TEST_E_FAILED);
}

/* Reads of the function's type see a frame that was overwritten, the first few times. */
static int read_while_it_runs(void *context, remote_addr addr, void *into, size_t bytes)
{
	int r = read_saved(&saved, addr, into, bytes);

	if (r == 0 && addr == FUNCTION && (*(unsigned *)context)-- > 0)
		*(char *)into = 99;
	return r;
}

static void a_frame_that_returns_meanwhile_is_looked_at_again(void **state)
{
	unsigned overwritten = 5;
	struct memory running = {read_while_it_runs, &overwritten};
	const char *why = NULL;

	assert_int_equal(php_self_test(&running, GLOBALS, layout_for_version(80236), &why), 0);
	assert_null(why);
}

static int refuse_to_read(void *context, remote_addr addr, void *into, size_t bytes)
{
	return -EPERM;
}

static void a_refusal_of_the_kernel_is_passed_on(void **state)
{
	struct memory refusing = {refuse_to_read, NULL};
	const char *why = NULL;

	assert_int_equal(php_self_test(&refusing, GLOBALS, layout_for_version(80236), &why), -EPERM);
}

static void offsets_from_hostile_debug_information_are_bounded(void **state)
{
	struct layout layout = *layout_for_version(80236);
	const char *why = NULL;

	layout.eg_current_execute_data = 0x7fffffff;
	assert_int_equal(php_self_test(&memory, GLOBALS, &layout, &why), PHP_SELF_TEST_E_FAILED);
	layout = *layout_for_version(80236);
	layout.eg_error_zval = layout.eg_current_execute_data;
	assert_int_equal(php_self_test(&memory, GLOBALS, &layout, &why), PHP_SELF_TEST_E_FAILED);
	layout = *layout_for_version(80236);
	layout.eg_vm_stack = layout.eg_vm_stack_top - 8; /* outside what the reader copies */
	assert_int_equal(php_self_test(&memory, GLOBALS, &layout, &why), PHP_SELF_TEST_E_FAILED);
	layout = *layout_for_version(80236);
	layout.eg_vm_stack_page_size = layout.eg_current_execute_data + 8;
	assert_int_equal(php_self_test(&memory, GLOBALS, &layout, &why), PHP_SELF_TEST_E_FAILED);
	layout = *layout_for_version(80236);
	layout.ex_sizeof = 0x10000;
	assert_int_equal(php_self_test(&memory, GLOBALS, &layout, &why), PHP_SELF_TEST_E_FAILED);
	layout = *layout_for_version(80236);
	layout.ex_func = 0x10000;
	assert_int_equal(php_self_test(&memory, GLOBALS, &layout, &why), PHP_SELF_TEST_E_FAILED);
	layout = *layout_for_version(80236);
	layout.zval_type_info = UINT32_MAX - 8;
	assert_int_equal(php_self_test(&memory, GLOBALS, &layout, &why), PHP_SELF_TEST_E_FAILED);
}

#define each(test) cmocka_unit_test_setup(test, start_request)

int main(void)
{
	const struct CMUnitTest tests[] = {
		each(a_running_request_passes),
		each(a_process_before_its_first_request_passes),
		each(an_idle_worker_passes_though_its_stack_page_is_gone),
		each(a_frame_without_a_function_passes),
		each(internal_functions_and_evaluated_code_pass),
		each(a_table_whose_words_are_elsewhere_fails),
		each(values_that_are_not_null_and_error_fail),
		each(a_stack_that_contradicts_itself_fails),
		each(a_frame_that_can_not_be_one_fails),
		each(a_frame_that_returns_meanwhile_is_looked_at_again),
		each(a_refusal_of_the_kernel_is_passed_on),
		each(offsets_from_hostile_debug_information_are_bounded),
	};

	return cmocka_run_group_tests_name("symbols/php_self_test", tests, NULL, NULL);
}
