/* SPDX-License-Identifier: MIT
 *
 * The remembered outer part of a stack, on PHP processes made of bytes: what is joined, what is walked and
 * named anew, and each way in which a remembered name could have become wrong.
 */
#include "reader/outer_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "reader/copies.h"
#include "reader/function.h"
#include "reader/load.h"
#include "tests/unit/reader/fake_php.h"

#define MAX_NAMES 64

static struct fake_php php;
static struct function_cache *cache;
static struct stack_pages known_pages;
static struct outer_frames outer;
static struct raw_stack stack;
static struct named_stack named;

static char interned[MAX_NAMES][FUNCTION_MAX_NAME_BYTES + 1];
static uint32_t interned_count;
static unsigned interns;

/* The same number for the same name, as a frame table gives it. */
static uint32_t intern(void *context, const struct function_name *name)
{
	uint32_t i = 0;

	interns++;
	while (i < interned_count && strcmp(interned[i], name->name) != 0)
		i++;
	assert_true(i < MAX_NAMES);
	if (i == interned_count)
		snprintf(interned[interned_count++], sizeof(interned[0]), "%s", name->name);
	return i;
}

static struct frame_names names = {.intern = intern};

static int set_up(void **state)
{
	fake_php_init(&php, 80236);
	interned_count = interns = 0;
	return function_cache_new(php.layout, FAKE_EG, &cache);
}

static int tear_down(void **state)
{
	function_cache_free(cache);
	stack_pages_deinit(&known_pages);
	outer_frames_deinit(&outer);
	fake_php_deinit(&php);
	return 0;
}

/* One sample, of which so many bytes of the stack are read twice. */
static int sample_twice(size_t again_bytes)
{
	size_t used = php.stack_top - FAKE_STACK;
	int r = view_refresh(php.view, FAKE_STACK, used, again_bytes);

	if (r != 0)
		return r;
	outer_frames_verify(&outer, php.view, php.layout);
	r = stack_walk(php.view, php.layout, &known_pages, &outer, &stack);
	if (r != 0)
		return r;
	named.end = outer_frames_names_end(&outer, stack.count + stack.joined);
	assert_non_null(named.end);
	r = function_cache_name(cache, php.view, &stack, &names, &named);
	if (r == 0)
		outer_frames_remember(&outer, &stack, named.holds);
	return r;
}

static int sample(void)
{
	return sample_twice(VIEW_MAX_REREAD_BYTES);
}

static const char *name_of(size_t frame)
{
	assert_true(frame < named.count);
	return interned[named.frames[frame].name_id];
}

/* ---- what there is to be called ---- */

static remote_addr call(const char *name)
{
	struct fake_function function = fake_user_function(&php, name);

	return fake_call_user(&php, &function, 1);
}

/* Returns from the frame at @frame, which is called no more. */
static void return_from(remote_addr frame)
{
	php.current = load_u64(fake_at(&php.memory, frame + php.layout->ex_prev_execute_data, 8));
	php.stack_top = frame;
	fake_php_globals(&php);
}

static remote_addr func_of(remote_addr frame)
{
	return load_u64(fake_at(&php.memory, frame + php.layout->ex_func, 8));
}

/* ---- what is joined ---- */

static void of_a_stack_that_stood_still_all_but_the_innermost_frame_is_joined(void **state)
{
	fake_call_main(&php);
	call("a");
	call("b");
	call("leaf");
	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 0);
	assert_int_equal(named.same_outer, 0);
	interns = 0;

	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 3);
	assert_int_equal(stack.count, 1);
	assert_int_equal(named.same_outer, 3);
	assert_int_equal(named.count, 4);
	assert_string_equal(name_of(0), "leaf");
	assert_string_equal(name_of(1), "b");
	assert_string_equal(name_of(2), "a");
	assert_string_equal(name_of(3), "{main}");
	assert_int_equal(named.frames[2].line, 11);
	assert_int_equal(interns, 0);
	assert_int_equal(php.memory.calls > 0, 1);
}

static void what_is_called_in_another_s_place_is_named_and_the_rest_joined(void **state)
{
	remote_addr b;

	fake_call_main(&php);
	call("a");
	b = call("b");
	call("leaf");
	assert_int_equal(sample(), 0);
	return_from(b);
	call("c");
	call("leaf of c");
	call("leaf of that");

	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 2);
	assert_int_equal(named.same_outer, 2);
	assert_int_equal(named.count, 5);
	assert_string_equal(name_of(2), "c");
	assert_string_equal(name_of(3), "a");
	/* And now these are known, too. */
	assert_int_equal(sample(), 0);
	assert_int_equal(named.same_outer, 4);
}

static void a_caller_that_got_on_is_named_at_its_new_line(void **state)
{
	struct fake_function a = fake_user_function(&php, "a");
	remote_addr frame;

	fake_call_main(&php);
	frame = fake_call_user(&php, &a, 1);
	call("b");
	call("leaf");
	assert_int_equal(sample(), 0);
	fake_put64(&php.memory, frame + php.layout->ex_opline, a.opcodes + 5 * php.layout->op_sizeof);

	assert_int_equal(sample(), 0);
	assert_int_equal(named.same_outer, 1);
	assert_int_equal(named.frames[2].line, 15);
	assert_string_equal(name_of(1), "b");
}

static void a_caller_that_is_the_innermost_frame_now_has_a_line_that_is_a_hint(void **state)
{
	remote_addr leaf;

	fake_call_main(&php);
	call("a");
	leaf = call("leaf");
	assert_int_equal(sample(), 0);
	assert_false(named.frames[1].line_approximate);
	return_from(leaf);

	assert_int_equal(sample(), 0);
	assert_int_equal(named.count, 2);
	assert_int_equal(named.same_outer, 1);
	assert_true(named.frames[0].line_approximate);
}

static void a_frame_that_was_called_by_another_one_is_not_what_it_was(void **state)
{
	remote_addr main = fake_call_main(&php), b;

	call("a");
	b = call("b");
	call("leaf");
	assert_int_equal(sample(), 0);
	fake_put64(&php.memory, b + php.layout->ex_prev_execute_data, main);

	assert_int_equal(sample(), 0);
	assert_int_equal(named.count, 3);
	assert_string_equal(name_of(1), "b");
	assert_int_equal(named.same_outer, 1);
}

static void inside_of_a_generator_frames_are_walked(void **state)
{
	remote_addr generator = fake_allocate(&php, 256), inner;
	struct fake_function body = fake_user_function(&php, "generator");

	fake_call_main(&php);
	call("a");
	fake_frame(&php, generator, fake_function(&php, &body), php.current,
		body.opcodes + php.layout->op_sizeof, php.layout->ZEND_CALL_GENERATOR, 0);
	php.current = generator;
	inner = call("inner");
	call("leaf");
	assert_int_equal(sample(), 0);
	assert_int_equal(sample(), 0);
	assert_int_equal(named.count, 5);
	assert_int_equal(stack.joined, 2);
	assert_int_equal(stack.frames[1].execute_data, inner);
	assert_string_equal(name_of(2), "generator");
}

/* A method of one object and then of another. */
static void a_frame_of_another_object_is_not_what_it_was(void **state)
{
	remote_addr frame;

	fake_call_main(&php);
	frame = call("method");
	fake_put64(&php.memory, frame + php.layout->ex_This, FAKE_HEAP + 0x1000);
	call("leaf");
	assert_int_equal(sample(), 0);
	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 2);
	fake_put64(&php.memory, frame + php.layout->ex_This, FAKE_HEAP + 0x2000);

	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 1);
	assert_int_equal(stack.frames[1].called_object_or_class, FAKE_HEAP + 0x2000);
}

static void a_stack_on_another_page_is_walked(void **state)
{
	fake_call_main(&php);
	call("a");
	call("leaf");
	assert_int_equal(sample(), 0);
	outer.page += 0x40000;
	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 0);
	assert_int_equal(named.count, 3);
}

static void a_stack_as_deep_as_may_be_is_joined_and_a_deeper_one_is_walked(void **state)
{
	struct fake_function function = fake_user_function(&php, "down");
	remote_addr func = fake_function(&php, &function);

	fake_call_main(&php);
	for (unsigned i = 1; i < STACK_MAX_FRAMES; i++)
		fake_call(&php, func, function.opcodes + php.layout->op_sizeof, 0);
	assert_int_equal(sample(), 0);
	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, STACK_MAX_FRAMES - 1);
	assert_int_equal(named.count, STACK_MAX_FRAMES);

	fake_call(&php, func, function.opcodes + php.layout->op_sizeof, 0);
	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 0);
	assert_int_equal(named.count, STACK_MAX_FRAMES);
	assert_int_equal(named.omitted, 1);
	/* Of which nothing is remembered. */
	assert_int_equal(sample(), 0);
	assert_int_equal(named.same_outer, 0);
}

static void without_its_outer_part_a_stack_is_what_a_walk_makes_of_it(void **state)
{
	struct raw_stack walked;

	fake_call_main(&php);
	call("a");
	call("b");
	call("leaf");
	assert_int_equal(sample(), 0);
	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 3);
	assert_int_equal(stack_walk(php.view, php.layout, &known_pages, NULL, &walked), 0);

	outer_frames_unjoin(&outer, &stack);
	assert_int_equal(stack.joined, 0);
	assert_int_equal(stack.count, walked.count);
	for (size_t i = 0; i < walked.count; i++) {
		assert_int_equal(stack.frames[i].execute_data, walked.frames[i].execute_data);
		assert_int_equal(stack.frames[i].prev, walked.frames[i].prev);
		assert_int_equal(stack.frames[i].func, walked.frames[i].func);
		assert_int_equal(stack.frames[i].opline, walked.frames[i].opline);
		assert_int_equal(stack.frames[i].run_time_cache, walked.frames[i].run_time_cache);
		assert_int_equal(
			stack.frames[i].called_object_or_class, walked.frames[i].called_object_or_class);
		assert_int_equal(stack.frames[i].call_info, walked.frames[i].call_info);
	}
}

/* ---- what may have become wrong ---- */

static void a_closure_s_address_that_is_used_again_is_noticed_in_an_outer_frame(void **state)
{
	struct fake_function closure = fake_user_function(&php, "{closure}"),
			     other = fake_user_function(&php, "{closure}");
	remote_addr frame;

	closure.flags = other.flags = php.layout->ZEND_ACC_CLOSURE;
	closure.scope = fake_class(&php, fake_string(&php, "App\\First"));
	other.scope = fake_class(&php, fake_string(&php, "App\\Second"));
	other.opcodes = closure.opcodes;
	fake_call_main(&php);
	frame = fake_call_user(&php, &closure, 1);
	call("b");
	call("leaf");
	assert_int_equal(sample(), 0);
	assert_int_equal(sample(), 0);
	assert_string_equal(name_of(2), "App\\First::{closure}");
	fake_write_function(&php, func_of(frame), &other);

	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 3);
	assert_string_equal(name_of(2), "App\\Second::{closure}");
	assert_int_equal(named.same_outer, 1); /* {main} alone */
	assert_int_equal(sample(), 0);
	assert_int_equal(named.same_outer, 3);
}

/* As auto_prepend_file, the script and auto_append_file do. */
static void another_script_s_top_level_at_the_same_address_is_noticed(void **state)
{
	struct fake_function second = {.filename = fake_string(&php, "/srv/append.php"), .last = 8};
	struct fake_function first = {.filename = fake_string(&php, "/srv/main.php"), .last = 8};
	remote_addr main;

	second.opcodes = first.opcodes = fake_opcodes(&php, 8, 1);
	first.line_start = 1;
	second.line_start = 40;
	main = fake_function(&php, &first);
	fake_call(&php, main, first.opcodes, php.layout->ZEND_CALL_CODE | php.layout->ZEND_CALL_TOP);
	call("a");
	call("leaf");
	assert_int_equal(sample(), 0);
	assert_int_equal(sample(), 0);
	assert_int_equal(named.same_outer, 2);
	interns = 0;
	fake_write_function(&php, main, &second);

	assert_int_equal(sample(), 0);
	assert_int_equal(interns, 1); /* it was asked for again */
}

/* include $a; and require $b; in code that was eval()'d twice at the same address. */
static void what_was_included_is_called_after_its_caller_s_opcode_of_now(void **state)
{
	struct fake_function code = fake_user_function(&php, NULL), included = fake_user_function(&php, NULL);
	remote_addr opline = code.opcodes + 3 * php.layout->op_sizeof;

	code.filename = fake_string(&php, "/srv/a.php(3) : eval()'d code");
	fake_call_main(&php);
	fake_put8(&php.memory, opline + php.layout->op_opcode, (uint8_t)php.layout->ZEND_INCLUDE_OR_EVAL);
	fake_put32(&php.memory, opline + php.layout->op_extended_value, php.layout->ZEND_INCLUDE);
	fake_call_user(&php, &code, 3);
	fake_call_user(&php, &included, 1);
	call("leaf");
	assert_int_equal(sample(), 0);
	assert_int_equal(sample(), 0);
	assert_string_equal(name_of(1), "include");
	fake_put32(&php.memory, opline + php.layout->op_extended_value, php.layout->ZEND_REQUIRE);

	assert_int_equal(sample(), 0);
	assert_string_equal(name_of(1), "require");
	assert_int_equal(named.frames[1].kind, FUNCTION_INCLUDE);
}

static void a_line_of_eval_d_code_is_read_in_every_sample(void **state)
{
	struct fake_function code = fake_user_function(&php, "in_eval");

	code.filename = fake_string(&php, "/srv/a.php(3) : eval()'d code");
	fake_call_main(&php);
	fake_call_user(&php, &code, 3);
	call("b");
	call("leaf");
	assert_int_equal(sample(), 0);
	assert_int_equal(sample(), 0);
	assert_int_equal(named.frames[2].line, 13);
	fake_put32(&php.memory, code.opcodes + 3 * php.layout->op_sizeof + php.layout->op_lineno, 77);

	assert_int_equal(sample(), 0);
	assert_int_equal(named.frames[2].line, 77);
	assert_int_equal(named.same_outer, 1);
}

static void a_frame_that_is_unwound_for_an_exception_is_not_remembered(void **state)
{
	const struct layout *layout = php.layout;
	struct fake_function a = fake_user_function(&php, "a");
	remote_addr frame;

	fake_call_main(&php);
	frame = fake_call_user(&php, &a, 1);
	call("destructor");
	call("leaf");
	fake_put64(&php.memory, frame + layout->ex_opline, FAKE_EG + layout->eg_exception + 24);
	fake_put64(&php.memory, FAKE_EG + layout->eg_exception + 16, a.opcodes + 4 * layout->op_sizeof);
	assert_int_equal(sample(), 0);
	assert_int_equal(named.frames[2].line, 14);
	fake_put64(&php.memory, FAKE_EG + layout->eg_exception + 16, a.opcodes + 6 * layout->op_sizeof);

	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 1);
	assert_int_equal(named.frames[2].line, 16);
}

static void a_function_that_could_not_be_read_is_asked_for_again(void **state)
{
	struct fake_function a = fake_user_function(&php, "a");

	fake_call_main(&php);
	fake_call(&php, 0x600000, 0x600000, 0); /* where nothing is mapped yet */
	call("leaf");
	assert_int_equal(sample(), 0);
	assert_string_equal(name_of(1), "<unread>");
	fake_map(&php.memory, 0x600000, 0x1000);
	fake_write_function(&php, 0x600000, &a);

	assert_int_equal(sample(), 0);
	assert_string_equal(name_of(1), "a");
}

/* Where a new request was not noticed, one frame that does not fit puts all of them in doubt. */
static void a_function_that_should_have_outlived_the_request_makes_all_names_stale(void **state)
{
	struct fake_function other = fake_user_function(&php, "other"),
			     function = fake_user_function(&php, "function");
	remote_addr func = fake_function(&php, &function), leaf;

	fake_call_main(&php);
	fake_call(&php, func, function.opcodes + php.layout->op_sizeof, 0);
	fake_call(&php, func, function.opcodes + php.layout->op_sizeof, 0);
	leaf = call("leaf");
	assert_int_equal(sample(), 0);
	fake_write_function(&php, func, &other);
	return_from(leaf);
	fake_call(&php, func, other.opcodes + php.layout->op_sizeof, 0); /* with opcodes it did not have */
	call("leaf");

	assert_int_equal(sample(), FUNCTION_E_STALE);
	outer_frames_unjoin(&outer, &stack);
	outer_frames_forget(&outer);
	named.end = outer_frames_names_end(&outer, stack.count);
	assert_int_equal(function_cache_name(cache, php.view, &stack, &names, &named), 0);
	assert_int_equal(named.same_outer, 0);
	assert_string_equal(name_of(1), "other");
	assert_string_equal(name_of(2), "other");
}

static void functions_that_were_forgotten_meanwhile_are_named_anew_where_they_need_a_look(void **state)
{
	struct fake_function closure = fake_user_function(&php, "{closure}");

	closure.flags = php.layout->ZEND_ACC_CLOSURE;
	fake_call_main(&php);
	fake_call_user(&php, &closure, 1);
	call("b");
	call("leaf");
	assert_int_equal(sample(), 0);
	names.epoch++; /* the table is cleared */

	assert_int_equal(sample(), 0);
	names.epoch = 0;
	assert_int_equal(stack.joined, 3);
	assert_string_equal(name_of(2), "{closure}");
	assert_int_equal(named.same_outer, 3);
}

/* ---- a target in motion ---- */

static remote_addr moving;
static size_t moves_before;

static void replace_function(struct fake_memory *memory, size_t span)
{
	if (span == moves_before)
		fake_put64(memory, moving + php.layout->ex_func, FAKE_HEAP + 0x8000);
}

static void an_outer_frame_that_changes_between_the_copies_is_torn(void **state)
{
	fake_call_main(&php);
	moving = call("a");
	call("b");
	call("leaf");
	assert_int_equal(sample(), 0);
	assert_int_equal(
		view_refresh(php.view, FAKE_STACK, php.stack_top - FAKE_STACK, VIEW_MAX_REREAD_BYTES), 0);
	for (size_t i = 0; i < php.memory.last_spans; i++)
		if (php.memory.last_addrs[i] == FAKE_STACK)
			moves_before = i; /* of the two copies the second one */
	php.memory.move = replace_function;

	assert_int_equal(sample(), VIEW_E_TORN);
	assert_int_equal(stack.joined, 3);
	assert_int_equal(stack.doubtful, 3); /* but for {main} */
}

static void call_deep(unsigned frames)
{
	struct fake_function function = fake_user_function(&php, "down");
	remote_addr func = fake_function(&php, &function);

	fake_call_main(&php);
	for (unsigned i = 1; i < frames; i++)
		fake_call(&php, func, function.opcodes + php.layout->op_sizeof, 0);
}

static void a_second_copy_of_too_few_frames_proves_nothing(void **state)
{
	call_deep(100);
	assert_int_equal(sample_twice(96 * (COPIES_LEAST_FRAMES - 1)), STACK_E_UNVOUCHED);
	assert_int_equal(sample_twice(96 * COPIES_LEAST_FRAMES), 0);
	/* That they are known makes no difference. */
	assert_int_equal(sample_twice(96 * (COPIES_LEAST_FRAMES - 1)), STACK_E_UNVOUCHED);
	assert_int_equal(stack.joined, 99);
}

static void what_need_not_be_read_twice_ends_at_the_sixteenth_frame(void **state)
{
	call_deep(100);
	assert_int_equal(sample(), 0);
	assert_int_equal(stack.steady_bytes, 32 + (100 - COPIES_WANTED_FRAMES) * 96);
	assert_int_equal(sample(), 0);
	assert_int_equal(stack.joined, 99);
	assert_int_equal(stack.steady_bytes, 32 + (100 - COPIES_WANTED_FRAMES) * 96);
}

static void of_a_shallow_stack_all_is_read_twice(void **state)
{
	call_deep(COPIES_WANTED_FRAMES - 1);
	assert_int_equal(sample(), 0);
	assert_int_equal(stack.steady_bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_a_stack_that_stood_still_all_but_the_innermost_frame_is_joined),
		TEST(what_is_called_in_another_s_place_is_named_and_the_rest_joined),
		TEST(a_caller_that_got_on_is_named_at_its_new_line),
		TEST(a_caller_that_is_the_innermost_frame_now_has_a_line_that_is_a_hint),
		TEST(a_frame_that_was_called_by_another_one_is_not_what_it_was),
		TEST(inside_of_a_generator_frames_are_walked),
		TEST(a_frame_of_another_object_is_not_what_it_was),
		TEST(a_stack_on_another_page_is_walked),
		TEST(a_stack_as_deep_as_may_be_is_joined_and_a_deeper_one_is_walked),
		TEST(without_its_outer_part_a_stack_is_what_a_walk_makes_of_it),
		TEST(a_closure_s_address_that_is_used_again_is_noticed_in_an_outer_frame),
		TEST(another_script_s_top_level_at_the_same_address_is_noticed),
		TEST(what_was_included_is_called_after_its_caller_s_opcode_of_now),
		TEST(a_line_of_eval_d_code_is_read_in_every_sample),
		TEST(a_frame_that_is_unwound_for_an_exception_is_not_remembered),
		TEST(a_function_that_could_not_be_read_is_asked_for_again),
		TEST(a_function_that_should_have_outlived_the_request_makes_all_names_stale),
		TEST(functions_that_were_forgotten_meanwhile_are_named_anew_where_they_need_a_look),
		TEST(an_outer_frame_that_changes_between_the_copies_is_torn),
		TEST(a_second_copy_of_too_few_frames_proves_nothing),
		TEST(what_need_not_be_read_twice_ends_at_the_sixteenth_frame),
		TEST(of_a_shallow_stack_all_is_read_twice),
	};

	return cmocka_run_group_tests_name("outer frames", tests, NULL, NULL);
}
