/* SPDX-License-Identifier: MIT
 *
 * The stack walk on PHP processes made of bytes: what is followed, what is bounded, how many calls it takes.
 */
#include "reader/stack.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/unit/reader/fake_php.h"

#define FUNC 0x700000 /* functions are only addresses here */

static struct fake_php php;
static struct stack_pages known_pages;
static struct raw_stack stack;

static int set_up(void **state)
{
	fake_php_init(&php, 80236);
	return 0;
}

static int set_up_74(void **state)
{
	fake_php_init(&php, 70433);
	return 0;
}

static int tear_down(void **state)
{
	stack_pages_deinit(&known_pages);
	fake_php_deinit(&php);
	return 0;
}

static int walk(void)
{
	int r = fake_refresh(&php);

	return r != 0 ? r : stack_walk(php.view, php.layout, &known_pages, NULL, &stack);
}

static void frames_on_the_predicted_page_are_walked_leaf_first_with_one_call(void **state)
{
	remote_addr main = fake_call(&php, FUNC, 0x900, 0);
	remote_addr leaf = fake_call(&php, FUNC + 0x100, 0x940, php.layout->ZEND_CALL_GENERATOR);

	assert_int_equal(walk(), 0);
	assert_int_equal(php.memory.calls, 1);
	assert_true(stack.whole);
	assert_int_equal(stack.count, 2);
	assert_int_equal(stack.frames[0].execute_data, leaf);
	assert_int_equal(stack.frames[0].func, FUNC + 0x100);
	assert_int_equal(stack.frames[0].opline, 0x940);
	assert_true(stack.frames[0].generator);
	assert_int_equal(stack.frames[1].execute_data, main);
	assert_false(stack.frames[1].generator);
	assert_int_equal(stack.page, FAKE_STACK);
	assert_int_equal(stack.used_bytes, 32 + 2 * 96);
}

static void a_process_without_a_frame_is_idle(void **state)
{
	assert_int_equal(walk(), STACK_E_IDLE);
	assert_int_equal(stack.count, 0);
}

static void a_frame_without_a_function_is_stepped_over(void **state)
{
	fake_call(&php, FUNC, 0, 0);
	fake_call(
		&php, 0, 0, php.layout->IS_OBJECT); /* zend_call_function()'s dummy has its caller's $this */
	fake_call(&php, FUNC + 0x100, 0, 0);

	assert_int_equal(walk(), 0);
	assert_int_equal(stack.count, 2);
	assert_int_equal(stack.frames[0].func, FUNC + 0x100);
	assert_int_equal(stack.frames[1].func, FUNC);
}

static void a_chain_that_runs_in_a_circle_is_corrupt(void **state)
{
	remote_addr first = fake_call(&php, FUNC, 0, 0);

	fake_call(&php, FUNC, 0, 0);
	remote_addr third = fake_call(&php, FUNC, 0, 0);
	fake_put64(&php.memory, first + php.layout->ex_prev_execute_data, third);

	assert_int_equal(walk(), STACK_E_CORRUPT);
	assert_false(stack.whole);
	assert_true(stack.count < 16);
}

static void an_address_php_cannot_have_is_corrupt_and_what_was_reached_is_kept(void **state)
{
	static const remote_addr impossible[] = {0x200001, 0x10, UINT64_C(0xffff800000000000), 0x200004};
	remote_addr main = fake_call(&php, FUNC, 0, 0);

	fake_call(&php, FUNC + 0x100, 0, 0);
	for (size_t i = 0; i < 4; i++) {
		fake_put64(&php.memory, main + php.layout->ex_prev_execute_data, impossible[i]);
		assert_int_equal(walk(), STACK_E_CORRUPT);
		assert_int_equal(stack.count, 2);
	}
}

static void a_frame_that_is_not_mapped_is_a_fault_and_what_was_reached_is_kept(void **state)
{
	remote_addr main = fake_call(&php, FUNC, 0, 0);

	fake_put64(&php.memory, main + php.layout->ex_prev_execute_data, 0x66660000);
	assert_int_equal(walk(), REMOTE_E_FAULT);
	assert_int_equal(stack.count, 1);
}

static void a_frame_at_the_end_of_what_is_mapped_is_read(void **state)
{
	remote_addr last = FAKE_HEAP + FAKE_HEAP_BYTES - php.layout->ex_sizeof;
	remote_addr main = fake_call(&php, FUNC, 0, 0);

	fake_frame(&php, last, FUNC + 0x100, 0, 0, 0, 0);
	fake_put64(&php.memory, main + php.layout->ex_prev_execute_data, last);
	assert_int_equal(walk(), 0);
	assert_int_equal(stack.frames[1].execute_data, last);
}

/* Pages outwards of the innermost one, each full of frames. Returns the outermost frame. */
static void fill_older_pages(unsigned pages, unsigned frames_a_page)
{
	remote_addr outer_page = 0;

	for (unsigned i = 0; i < pages; i++) {
		remote_addr page = 0x2000000 + i * 0x100000;

		fake_map(&php.memory, page, FAKE_STACK_BYTES);
		fake_put64(&php.memory, page + php.layout->vm_stack_prev, outer_page);
		for (unsigned f = 0; f < frames_a_page; f++) {
			remote_addr addr = page + 32 + 96 * f;

			fake_frame(
				&php, addr, FUNC + 0x100 * (i * frames_a_page + f + 1), php.current, 0, 0, 0);
			php.current = addr;
		}
		fake_put64(&php.memory, page + php.layout->vm_stack_top, page + 32 + 96 * frames_a_page);
		outer_page = page;
	}
	fake_put64(&php.memory, FAKE_STACK + php.layout->vm_stack_prev, outer_page);
}

static void older_pages_cost_a_call_each_the_first_time_and_none_after(void **state)
{
	fill_older_pages(3, 200);
	fake_call(&php, FUNC, 0, 0);

	assert_int_equal(walk(), 0);
	assert_int_equal(stack.count, 601);
	assert_int_equal(php.memory.calls, 4);
	for (unsigned i = 0; i < 3; i++) {
		php.memory.calls = 0;
		assert_int_equal(walk(), 0);
		assert_int_equal(stack.count, 601);
		assert_int_equal(php.memory.calls, 1);
	}
}

static void a_stack_deeper_than_the_limit_keeps_its_innermost_and_outermost_halves(void **state)
{
	fill_older_pages(2, 1500); /* functions 1 to 3000, from the outermost inwards */
	fake_call(&php, FUNC + 0x100 * 3001, 0, 0);

	assert_int_equal(walk(), 0);
	assert_int_equal(stack.count, STACK_MAX_FRAMES);
	assert_int_equal(stack.omitted, 3001 - 1024);
	assert_int_equal(stack.omitted_after, 511);
	for (unsigned i = 0; i < 512; i++) {
		assert_int_equal(stack.frames[i].func, FUNC + 0x100 * (3001 - i));
		assert_int_equal(stack.frames[1023 - i].func, FUNC + 0x100 * (i + 1));
	}
}

/* ---- stacks too deep to be walked ---- */

#define DEEP_PAGES 40
#define FRAMES_A_PAGE 2600
#define FIRST_PAGE 0x2000000U
#define PAGE_DISTANCE 0x100000U

/* 104,000 frames on 40 pages, and one on the innermost page. Functions are numbered from 1, the outermost. */
static void recurse(void)
{
	fill_older_pages(DEEP_PAGES, FRAMES_A_PAGE);
	fake_call(&php, FUNC + 0x100 * (DEEP_PAGES * FRAMES_A_PAGE + 1), 0, 0);
}

static void assert_both_ends(void)
{
	assert_true(stack.whole);
	assert_int_equal(stack.count, STACK_MAX_FRAMES);
	assert_int_equal(stack.omitted_after, STACK_MAX_FRAMES / 2 - 1);
	assert_true(stack.omitted_at_least);
	assert_in_range(stack.omitted, 1, DEEP_PAGES * FRAMES_A_PAGE);
	for (unsigned i = 0; i < STACK_MAX_FRAMES / 2; i++) {
		assert_int_equal(stack.frames[i].func, FUNC + 0x100 * (DEEP_PAGES * FRAMES_A_PAGE + 1 - i));
		assert_int_equal(stack.frames[STACK_MAX_FRAMES - 1 - i].func, FUNC + 0x100 * (i + 1));
	}
}

static void of_a_very_deep_stack_the_two_ends_are_read_and_not_what_lies_between(void **state)
{
	recurse();
	assert_int_equal(walk(), 0);
	assert_both_ends();
	assert_true(view_cost_bytes(php.view) < 8 << 20); /* the stack is 10 MiB, in 40 calls 1.25 more */

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(walk(), 0);
	assert_both_ends();
	for (unsigned i = 0; i < 20; i++) {
		uint64_t before = view_cost_bytes(php.view);

		php.memory.calls = 0;
		assert_int_equal(walk(), 0);
		assert_int_equal(php.memory.calls, 2); /* the second brings the pages' headers */
		assert_true(i < 19 || view_cost_bytes(php.view) - before < 1 << 20);
	}
	assert_both_ends();
}

static void the_pages_between_need_not_even_be_readable_but_for_their_headers(void **state)
{
	recurse();
	for (unsigned i = 2; i < 20; i++) {
		uint64_t header[3];
		remote_addr page = FIRST_PAGE + i * PAGE_DISTANCE;

		memcpy(header, fake_at(&php.memory, page, sizeof(header)), sizeof(header));
		fake_unmap(&php.memory, page);
		fake_map(&php.memory, page, sizeof(header));
		fake_put(&php.memory, page, header, sizeof(header));
	}
	assert_int_equal(walk(), 0);
	assert_both_ends();
}

static void what_is_a_little_deeper_than_can_be_walked_is_walked_to_its_end(void **state)
{
	/* Nine pages of 249,632 bytes use 2 MiB up; two more are left. */
	fill_older_pages(11, FRAMES_A_PAGE);
	fake_call(&php, FUNC, 0, 0);
	assert_int_equal(walk(), 0);
	assert_false(stack.omitted_at_least);
	assert_true(stack.whole);
	assert_int_equal(stack.count + stack.omitted, 11 * FRAMES_A_PAGE + 1);
}

static void a_stack_that_is_deep_no_more_is_walked_whole_again(void **state)
{
	remote_addr header_prev = FAKE_STACK + php.layout->vm_stack_prev, shallow, deep;

	recurse();
	deep = php.current;
	assert_int_equal(walk(), 0);
	fake_put64(&php.memory, header_prev, FIRST_PAGE); /* the outermost page, 2600 frames */
	shallow = FIRST_PAGE + 32 + 96 * (FRAMES_A_PAGE - 1);
	fake_put64(&php.memory, deep + php.layout->ex_prev_execute_data, shallow);
	assert_int_equal(walk(), 0);
	assert_false(stack.omitted_at_least);
	assert_int_equal(stack.count + stack.omitted, FRAMES_A_PAGE + 1);
}

/* f(g(…)): f's frame is there while g runs, but nobody has called it: it leads to the pending call around it,
 * or to none. Here each page begins with one, whose caller is the last frame of the page before. */
static void put_pending_calls_at_the_pages_starts(unsigned around)
{
	const struct layout *layout = php.layout;

	for (unsigned i = 1; i < DEEP_PAGES; i++) {
		remote_addr page = FIRST_PAGE + i * PAGE_DISTANCE, first = page + 32;
		remote_addr caller = page - PAGE_DISTANCE + 32 + 96 * (FRAMES_A_PAGE - 1);

		for (unsigned nested = 0; nested <= around; nested++)
			fake_frame(&php, first + 96 * nested, FUNC + 0x42,
				nested > 0 ? first + 96 * (nested - 1) : 0, 0, 0, 0);
		fake_put64(&php.memory, caller + layout->ex_call, first + 96 * around);
		fake_put64(&php.memory, first + 96 * (around + 1) + layout->ex_prev_execute_data, caller);
	}
}

static void the_outer_end_is_found_behind_a_call_whose_arguments_are_being_evaluated(void **state)
{
	for (unsigned around = 0; around < 3; around++) {
		recurse();
		put_pending_calls_at_the_pages_starts(around);
		assert_int_equal(walk(), 0);
		assert_int_equal(stack.count, STACK_MAX_FRAMES);
		assert_true(stack.whole);
		for (unsigned i = 0; i < STACK_MAX_FRAMES / 2; i++)
			assert_int_equal(stack.frames[STACK_MAX_FRAMES - 1 - i].func, FUNC + 0x100 * (i + 1));
		tear_down(state);
		set_up(state);
	}
}

/* Temporaries not yet written hold what earlier calls left. */
static void what_looks_like_the_caller_but_does_not_lead_home_is_passed_by(void **state)
{
	const struct layout *layout = php.layout;
	remote_addr behind = FIRST_PAGE + 32 + 96 * FRAMES_A_PAGE, pending = FIRST_PAGE + PAGE_DISTANCE + 32;

	recurse();
	put_pending_calls_at_the_pages_starts(0);
	fake_put64(&php.memory, FIRST_PAGE + layout->vm_stack_top, behind + 3 * 96);
	for (unsigned i = 0; i < 3; i++) {
		static const remote_addr ways[] = {0, 0x66660000, 0x41414141};

		fake_frame(&php, behind + 96 * i, FUNC + 0x66, ways[i], 0, 0, 0);
		fake_put64(&php.memory, behind + 96 * i + layout->ex_call, pending);
	}
	assert_int_equal(walk(), 0);
	assert_true(stack.whole);
	for (unsigned i = 0; i < STACK_MAX_FRAMES / 2; i++)
		assert_int_equal(stack.frames[STACK_MAX_FRAMES - 1 - i].func, FUNC + 0x100 * (i + 1));
}

static void assert_inner_end_alone(void)
{
	assert_false(stack.whole);
	assert_true(stack.omitted_at_least);
	assert_int_equal(stack.count, STACK_MAX_FRAMES / 2);
	assert_int_equal(stack.omitted_after, stack.count - 1);
	for (unsigned i = 0; i < STACK_MAX_FRAMES / 2; i++)
		assert_int_equal(stack.frames[i].func, FUNC + 0x100 * (DEEP_PAGES * FRAMES_A_PAGE + 1 - i));
}

static void a_deep_stack_whose_outer_end_can_t_be_found_has_its_inner_end(void **state)
{
	remote_addr prev_of_20th = FIRST_PAGE + 20 * PAGE_DISTANCE + php.layout->vm_stack_prev;
	static const remote_addr wrong[] = {FIRST_PAGE + 21 * PAGE_DISTANCE, 0x66660000, 0x41};

	recurse();
	for (size_t i = 0; i < 3; i++) { /* in a circle, not mapped, no address */
		fake_put64(&php.memory, prev_of_20th, wrong[i]);
		assert_int_equal(walk(), 0);
		assert_inner_end_alone();
	}
}

static void a_main_span_too_short_for_the_stack_costs_one_more_call_and_vouches_for_nothing(void **state)
{
	for (unsigned i = 0; i < 300; i++)
		fake_call(&php, FUNC, 0, 0);
	assert_int_equal(view_refresh(php.view, FAKE_STACK, 512, VIEW_MAX_REREAD_BYTES), 0);
	/* and what it brings was read only once */
	assert_int_equal(stack_walk(php.view, php.layout, &known_pages, NULL, &stack), STACK_E_UNVOUCHED);
	assert_int_equal(stack.count, 300);
	assert_int_equal(php.memory.calls, 2);
}

/* A fiber runs on pages of its own; the stack it was started from is found through its frames alone. */
static void a_fiber_s_caller_on_another_stack_is_reached_and_then_costs_no_call(void **state)
{
	remote_addr other = 0x3000000;

	fake_map(&php.memory, other, FAKE_STACK_BYTES);
	for (unsigned i = 0; i < 40; i++) {
		fake_frame(&php, other + 0x8000 + 96 * i, FUNC + 0x100 * i, php.current, 0, 0, 0);
		php.current = other + 0x8000 + 96 * i;
	}
	fake_call(&php, FUNC, 0, 0);

	assert_int_equal(walk(), 0);
	assert_int_equal(stack.count, 41);
	assert_in_range(php.memory.calls, 2, 4);
	php.memory.calls = 0;
	assert_int_equal(walk(), 0);
	assert_int_equal(php.memory.calls, 1);
}

/* ---- generators ---- */

/* A generator object whose frame runs @func. */
static remote_addr make_generator(remote_addr func, remote_addr *ret_frame)
{
	const struct layout *layout = php.layout;
	remote_addr generator = fake_allocate(&php, layout->generator_sizeof);
	remote_addr frame = fake_allocate(&php, layout->ex_sizeof);

	fake_put64(&php.memory, generator + layout->generator_execute_data, frame);
	fake_frame(&php, frame, func, 0, 0, layout->ZEND_CALL_GENERATOR, 0);
	*ret_frame = frame;
	return generator;
}

static void delegate(remote_addr generator, remote_addr to)
{
	fake_put64(&php.memory, generator + php.layout->generator_node_parent, to);
}

/* main iterates outer, which delegates to middle, which delegates to inner, which runs: as PHP links them in
 * zend_generator_resume(). */
static void make_delegation(remote_addr frames[3], remote_addr generators[3])
{
	const struct layout *layout = php.layout;
	remote_addr main = fake_call(&php, FUNC, 0, 0), placeholder;

	for (unsigned i = 0; i < 3; i++)
		generators[i] = make_generator(FUNC + 0x100 * (i + 1), &frames[i]); /* outer, middle, inner */
	delegate(generators[0], generators[1]);
	delegate(generators[1], generators[2]);
	placeholder = generators[0] + layout->generator_execute_fake;
	fake_frame(&php, placeholder, 0, main, 0, layout->IS_OBJECT, generators[0]);
	fake_put64(&php.memory, frames[2] + layout->ex_prev_execute_data, placeholder);
	php.current = frames[2];
	fake_php_globals(&php);
}

static void a_chain_of_yield_from_shows_every_generator(void **state)
{
	remote_addr frames[3], generators[3];

	make_delegation(frames, generators);
	assert_int_equal(walk(), 0);
	assert_int_equal(stack.count, 4);
	assert_int_equal(stack.frames[0].func, FUNC + 0x300); /* inner */
	assert_int_equal(stack.frames[1].func, FUNC + 0x200);
	assert_int_equal(stack.frames[2].func, FUNC + 0x100);
	assert_int_equal(stack.frames[3].func, FUNC);
	assert_true(stack.frames[1].generator);

	php.memory.calls = 0;
	assert_int_equal(walk(), 0);
	assert_int_equal(stack.count, 4);
	assert_int_equal(php.memory.calls, 1);
}

static void generators_that_delegate_in_a_circle_are_corrupt(void **state)
{
	remote_addr frames[3], generators[3];

	make_delegation(frames, generators);
	delegate(generators[1], generators[0]);
	assert_int_equal(walk(), STACK_E_CORRUPT);
}

static void a_delegating_generator_that_has_ended_has_no_frame(void **state)
{
	remote_addr frames[3], generators[3];

	make_delegation(frames, generators);
	fake_put64(&php.memory, generators[1] + php.layout->generator_execute_data, 0);
	assert_int_equal(walk(), 0);
	assert_int_equal(stack.count, 3);
	assert_int_equal(stack.frames[1].func, FUNC + 0x100);
}

/* ---- a target in motion ---- */

static remote_addr replaced; /* a frame that gets another function between the two copies */

static void replace_before_the_second_copy(struct fake_memory *memory, size_t span)
{
	if (span == 2) /* guard, main, main again, guard */
		fake_put64(memory, replaced + php.layout->ex_func, FUNC + 0x900);
}

static void a_frame_that_changes_while_the_guard_does_not_is_torn(void **state)
{
	replaced = fake_call(&php, FUNC, 0, 0);
	fake_call(&php, FUNC + 0x100, 0, 0);
	php.memory.move = replace_before_the_second_copy;

	assert_int_equal(walk(), VIEW_E_TORN);
	assert_true(stack.whole);
	assert_int_equal(walk(), 0);
}

static void move_on_before_the_second_copy(struct fake_memory *memory, size_t span)
{
	if (span != 2)
		return;
	fake_put64(memory, replaced + php.layout->ex_func, FUNC + 0x900);
	fake_put64(memory, FAKE_EG + php.layout->eg_vm_stack_top, replaced);
}

/* Whether a call that returned and another one took turns within the first copy, nothing says. */
static void a_target_that_moved_on_before_the_second_copy_proves_nothing_of_the_first(void **state)
{
	replaced = fake_call(&php, FUNC, 0, 0);
	php.memory.move = move_on_before_the_second_copy;

	assert_int_equal(walk(), VIEW_E_TORN);
}

/* Of a fiber that is being put on: the page is its own already, the rest are still its caller's. */
static void words_of_two_stacks_are_torn_and_said_to_be_of_two(void **state)
{
	fake_call(&php, FUNC, 0, 0);
	fake_put64(&php.memory, FAKE_EG + php.layout->eg_vm_stack, FAKE_HEAP);

	assert_int_equal(walk(), VIEW_E_TORN);
	assert_true(stack.switching);
	fake_put64(&php.memory, FAKE_EG + php.layout->eg_vm_stack, FAKE_STACK);
	assert_int_equal(walk(), 0);
	assert_false(stack.switching);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_74(name)                                            \
	{                                                        \
#name " (7.4)", name, set_up_74, tear_down, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frames_on_the_predicted_page_are_walked_leaf_first_with_one_call),
		TEST_74(frames_on_the_predicted_page_are_walked_leaf_first_with_one_call),
		TEST(a_process_without_a_frame_is_idle),
		TEST(a_frame_without_a_function_is_stepped_over),
		TEST(a_chain_that_runs_in_a_circle_is_corrupt),
		TEST(an_address_php_cannot_have_is_corrupt_and_what_was_reached_is_kept),
		TEST(a_frame_that_is_not_mapped_is_a_fault_and_what_was_reached_is_kept),
		TEST(a_frame_at_the_end_of_what_is_mapped_is_read),
		TEST_74(a_frame_at_the_end_of_what_is_mapped_is_read),
		TEST(older_pages_cost_a_call_each_the_first_time_and_none_after),
		TEST(a_stack_deeper_than_the_limit_keeps_its_innermost_and_outermost_halves),
		TEST(of_a_very_deep_stack_the_two_ends_are_read_and_not_what_lies_between),
		TEST_74(of_a_very_deep_stack_the_two_ends_are_read_and_not_what_lies_between),
		TEST(the_pages_between_need_not_even_be_readable_but_for_their_headers),
		TEST(what_is_a_little_deeper_than_can_be_walked_is_walked_to_its_end),
		TEST(a_stack_that_is_deep_no_more_is_walked_whole_again),
		TEST(the_outer_end_is_found_behind_a_call_whose_arguments_are_being_evaluated),
		TEST(what_looks_like_the_caller_but_does_not_lead_home_is_passed_by),
		TEST(a_deep_stack_whose_outer_end_can_t_be_found_has_its_inner_end),
		TEST(a_main_span_too_short_for_the_stack_costs_one_more_call_and_vouches_for_nothing),
		TEST(a_fiber_s_caller_on_another_stack_is_reached_and_then_costs_no_call),
		TEST(a_chain_of_yield_from_shows_every_generator),
		TEST_74(a_chain_of_yield_from_shows_every_generator),
		TEST(generators_that_delegate_in_a_circle_are_corrupt),
		TEST(a_delegating_generator_that_has_ended_has_no_frame),
		TEST(words_of_two_stacks_are_torn_and_said_to_be_of_two),
		TEST(a_frame_that_changes_while_the_guard_does_not_is_torn),
		TEST(a_target_that_moved_on_before_the_second_copy_proves_nothing_of_the_first),
	};

	return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
