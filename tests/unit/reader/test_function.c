/* SPDX-License-Identifier: MIT
 *
 * Names, lines and the proof of cached names, on PHP processes made of bytes.
 */
#include "reader/function.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/unit/reader/fake_php.h"

#define MAX_NAMES 64

static struct fake_php php;
static struct function_cache *cache;
static struct stack_pages known_pages;
static struct raw_stack stack;
static struct frame room[STACK_MAX_FRAMES];
static struct named_stack named = {.end = room + STACK_MAX_FRAMES};

static struct {
	char name[FUNCTION_MAX_NAME_BYTES + 1];
	char file[FUNCTION_MAX_FILE_BYTES + 1];
	uint32_t line;
} interned[MAX_NAMES];
static uint32_t interned_count;

static uint32_t intern(void *context, const struct function_name *name)
{
	assert_true(interned_count < MAX_NAMES);
	snprintf(interned[interned_count].name, sizeof(interned[0].name), "%s", name->name);
	snprintf(interned[interned_count].file, sizeof(interned[0].file), "%s", name->file);
	interned[interned_count].line = name->line;
	return interned_count++;
}

static struct frame_names names = {.intern = intern};

static int set_up_for(unsigned version_id)
{
	fake_php_init(&php, version_id);
	interned_count = 0;
	names.epoch = 0;
	return function_cache_new(php.layout, FAKE_EG, &cache);
}

static int set_up(void **state)
{
	return set_up_for(80236);
}

static int set_up_74(void **state)
{
	return set_up_for(70433);
}

static int tear_down(void **state)
{
	function_cache_free(cache);
	stack_pages_deinit(&known_pages);
	fake_php_deinit(&php);
	return 0;
}

/* One sample. */
static int name_stack(void)
{
	int r = fake_refresh(&php);

	if (r == 0)
		r = stack_walk(php.view, php.layout, &known_pages, NULL, &stack);
	return r != 0 ? r : function_cache_name(cache, php.view, &stack, &names, &named);
}

static const char *name_of(size_t frame)
{
	return interned[named.frames[frame].name_id].name;
}

static const char *file_of(size_t frame)
{
	return interned[named.frames[frame].name_id].file;
}

static void call_internal(const char *name, remote_addr scope)
{
	struct fake_function function = {.type = (uint8_t)php.layout->ZEND_INTERNAL_FUNCTION,
		.name = name ? fake_string(&php, name) : 0,
		.scope = scope};

	fake_call(&php, fake_function(&php, &function), 0xdead, 0);
}

static void methods_carry_the_class_that_declares_them(void **state)
{
	struct fake_function method = fake_user_function(&php, "save");

	fake_call_main(&php);
	method.scope = fake_class(&php, fake_string(&php, "App\\Model\\Base"));
	fake_call_user(&php, &method, 4);
	call_internal("execute", fake_class(&php, fake_string(&php, "PDOStatement")));

	assert_int_equal(name_stack(), 0);
	assert_int_equal(named.count, 3);
	assert_string_equal(name_of(0), "PDOStatement::execute");
	assert_string_equal(file_of(0), "");
	assert_int_equal(named.frames[0].line, 0);
	assert_int_equal(named.frames[0].kind, FUNCTION_INTERNAL);
	assert_string_equal(name_of(1), "App\\Model\\Base::save");
	assert_string_equal(file_of(1), "/srv/lib.php");
	assert_int_equal(interned[named.frames[1].name_id].line, 10);
	assert_int_equal(named.frames[1].line, 14);
	assert_false(named.frames[1].line_approximate);
	assert_string_equal(name_of(2), "{main}");
	assert_int_equal(named.frames[2].kind, FUNCTION_MAIN);
	assert_int_equal(named.frames[2].line, 3);
}

static void a_known_stack_is_named_without_any_call_of_its_own(void **state)
{
	struct fake_function closure = fake_user_function(&php, "{closure}"),
			     plain = fake_user_function(&php, "plain");

	fake_call_main(&php);
	closure.flags = php.layout->ZEND_ACC_CLOSURE;
	fake_call_user(&php, &closure, 1);
	fake_call_user(&php, &plain, 2);
	assert_int_equal(name_stack(), 0);
	assert_int_equal(named.frames[1].kind, FUNCTION_CLOSURE);

	php.memory.calls = 0;
	assert_int_equal(name_stack(), 0);
	assert_int_equal(php.memory.calls, 1);
	assert_string_equal(name_of(0), "plain");
	assert_int_equal(interned_count, 3);
}

/* Each of these objects is a function of its own, at an address of its own. */
static void a_closure_made_anew_by_a_known_expression_costs_one_call_more(void **state)
{
	struct fake_function closure = fake_user_function(&php, "{closure}");

	fake_call_main(&php);
	fake_allocate(&php, 8192); /* its opcodes are on a page that has nothing else */
	closure.opcodes = fake_opcodes(&php, 8, 10);
	fake_allocate(&php, 8192);
	closure.flags = php.layout->ZEND_ACC_CLOSURE;
	closure.scope = fake_class(&php, fake_string(&php, "App\\Pipeline"));
	remote_addr frame = fake_call_user(&php, &closure, 1);
	call_internal("usleep", 0);
	assert_int_equal(name_stack(), 0);
	for (unsigned i = 0; i < 40; i++) { /* longer than what nobody looks at is predicted */
		fake_put64(&php.memory, frame + php.layout->ex_func, fake_function(&php, &closure));
		php.memory.calls = 0;
		assert_int_equal(name_stack(), 0);
		assert_in_range(php.memory.calls, 1, 2);
		assert_string_equal(name_of(1), "App\\Pipeline::{closure}");
		assert_int_equal(named.frames[1].line, 11);
	}
}

static void the_innermost_user_frame_s_line_is_only_a_hint(void **state)
{
	struct fake_function function = fake_user_function(&php, "busy");

	fake_call_main(&php);
	remote_addr leaf = fake_call_user(&php, &function, 5);
	assert_int_equal(name_stack(), 0);
	assert_int_equal(named.frames[0].line, 15);
	assert_true(named.frames[0].line_approximate);

	/* Not initialised at call entry: some other function's, between two opcodes, text. */
	static const remote_addr strays[] = {0x4242424242, 0, 1};
	for (size_t i = 0; i < 3; i++) {
		fake_put64(&php.memory, leaf + php.layout->ex_opline,
			strays[i] > 1 ? strays[i] : function.opcodes + strays[i] + 8);
		assert_int_equal(name_stack(), 0);
		assert_int_equal(named.frames[0].line, 10);
		assert_true(named.frames[0].line_approximate);
	}
}

static void code_without_a_name_is_called_after_the_opcode_that_included_it(void **state)
{
	const struct layout *layout = php.layout;
	const struct {
		uint32_t kind;
		uint8_t type;
		const char *name;
	} ways[] = {
		{layout->ZEND_INCLUDE, 0, "include"},
		{layout->ZEND_INCLUDE_ONCE, 0, "include_once"},
		{layout->ZEND_REQUIRE, 0, "require"},
		{layout->ZEND_REQUIRE_ONCE, 0, "require_once"},
		{layout->ZEND_EVAL, (uint8_t)layout->ZEND_EVAL_CODE, "eval"},
	};

	fake_call_main(&php);
	for (size_t i = 0; i < 5; i++) {
		struct fake_function includer = fake_user_function(&php, "includer"),
				     code = fake_user_function(&php, NULL);
		remote_addr op = includer.opcodes + 3 * layout->op_sizeof;

		fake_put8(&php.memory, op + layout->op_opcode, (uint8_t)layout->ZEND_INCLUDE_OR_EVAL);
		fake_put32(&php.memory, op + layout->op_extended_value, ways[i].kind);
		fake_call_user(&php, &includer, 3);
		code.type = ways[i].type;
		fake_call(&php, fake_function(&php, &code), code.opcodes, layout->ZEND_CALL_CODE);
	}
	call_internal("usleep", 0);

	assert_int_equal(name_stack(), 0);
	assert_int_equal(named.count, 12);
	for (size_t i = 0; i < 5; i++) {
		assert_string_equal(name_of(9 - 2 * i), ways[i].name);
		assert_string_equal(file_of(9 - 2 * i), "/srv/lib.php");
		assert_int_equal(named.frames[9 - 2 * i].line, 10);
		assert_int_equal(named.frames[9 - 2 * i].kind, i == 4 ? FUNCTION_EVAL : FUNCTION_INCLUDE);
	}
	assert_string_equal(name_of(11), "{main}");
}

static void another_request_s_function_at_the_same_address_gets_its_own_name(void **state)
{
	struct fake_function old = fake_user_function(&php, "yesterday"),
			     new = fake_user_function(&php, "today");

	fake_call_main(&php);
	remote_addr frame = fake_call_user(&php, &old, 1), func;
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(0), "yesterday");

	memcpy(&func, fake_at(&php.memory, frame + php.layout->ex_func, 8), 8);
	fake_write_function(&php, func, &new);
	function_cache_new_request(cache);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(0), "today");
}

/* Without opcache even the strings may come to lie where the old ones were: then hash and length tell. */
static void another_request_s_name_at_the_same_address_is_noticed_by_its_hash(void **state)
{
	struct fake_function function = fake_user_function(&php, "yesterday");

	fake_call_main(&php);
	fake_call_user(&php, &function, 1);
	assert_int_equal(name_stack(), 0);
	fake_write_string(&php, function.name, "tomorrow!", 9);
	function_cache_new_request(cache);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(0), "tomorrow!");
}

static void a_closure_s_address_that_is_used_again_within_the_request_is_noticed_in_the_same_sample(
	void **state)
{
	struct fake_function first = fake_user_function(&php, "{closure}"),
			     second = fake_user_function(&php, "{closure}");

	fake_call_main(&php);
	first.flags = second.flags = php.layout->ZEND_ACC_CLOSURE;
	second.line_start = 44;
	remote_addr func = fake_function(&php, &first);
	remote_addr frame = fake_call(&php, func, first.opcodes, php.layout->ZEND_CALL_CLOSURE);
	assert_int_equal(name_stack(), 0);
	assert_int_equal(interned[named.frames[0].name_id].line, 10);

	fake_write_function(&php, func, &second);
	fake_put64(&php.memory, frame + php.layout->ex_opline, second.opcodes);
	assert_int_equal(name_stack(), 0);
	assert_int_equal(interned[named.frames[0].name_id].line, 44);
}

/* Marks a string as interned: GC_IMMUTABLE in its GC_TYPE_INFO(). */
static remote_addr interned_string(const char *text)
{
	remote_addr string = fake_string(&php, text);

	fake_put32(&php.memory, string + 4, UINT32_C(1) << 6);
	return string;
}

static void of_interned_names_the_pointers_prove_a_closure_until_the_next_request(void **state)
{
	struct fake_function closure = fake_user_function(&php, NULL);
	remote_addr name = interned_string("{closure}");

	fake_call_main(&php);
	closure.name = name;
	closure.filename = interned_string("/srv/lib.php");
	closure.flags = php.layout->ZEND_ACC_CLOSURE;
	fake_call_user(&php, &closure, 1);
	call_internal("usleep", 0);
	assert_int_equal(name_stack(), 0);
	fake_write_string(&php, name, "{another}", 9); /* as no PHP does within a request */
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(1), "{closure}");

	function_cache_new_request(cache);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(1), "{another}");
}

static void a_name_made_at_run_time_is_looked_at_in_every_sample(void **state)
{
	struct fake_function trampoline = fake_user_function(&php, "callMe");

	fake_call_main(&php);
	trampoline.filename = interned_string("/srv/lib.php");
	trampoline.flags = php.layout->ZEND_ACC_CALL_VIA_TRAMPOLINE;
	fake_call_user(&php, &trampoline, 1);
	call_internal("usleep", 0);
	assert_int_equal(name_stack(), 0);
	assert_int_equal(name_stack(), 0);
	fake_write_string(&php, trampoline.name, "callIt", 6);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(1), "callIt");
}

static void a_caller_whose_opline_left_its_function_has_it_proved_again(void **state)
{
	struct fake_function old = fake_user_function(&php, "old"), new = fake_user_function(&php, "new");

	fake_call_main(&php);
	remote_addr func = fake_function(&php, &old);
	remote_addr frame = fake_call(&php, func, old.opcodes, 0);
	call_internal("usleep", 0);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(1), "old");

	fake_write_function(&php, func, &new); /* nobody told of a new request */
	fake_put64(&php.memory, frame + php.layout->ex_opline, new.opcodes + php.layout->op_sizeof);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(1), "new");
	assert_int_equal(named.frames[1].line, 11);
}

/* opcache_reset() and a deployment: the new function lies where the old one was, and looks the same. */
static void what_opcache_shares_is_proved_anew_in_the_next_request(void **state)
{
	struct fake_function shared = fake_user_function(&php, "yesterday");

	shared.flags = php.layout->ZEND_ACC_IMMUTABLE;
	fake_call_main(&php);
	fake_call_user(&php, &shared, 1);
	call_internal("usleep", 0);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(1), "yesterday");
	fake_write_string(&php, shared.name, "tomorrow!", 9);
	function_cache_new_request(cache);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(1), "tomorrow!");
}

static void proofs_of_short_requests_in_a_row_ride_in_the_single_call(void **state)
{
	struct fake_function shared = fake_user_function(&php, "shared");

	shared.flags = php.layout->ZEND_ACC_IMMUTABLE;
	fake_call_main(&php);
	fake_call_user(&php, &shared, 1);
	call_internal("usleep", 0);
	assert_int_equal(name_stack(), 0);
	php.memory.calls = 0;
	for (unsigned request = 0; request < 5; request++) {
		function_cache_new_request(cache);
		assert_int_equal(name_stack(), 0);
	}
	assert_int_equal(php.memory.calls, 5);
	assert_int_equal(named.frames[1].line, 11);
}

static void of_a_longer_request_only_the_first_sample_reads_what_proves_its_functions(void **state)
{
	struct fake_function shared = fake_user_function(&php, "shared");
	size_t spans;

	shared.flags = php.layout->ZEND_ACC_IMMUTABLE;
	fake_allocate(&php, 8192); /* on a page of its own */
	shared.name = fake_string(&php, "shared");
	fake_allocate(&php, 8192);
	fake_call_main(&php);
	fake_call_user(&php, &shared, 1);
	call_internal("usleep", 0);
	for (unsigned sample = 0; sample < 4; sample++)
		assert_int_equal(name_stack(), 0);
	spans = php.memory.last_spans;
	function_cache_new_request(cache);
	php.memory.calls = 0;
	assert_int_equal(name_stack(), 0);
	assert_in_range(php.memory.calls, 2, 4);
	php.memory.calls = 0;
	for (unsigned sample = 0; sample < 3; sample++)
		assert_int_equal(name_stack(), 0);
	assert_int_equal(php.memory.calls, 3);
	assert_int_equal(php.memory.last_spans, spans);
}

/* A blank line more in the middle of a function: address, name, first line, size are the same. */
static void a_line_that_moved_within_a_function_is_read_anew_in_the_next_request(void **state)
{
	const uint32_t ways[] = {0, php.layout->ZEND_ACC_IMMUTABLE};

	for (size_t way = 0; way < 2; way++) {
		struct fake_function edited = fake_user_function(&php, "edited");
		remote_addr line = edited.opcodes + 3 * php.layout->op_sizeof + php.layout->op_lineno;

		edited.flags = ways[way];
		fake_call_user(&php, &edited, 3);
		call_internal("usleep", 0);
		assert_int_equal(name_stack(), 0);
		assert_int_equal(named.frames[1].line, 13);

		fake_put32(&php.memory, line, 14);
		function_cache_new_request(cache);
		assert_int_equal(name_stack(), 0);
		assert_int_equal(named.frames[1].line, 14);
	}
}

static void a_caller_unwound_for_an_exception_has_the_line_where_it_was_thrown(void **state)
{
	struct fake_function function = fake_user_function(&php, "thrower");
	remote_addr exception = FAKE_EG + php.layout->eg_exception;

	fake_call_main(&php);
	remote_addr frame = fake_call_user(&php, &function, 1);
	call_internal("__destruct", 0);
	/* EG(exception_op)[0] and EG(opline_before_exception), Zend/zend_globals.h. */
	fake_put64(&php.memory, frame + php.layout->ex_opline, exception + 24);
	fake_put64(&php.memory, exception + 16, function.opcodes + 6 * php.layout->op_sizeof);

	assert_int_equal(name_stack(), 0);
	assert_int_equal(named.frames[1].line, 16);
	assert_false(named.frames[1].line_approximate);
}

static void a_fiber_s_base_is_no_frame(void **state)
{
	fake_call_main(&php);
	call_internal("start", fake_class(&php, fake_string(&php, "Fiber")));
	call_internal(NULL, 0); /* zend_fiber_function */
	call_internal("usleep", 0);

	assert_int_equal(name_stack(), 0);
	assert_int_equal(named.count, 3);
	assert_string_equal(name_of(0), "usleep");
	assert_string_equal(name_of(1), "Fiber::start");
}

/* Included code is a heap object; when its name is read another one may have taken its place. What looks like
 * a fiber's base there would make the frame disappear, for as long as the address is remembered as one. */
static void what_can_t_be_the_frame_s_function_is_unread_and_not_remembered(void **state)
{
	struct fake_function nameless = {.type = php.layout->ZEND_INTERNAL_FUNCTION};
	struct fake_function code = fake_user_function(&php, NULL);
	remote_addr func = fake_function(&php, &nameless), frame;

	fake_call_main(&php);
	frame = fake_call(&php, func, 0, php.layout->ZEND_CALL_CODE);
	call_internal("usleep", 0);
	assert_int_equal(name_stack(), 0);
	assert_int_equal(named.count, 3);
	assert_string_equal(name_of(1), "<unread>");

	func = fake_function(&php, &code);
	fake_put64(&php.memory, frame + php.layout->ex_func, func);
	fake_put64(&php.memory, frame + php.layout->ex_opline, code.opcodes);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(1), "include");
}

static void a_function_that_can_t_be_read_is_unread_and_its_neighbours_are_named(void **state)
{
	struct fake_function nonsense = {.type = 99};

	fake_call_main(&php);
	fake_call(&php, 0x66660000, 0, 0);
	fake_call(&php, fake_function(&php, &nonsense), 0, 0);
	call_internal("usleep", 0);

	assert_int_equal(name_stack(), 0);
	assert_int_equal(named.count, 4);
	assert_string_equal(name_of(0), "usleep");
	assert_string_equal(name_of(1), "<unread>");
	assert_string_equal(name_of(2), "<unread>");
	assert_string_equal(name_of(3), "{main}");
}

static void an_internal_function_at_the_end_of_what_is_mapped_is_named(void **state)
{
	struct fake_function function = {.type = (uint8_t)php.layout->ZEND_INTERNAL_FUNCTION,
		.name = FAKE_HEAP + FAKE_HEAP_BYTES - 64};
	remote_addr func = FAKE_HEAP + FAKE_HEAP_BYTES - 24;

	fake_call_main(&php);
	fake_write_string(&php, function.name, "atend", 5);
	fake_write_function(&php, func, &function);
	fake_call(&php, func, 0, 0);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(0), "atend");
}

static void names_are_cut_at_a_nul_and_what_is_no_utf8_is_escaped(void **state)
{
	struct fake_function function = fake_user_function(&php, "caf\xc3\xa9_\xe9\xff\xed\xa0\x80");

	fake_call_main(&php);
	function.scope = fake_class(&php, fake_string_of(&php, "class@anonymous\0/srv/x.php:3$0", 30));
	fake_call_user(&php, &function, 1);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(0), "class@anonymous::caf\xc3\xa9_\\xE9\\xFF\\xED\\xA0\\x80");
}

static void an_overlong_name_ends_in_an_ellipsis_and_an_overlong_path_begins_with_one(void **state)
{
	struct fake_function function = fake_user_function(&php, NULL);
	char name[2000], file[3000];

	for (size_t i = 0; i < 1998; i += 2)
		memcpy(name + i, "\xc3\xa9", 2);
	memset(file, 'd', sizeof(file));
	memcpy(file + 2990, "/last.php", 9);
	function.name = fake_string_of(&php, name, 1998);
	function.filename = fake_string_of(&php, file, 2999);
	fake_call_main(&php);
	fake_call_user(&php, &function, 1);

	assert_int_equal(name_stack(), 0);
	assert_true(strlen(name_of(0)) <= FUNCTION_MAX_NAME_BYTES);
	assert_true(strlen(name_of(0)) > FUNCTION_MAX_NAME_BYTES - 4);
	assert_string_equal(name_of(0) + strlen(name_of(0)) - 5, "\xc3\xa9\xe2\x80\xa6");
	assert_memory_equal(file_of(0),
		"\xe2\x80\xa6"
		"ddd",
		6);
	assert_int_equal(strlen(file_of(0)), FUNCTION_MAX_FILE_BYTES);
	assert_string_equal(file_of(0) + FUNCTION_MAX_FILE_BYTES - 9, "/last.php");
}

static void of_a_very_long_name_or_path_no_more_is_read_than_is_kept(void **state)
{
	struct fake_function function = fake_user_function(&php, NULL);
	static char text[60000];
	uint64_t before;

	memset(text, 'x', sizeof(text));
	memcpy(text, "Begin", 5);
	memcpy(text + sizeof(text) - 5, "/last", 5);
	function.name = function.filename = fake_string_of(&php, text, sizeof(text));
	fake_call_main(&php);
	fake_call_user(&php, &function, 1);
	assert_int_equal(fake_refresh(&php), 0);
	assert_int_equal(stack_walk(php.view, php.layout, &known_pages, NULL, &stack), 0);
	before = view_cost_bytes(php.view);
	php.memory.calls = 0;
	assert_int_equal(function_cache_name(cache, php.view, &stack, &names, &named), 0);
	/* Two kilobytes are kept; read whole they are 120. */
	assert_true(view_cost_bytes(php.view) - before - php.memory.calls * VIEW_CALL_COST_BYTES < 40000);
	assert_memory_equal(name_of(0), "Beginxxx", 8);
	assert_string_equal(file_of(0) + strlen(file_of(0)) - 6, "x/last");
	assert_memory_equal(file_of(0), "\xe2\x80\xa6xxx", 6);
}

/* Of a stack too deep to be read to its end; the last frame that is known may be an included file. */
static void the_outermost_frame_that_was_reached_is_not_main_if_there_are_more(void **state)
{
	fake_call_main(&php);
	call_internal("usleep", 0);
	assert_int_equal(fake_refresh(&php), 0);
	assert_int_equal(stack_walk(php.view, php.layout, &known_pages, NULL, &stack), 0);
	stack.whole = false;
	stack.omitted = 1;
	stack.omitted_after = 1;
	assert_int_equal(function_cache_name(cache, php.view, &stack, &names, &named), 0);
	assert_string_equal(name_of(1), "include");
	assert_int_equal(named.frames[1].kind, FUNCTION_INCLUDE);
	assert_int_equal(named.omitted_after, 1);
}

static void a_string_of_absurd_length_is_unread(void **state)
{
	struct fake_function function = fake_user_function(&php, "short");

	fake_call_main(&php);
	fake_put64(&php.memory, function.name + php.layout->str_len, UINT64_MAX - 8);
	fake_call_user(&php, &function, 1);
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(0), "<unread>");
}

static void numbers_that_became_invalid_are_asked_for_anew(void **state)
{
	struct fake_function function = fake_user_function(&php, "again");

	fake_call_user(&php, &function, 1);
	call_internal("usleep", 0);
	assert_int_equal(name_stack(), 0);
	names.epoch++;
	interned_count = 0;
	assert_int_equal(name_stack(), 0);
	assert_int_equal(interned_count, 2);
	assert_string_equal(name_of(1), "again");
}

/* The target returns from the closure and calls another one of the same shape while its header is on its way.
 */
static remote_addr moving_leaf;
static struct fake_function moving_to;

static void move_in_the_second_call(struct fake_memory *memory, size_t span)
{
	if (memory->calls != 2 || span != 0)
		return;
	fake_write_function(&php, moving_leaf, &moving_to);
	fake_put64(memory, FAKE_EG + php.layout->eg_vm_stack_top, php.stack_top + 96);
}

static void a_closure_replaced_while_it_was_read_is_torn_and_not_misnamed(void **state)
{
	struct fake_function first = fake_user_function(&php, "{closure}");

	moving_to = fake_user_function(&php, "{closure}");
	first.flags = moving_to.flags = php.layout->ZEND_ACC_CLOSURE;
	fake_call_main(&php);
	moving_leaf = fake_function(&php, &first);
	fake_call(&php, moving_leaf, first.opcodes, php.layout->ZEND_CALL_CLOSURE);
	php.memory.move = move_in_the_second_call;
	assert_int_equal(name_stack(), VIEW_E_TORN);
}

static void a_plain_function_read_while_the_target_moved_is_named(void **state)
{
	struct fake_function function = fake_user_function(&php, "plain");

	fake_call_main(&php);
	moving_to = function;
	moving_leaf = fake_function(&php, &function);
	fake_call(&php, moving_leaf, function.opcodes, 0);
	php.memory.move = move_in_the_second_call;
	assert_int_equal(name_stack(), 0);
	assert_string_equal(name_of(0), "plain");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_74(name)                                            \
	{                                                        \
#name " (7.4)", name, set_up_74, tear_down, NULL \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(methods_carry_the_class_that_declares_them),
		TEST_74(methods_carry_the_class_that_declares_them),
		TEST(a_known_stack_is_named_without_any_call_of_its_own),
		TEST_74(a_known_stack_is_named_without_any_call_of_its_own),
		TEST(a_closure_made_anew_by_a_known_expression_costs_one_call_more),
		TEST(the_innermost_user_frame_s_line_is_only_a_hint),
		TEST(code_without_a_name_is_called_after_the_opcode_that_included_it),
		TEST_74(code_without_a_name_is_called_after_the_opcode_that_included_it),
		TEST(another_request_s_function_at_the_same_address_gets_its_own_name),
		TEST(another_request_s_name_at_the_same_address_is_noticed_by_its_hash),
		TEST(a_closure_s_address_that_is_used_again_within_the_request_is_noticed_in_the_same_sample),
		TEST(of_interned_names_the_pointers_prove_a_closure_until_the_next_request),
		TEST(a_name_made_at_run_time_is_looked_at_in_every_sample),
		TEST(a_caller_whose_opline_left_its_function_has_it_proved_again),
		TEST(what_opcache_shares_is_proved_anew_in_the_next_request),
		TEST(proofs_of_short_requests_in_a_row_ride_in_the_single_call),
		TEST(of_a_longer_request_only_the_first_sample_reads_what_proves_its_functions),
		TEST(a_line_that_moved_within_a_function_is_read_anew_in_the_next_request),
		TEST(a_caller_unwound_for_an_exception_has_the_line_where_it_was_thrown),
		TEST(a_fiber_s_base_is_no_frame),
		TEST(what_can_t_be_the_frame_s_function_is_unread_and_not_remembered),
		TEST(a_function_that_can_t_be_read_is_unread_and_its_neighbours_are_named),
		TEST(an_internal_function_at_the_end_of_what_is_mapped_is_named),
		TEST(names_are_cut_at_a_nul_and_what_is_no_utf8_is_escaped),
		TEST(an_overlong_name_ends_in_an_ellipsis_and_an_overlong_path_begins_with_one),
		TEST(of_a_very_long_name_or_path_no_more_is_read_than_is_kept),
		TEST(the_outermost_frame_that_was_reached_is_not_main_if_there_are_more),
		TEST(a_string_of_absurd_length_is_unread),
		TEST(numbers_that_became_invalid_are_asked_for_anew),
		TEST(a_closure_replaced_while_it_was_read_is_torn_and_not_misnamed),
		TEST(a_plain_function_read_while_the_target_moved_is_named),
	};

	return cmocka_run_group_tests_name("function", tests, NULL, NULL);
}
