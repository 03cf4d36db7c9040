/* SPDX-License-Identifier: MIT
 *
 * remote_read() against this very process (which may always read itself) and against processes that are not
 * there.
 */
#include "reader/remote.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE_BYTES 4096

/* A page that is readable, followed by one that is not mapped. */
static char *page_before_a_hole(void)
{
	char *page = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(page, MAP_FAILED);
	assert_int_equal(munmap(page + PAGE_BYTES, PAGE_BYTES), 0);
	return page;
}

static void spans_arrive_in_order_with_one_call(void **state)
{
	char first[] = "first", second[] = "second", into[16] = "";
	struct remote_span spans[] = {
		{(uintptr_t)first, into, 5},
		{(uintptr_t)second, into + 5, 6},
	};
	uint64_t calls = remote_read_calls();

	assert_int_equal(remote_read(getpid(), spans, 2, NULL), 0);
	assert_string_equal(into, "firstsecond");
	assert_int_equal(remote_read_calls() - calls, 1);
}

static void spans_may_go_to_scattered_places(void **state)
{
	char text[] = "abcdef", left[4] = "", right[4] = "";
	struct remote_span spans[] = {
		{(uintptr_t)text, left, 3},
		{(uintptr_t)text + 3, right, 3},
	};

	assert_int_equal(remote_read(getpid(), spans, 2, NULL), 0);
	assert_string_equal(left, "abc");
	assert_string_equal(right, "def");
}

static void an_object_that_ends_with_its_page_is_read_whole(void **state)
{
	char *page = page_before_a_hole(), into[8];
	struct remote_span span = {(uintptr_t)page + PAGE_BYTES - 8, into, 8};

	memcpy(page + PAGE_BYTES - 8, "lasteight", 8);
	assert_int_equal(remote_read(getpid(), &span, 1, NULL), 0);
	assert_memory_equal(into, "lasteigh", 8);
	munmap(page, PAGE_BYTES);
}

static void a_read_that_runs_into_a_hole_is_a_failure_though_bytes_arrived(void **state)
{
	char *page = page_before_a_hole(), into[16];
	struct remote_span span = {(uintptr_t)page + PAGE_BYTES - 8, into, 16};
	size_t failed = 99;

	assert_int_equal(remote_read(getpid(), &span, 1, &failed), REMOTE_E_FAULT);
	assert_int_equal(failed, 0);
	munmap(page, PAGE_BYTES);
}

static void the_span_that_broke_is_named_and_those_before_it_arrived(void **state)
{
	char *page = page_before_a_hole(), text[] = "whole", into[3][8] = {""};
	struct remote_span spans[] = {
		{(uintptr_t)text, into[0], 5},
		{(uintptr_t)page + PAGE_BYTES, into[1], 8},
		{(uintptr_t)text, into[2], 5},
	};
	size_t failed = 99;

	assert_int_equal(remote_read(getpid(), spans, 3, &failed), REMOTE_E_FAULT);
	assert_int_equal(failed, 1);
	assert_string_equal(into[0], "whole");
	assert_string_equal(into[2], "");
	munmap(page, PAGE_BYTES);
}

static void a_process_that_ended_is_gone(void **state)
{
	char into[8];
	struct remote_span span = {(uintptr_t)into, into, 8};
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(remote_read(child, &span, 1, NULL), REMOTE_E_GONE);
}

static void more_spans_than_the_kernel_takes_are_refused(void **state)
{
	static struct remote_span spans[REMOTE_MAX_SPANS + 1];
	char byte = 'x', into;

	for (size_t i = 0; i <= REMOTE_MAX_SPANS; i++)
		spans[i] = (struct remote_span){(uintptr_t)&byte, &into, 1};
	assert_int_equal(remote_read(getpid(), spans, REMOTE_MAX_SPANS + 1, NULL), -EINVAL);
	assert_int_equal(remote_read(getpid(), spans, REMOTE_MAX_SPANS, NULL), 0);
}

static void memory_of_a_process_reads_through_the_same_function(void **state)
{
	pid_t self = getpid();
	struct memory memory = remote_memory(&self);
	char text[] = "through", into[8] = "";

	assert_int_equal(memory_read(&memory, (uintptr_t)text, into, 7), 0);
	assert_string_equal(into, "through");
	assert_int_equal(memory_read(&memory, 16, into, 7), REMOTE_E_FAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_arrive_in_order_with_one_call),
		cmocka_unit_test(spans_may_go_to_scattered_places),
		cmocka_unit_test(an_object_that_ends_with_its_page_is_read_whole),
		cmocka_unit_test(a_read_that_runs_into_a_hole_is_a_failure_though_bytes_arrived),
		cmocka_unit_test(the_span_that_broke_is_named_and_those_before_it_arrived),
		cmocka_unit_test(a_process_that_ended_is_gone),
		cmocka_unit_test(more_spans_than_the_kernel_takes_are_refused),
		cmocka_unit_test(memory_of_a_process_reads_through_the_same_function),
	};

	return cmocka_run_group_tests_name("remote", tests, NULL, NULL);
}
