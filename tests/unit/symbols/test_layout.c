/* SPDX-License-Identifier: MIT
 *
 * The tables, by values taken by hand from PHP's headers and from FACTS, and layouts read from debug
 * information that gcc makes here.
 */
#include "support.h"

#include "symbols/layout.h"
#include "symbols/layout_dwarf.h"

static const struct layout *layout_of(unsigned version_id)
{
	const struct layout *layout = layout_for_version(version_id);

	assert_non_null(layout);
	return layout;
}

static void each_known_version_has_the_table_of_its_minor_version(void **state)
{
	assert_string_equal(layout_of(70433)->version, "7.4");
	assert_string_equal(layout_of(80000)->version, "8.0");
	assert_string_equal(layout_of(80130)->version, "8.1");
	assert_string_equal(layout_of(80236)->version, "8.2");
	assert_string_equal(layout_of(80308)->version, "8.3");
	assert_string_equal(layout_of(80428)->version, "8.4");
	assert_string_equal(layout_of(80507)->version, "8.5");
	assert_string_equal(layout_of(80600)->version, "8.6");
	assert_string_equal(layout_known_versions(), "7.4 to 8.6");
}

static void unknown_versions_have_no_table(void **state)
{
	assert_null(layout_for_version(0));
	assert_null(layout_for_version(50640));
	assert_null(layout_for_version(70333));
	assert_null(layout_for_version(70500));
	assert_null(layout_for_version(80700));
	assert_null(layout_for_version(90000));
	assert_null(layout_for_version(UINT32_MAX));
}

static void current_execute_data_moved_in_8_5_and_the_stack_words_stand_before_it(void **state)
{
	static const unsigned versions[] = {70400, 80000, 80100, 80200, 80300, 80400, 80500, 80600};

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		const struct layout *layout = layout_of(versions[i]);
		uint32_t expected = versions[i] < 80500 ? 488 : 512;

		assert_int_equal(layout->eg_current_execute_data, expected);
		assert_int_equal(layout->eg_vm_stack_top, expected - 32);
		assert_int_equal(layout->eg_vm_stack_end, expected - 24);
		assert_int_equal(layout->eg_vm_stack, expected - 16);
		assert_int_equal(layout->eg_vm_stack_page_size, expected - 8);
	}
}

static void op_arrays_have_their_file_and_line_where_the_facts_say(void **state)
{
	static const struct {
		unsigned version;
		uint32_t filename, line_start;
	} expected[] = {
		{70400, 136, 144},
		{80000, 144, 152},
		{80100, 144, 152},
		{80200, 152, 160},
		{80300, 144, 152},
		{80400, 168, 176},
		{80500, 168, 176},
		{80600, 168, 176},
	};

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(layout_of(expected[i].version)->op_array_filename, expected[i].filename);
		assert_int_equal(layout_of(expected[i].version)->op_array_line_start, expected[i].line_start);
		assert_int_equal(
			layout_of(expected[i].version)->op_array_line_end, expected[i].line_start + 4);
	}
}

static void what_the_facts_say_of_single_versions_holds(void **state)
{
	assert_int_equal(layout_of(70400)->ex_sizeof, 72);
	assert_int_equal(layout_of(80000)->ex_sizeof, 80);
	assert_int_equal(layout_of(70400)->IS_INDIRECT, 13);
	assert_int_equal(layout_of(80000)->IS_INDIRECT, 12);
	assert_int_equal(layout_of(70400)->IS_PTR, 14);
	assert_int_equal(layout_of(80600)->IS_PTR, 13);
	assert_int_equal(layout_of(80000)->eg_active_fiber, LAYOUT_ABSENT);
	assert_int_equal(layout_of(80100)->eg_active_fiber, 1672);
	assert_int_equal(layout_of(80300)->ZEND_FRAMELESS_ICALL_0, LAYOUT_ABSENT);
	assert_int_equal(layout_of(80400)->ZEND_FRAMELESS_ICALL_0, 204);
	assert_int_equal(layout_of(80400)->closure_called_scope, 328);
	assert_int_equal(layout_of(80600)->closure_called_scope, 320);
}

static void differences_are_named_one_by_one(void **state)
{
	struct layout other = *layout_of(80200);
	size_t iterator = 0;
	const char *field;
	uint32_t a, b;

	assert_int_equal(layout_difference(layout_of(80200), &other, &iterator, &field, &a, &b), 0);
	other.sg_request_uri = 56;
	other.IS_PTR = 14;
	iterator = 0;
	assert_int_equal(layout_difference(layout_of(80200), &other, &iterator, &field, &a, &b), 1);
	assert_string_equal(field, "sg.request_info.request_uri");
	assert_int_equal(a, 48);
	assert_int_equal(b, 56);
	assert_int_equal(layout_difference(layout_of(80200), &other, &iterator, &field, &a, &b), 1);
	assert_string_equal(field, "IS_PTR");
	assert_int_equal(layout_difference(layout_of(80200), &other, &iterator, &field, &a, &b), 0);
}

static int open_compiled(const char *source, const char *output, const char *flag)
{
	int fd;

	compile(source, in_scratch(output), "-shared", "-fPIC", "-g", flag, NULL);
	fd = open(in_scratch(output), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int open_structures(const char *flag)
{
	return open_compiled(beside_tests("moved_structures.c"), "structures.so", flag);
}

static void offsets_are_read_from_debug_information(void **state)
{
	const struct layout *table = layout_of(80200);
	_cleanup_close_ int fd = open_structures(NULL);
	struct layout own;

	assert_int_equal(layout_from_dwarf(fd, "", table, &own), 0);
	/* Nested members, a typedef of a qualified typedef, nameless members, a nameless structure with a
	 * typedef. */
	assert_int_equal(own.zval_type_info, 8);
	assert_int_equal(own.str_h, 16);
	assert_int_equal(own.str_len, 24);
	assert_int_equal(own.str_val, 32);
	assert_int_equal(own.eg_vm_stack_top, 632);
	assert_int_equal(own.eg_vm_stack_end, 648);
	assert_int_equal(own.eg_vm_stack, 656);
	assert_int_equal(own.eg_current_execute_data, 664);
	assert_int_equal(own.ex_opline, 16);
	assert_int_equal(own.ex_This, 24);
	assert_int_equal(own.ex_type_info, 32);
	assert_int_equal(own.ex_num_args, 36);
	assert_int_equal(own.ex_prev_execute_data, 40);
	assert_int_equal(own.ex_sizeof, 128);
	assert_int_equal(own.op_array_filename, 16);
	assert_int_equal(own.ce_user_line_start, 24);
	assert_int_equal(own.op_sizeof, 40);
	assert_int_equal(own.vm_stack_top, 8);
	assert_int_equal(own.sg_request_method, 8);
	assert_int_equal(own.sg_request_uri, 16);
}

static void what_debug_information_lacks_keeps_the_tables_value(void **state)
{
	_cleanup_close_ int fd = open_structures(NULL);
	struct layout own;

	assert_int_equal(layout_from_dwarf(fd, "", layout_of(80200), &own), 0);
	assert_string_equal(own.version, "8.2");
	assert_int_equal(own.eg_symbol_table, 304);     /* no such member there */
	assert_int_equal(own.fcgi_request_env, 8296);   /* no such structure there */
	assert_int_equal(own.ZEND_INCLUDE_OR_EVAL, 73); /* no macros in debug information */
	assert_int_equal(own.fiber_context_cleanup, 24);
}

static void older_dwarf_versions_and_compressed_sections_are_read_too(void **state)
{
	static const char *const flags[] = {"-gdwarf-3", "-gdwarf-4", "-gz=zlib"};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		_cleanup_close_ int fd = open_structures(flags[i]);
		struct layout own;

		assert_int_equal(layout_from_dwarf(fd, "", layout_of(80200), &own), 0);
		assert_int_equal(own.eg_current_execute_data, 664);
		assert_int_equal(own.ex_num_args, 36);
	}
}

static void without_debug_information_nothing_is_read(void **state)
{
	_cleanup_close_ int fd = open_structures("-g0");
	_cleanup_close_ int text = open(beside_tests("moved_structures.c"), O_RDONLY | O_CLOEXEC);
	struct layout own = {.version = "untouched"};

	assert_int_equal(layout_from_dwarf(fd, "", layout_of(80200), &own), LAYOUT_DWARF_E_NONE);
	assert_int_equal(layout_from_dwarf(text, "", layout_of(80200), &own), LAYOUT_DWARF_E_NONE);
	assert_int_equal(layout_from_dwarf(-1, "", layout_of(80200), &own), LAYOUT_DWARF_E_NONE);
	assert_int_equal(
		layout_from_dwarf(-1, "../../../etc/passwd", layout_of(80200), &own), LAYOUT_DWARF_E_NONE);
	assert_int_equal(layout_from_dwarf(-1, "0123456789", layout_of(80200), &own), LAYOUT_DWARF_E_NONE);
	assert_string_equal(own.version, "untouched");
}

static void debug_information_of_something_else_is_partial(void **state)
{
	struct layout own = {.version = "untouched"};
	_cleanup_close_ int fd = -1;

	write_file(in_scratch("else.c"), "struct _zend_string { long h, len; } s;\n");
	fd = open_compiled(in_scratch("else.c"), "else.so", NULL);
	assert_int_equal(layout_from_dwarf(fd, "", layout_of(80200), &own), LAYOUT_DWARF_E_PARTIAL);
	assert_string_equal(own.version, "untouched");
}

static void a_structure_smaller_than_its_fields_need_is_refused(void **state)
{
	/* An op_array of some 40 bytes has no room for line_start, which is missing and so the table's: 160.
	 */
	_cleanup_close_ int fd = open_structures("-DSHRUNK");
	struct layout own = {.version = "untouched"};

	assert_int_equal(layout_from_dwarf(fd, "", layout_of(80200), &own), LAYOUT_DWARF_E_PARTIAL);
	assert_string_equal(own.version, "untouched");
}

static void damaged_debug_information_does_no_harm(void **state)
{
	_cleanup_close_ int fd = open_structures(NULL);
	_cleanup_close_ int writable = open(in_scratch("structures.so"), O_RDWR | O_CLOEXEC);
	struct stat status;
	unsigned seed = 2;

	assert_int_equal(fstat(fd, &status), 0);
	for (int round = 0; round < 500; round++) {
		off_t offset = (off_t)((size_t)rand_r(&seed) % (size_t)status.st_size);
		unsigned char byte, changed = (unsigned char)rand_r(&seed);
		struct layout own;

		assert_int_equal(pread(fd, &byte, 1, offset), 1);
		assert_int_equal(pwrite(writable, &changed, 1, offset), 1);
		assert_true(layout_from_dwarf(fd, "", layout_of(80200), &own) >= 0);
		assert_int_equal(pwrite(writable, &byte, 1, offset), 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_known_version_has_the_table_of_its_minor_version),
		cmocka_unit_test(unknown_versions_have_no_table),
		cmocka_unit_test(current_execute_data_moved_in_8_5_and_the_stack_words_stand_before_it),
		cmocka_unit_test(op_arrays_have_their_file_and_line_where_the_facts_say),
		cmocka_unit_test(what_the_facts_say_of_single_versions_holds),
		cmocka_unit_test(differences_are_named_one_by_one),
		cmocka_unit_test(offsets_are_read_from_debug_information),
		cmocka_unit_test(what_debug_information_lacks_keeps_the_tables_value),
		cmocka_unit_test(older_dwarf_versions_and_compressed_sections_are_read_too),
		cmocka_unit_test(without_debug_information_nothing_is_read),
		cmocka_unit_test(debug_information_of_something_else_is_partial),
		cmocka_unit_test(a_structure_smaller_than_its_fields_need_is_refused),
		cmocka_unit_test(damaged_debug_information_does_no_harm),
	};

	return cmocka_run_group_tests_name("symbols/layout", tests, make_scratch, remove_scratch);
}
