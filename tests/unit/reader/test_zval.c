/* SPDX-License-Identifier: MIT
 *
 * Strings and symbol tables in synthetic images of PHP 7.4 and 8.2, healthy and hostile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "reader/zval.h"
#include "tests/unit/reader/fake_zval.h"

/* One page each, so that anything read past an end is seen. */
#define GUARD_AT 0x555500000000ULL
#define TABLE_AT 0x555500010000ULL
#define DATA_AT 0x555500020000ULL
#define KEY_AT 0x555500030000ULL
#define VALUE_AT 0x555500040000ULL
#define CV_AT 0x555500050000ULL
#define REFERENCE_AT 0x555500060000ULL
#define UNMAPPED_AT 0x555500070000ULL
#define PAGE 4096

#define KEY "__cbox_profd"
#define KEY_BYTES 12
#define TEXT "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
#define MAX_BYTES 512

/* What PHP has for "__cbox_profd": 5381, for each byte times 33 plus it, modulo 2^64, the top bit set. */
#define KEY_HASH 0xcca9fdfc93b00de9ULL

struct image {
	struct fake_memory memory;
	struct view *view;
	const struct layout *layout;
	remote_addr zval; /* in the symbol table, under KEY */
};

static void image_init(struct image *image, unsigned version_id)
{
	static const remote_addr pages[] = {
		GUARD_AT, TABLE_AT, DATA_AT, KEY_AT, VALUE_AT, CV_AT, REFERENCE_AT};

	memset(image, 0, sizeof(*image));
	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
		fake_map(&image->memory, pages[i], PAGE);
	image->layout = layout_for_version(version_id);
	assert_non_null(image->layout);
	assert_int_equal(view_new(fake_read, &image->memory, GUARD_AT, 8, &image->view), 0);

	fake_string(&image->memory, KEY_AT, KEY, KEY_BYTES, KEY_HASH);
	fake_string(&image->memory, VALUE_AT, TEXT, strlen(TEXT), 0);
	fake_table(&image->memory, TABLE_AT, DATA_AT);
	image->zval = fake_table_add(&image->memory, TABLE_AT, KEY_HASH, KEY_AT);
	fake_zval(&image->memory, image->zval, VALUE_AT, image->layout->IS_STRING);
}

static void image_deinit(struct image *image)
{
	view_free(image->view);
	fake_free(&image->memory);
}

/* Looks KEY up in a fresh instant. */
static int look_up(struct image *image, const char **ret_text, size_t *ret_bytes)
{
	remote_addr string = 0;
	int r;

	assert_int_equal(view_refresh(image->view, 0, 0, 0), 0);
	r = zval_symbol_string(image->view, image->layout, TABLE_AT, KEY, KEY_BYTES, MAX_BYTES, ret_text,
		ret_bytes, &string);
	if (r == 0)
		assert_true(string >= VALUE_AT && string < VALUE_AT + PAGE);
	return r;
}

static int look_up_error(struct image *image)
{
	const char *text = "untouched";
	size_t bytes = 4711;
	int r = look_up(image, &text, &bytes);

	if (r != 0) {
		assert_string_equal(text, "untouched");
		assert_int_equal(bytes, 4711);
	}
	return r;
}

static void assert_found(struct image *image)
{
	const char *text;
	size_t bytes;

	assert_int_equal(look_up(image, &text, &bytes), 0);
	assert_int_equal(bytes, strlen(TEXT));
	assert_memory_equal(text, TEXT, strlen(TEXT));
}

static const unsigned versions[] = {70433, 80236};

#define FOR_BOTH_LAYOUTS(image)                                                      \
	for (size_t version_ = 0; version_ < 2; version_++)                          \
		for (int once_ = (image_init(&image, versions[version_]), 1); once_; \
			once_ = 0, image_deinit(&image))

static void hash_is_phps_djbx33a(void **state)
{
	assert_int_equal(zval_hash("", 0), 0x8000000000001505ULL);
	/* 5381*33 + 'a' = 177670 */
	assert_int_equal(zval_hash("a", 1), 0x800000000002b606ULL);
	/* A byte is unsigned: 5381*33 + 255. */
	assert_int_equal(zval_hash("\xff", 1), 0x8000000000000000ULL + 177573 + 255);
	assert_int_equal(zval_hash(KEY, KEY_BYTES), KEY_HASH);
}

static void plain_string_in_the_table_is_found(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	assert_found(&image);
}

static void value_in_a_compiled_variable_is_found_through_indirect(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_zval(&image.memory, image.zval, CV_AT + 80, image.layout->IS_INDIRECT);
		fake_zval(&image.memory, CV_AT + 80, VALUE_AT, image.layout->IS_STRING);
		assert_found(&image);
	}
}

static void indirect_has_another_number_in_7_4(void **state)
{
	struct image image;

	image_init(&image, 70433);
	fake_zval(&image.memory, CV_AT, VALUE_AT, 6);
	fake_zval(&image.memory, image.zval, CV_AT, 13);
	assert_found(&image);
	image_deinit(&image);

	image_init(&image, 80236);
	fake_zval(&image.memory, CV_AT, VALUE_AT, 6);
	fake_zval(&image.memory, image.zval, CV_AT, 12);
	assert_found(&image);
	fake_zval(&image.memory, image.zval, CV_AT, 13); /* IS_PTR now */
	assert_int_equal(look_up_error(&image), ZVAL_E_NOT_STRING);
	image_deinit(&image);
}

static void value_made_shared_is_found_through_reference(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_zval(&image.memory, image.zval, REFERENCE_AT, image.layout->IS_REFERENCE | 1 << 8);
		fake_zval(&image.memory, REFERENCE_AT + 8, VALUE_AT, image.layout->IS_STRING | 1 << 8);
		assert_found(&image);
	}
}

static void value_is_found_through_indirect_and_reference_together(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_zval(&image.memory, image.zval, CV_AT, image.layout->IS_INDIRECT);
		fake_zval(&image.memory, CV_AT, REFERENCE_AT, image.layout->IS_REFERENCE | 1 << 8);
		fake_zval(&image.memory, REFERENCE_AT + 8, VALUE_AT, image.layout->IS_STRING);
		assert_found(&image);
	}
}

static void known_path_costs_one_read(void **state)
{
	struct image image;

	image_init(&image, 80236);
	fake_zval(&image.memory, image.zval, CV_AT, image.layout->IS_INDIRECT);
	fake_zval(&image.memory, CV_AT, REFERENCE_AT, image.layout->IS_REFERENCE);
	fake_zval(&image.memory, REFERENCE_AT + 8, VALUE_AT, image.layout->IS_STRING);
	assert_found(&image);
	image.memory.calls = 0;
	for (int i = 0; i < 10; i++)
		assert_found(&image);
	assert_int_equal(image.memory.calls, 10);
	image_deinit(&image);
}

static void reference_to_itself_ends(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_zval(&image.memory, image.zval, image.zval - image.layout->ref_val,
			image.layout->IS_REFERENCE);
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
	}
}

static void unset_and_null_are_absent(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_zval(&image.memory, image.zval, 0, 1);
		assert_int_equal(look_up_error(&image), ZVAL_E_ABSENT);
		fake_zval(&image.memory, image.zval, CV_AT, image.layout->IS_INDIRECT);
		fake_zval(&image.memory, CV_AT, 0, 0); /* unset() of a compiled variable */
		assert_int_equal(look_up_error(&image), ZVAL_E_ABSENT);
	}
}

static void integer_and_array_are_not_strings(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_zval(&image.memory, image.zval, 42, 4);
		assert_int_equal(look_up_error(&image), ZVAL_E_NOT_STRING);
		fake_zval(&image.memory, image.zval, TABLE_AT, 7 | 3 << 8);
		assert_int_equal(look_up_error(&image), ZVAL_E_NOT_STRING);
	}
}

static void packed_table_has_no_string_keys(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_put32(&image.memory, TABLE_AT + 8, 4);
		assert_int_equal(look_up_error(&image), ZVAL_E_ABSENT);
	}
}

static void uninitialised_table_is_empty(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_put32(&image.memory, TABLE_AT + 8, 8);
		fake_put32(&image.memory, TABLE_AT + 12, (uint32_t)-2);
		fake_put64(&image.memory, TABLE_AT + 16, UNMAPPED_AT);
		assert_int_equal(look_up_error(&image), ZVAL_E_ABSENT);
	}
}

static void other_key_of_the_same_hash_is_told_apart(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		/* In front of the chain, with a key of equal length and, allegedly, equal hash. */
		fake_string(&image.memory, KEY_AT + 64, "__cbox_profe", KEY_BYTES, KEY_HASH);
		fake_zval(
			&image.memory, fake_table_add(&image.memory, TABLE_AT, KEY_HASH, KEY_AT + 64), 1, 4);
		assert_found(&image);
	}
}

static void key_is_found_behind_others_of_its_chain(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		for (unsigned i = 1; i < FAKE_HASH_BUCKETS; i++)
			fake_table_add(&image.memory, TABLE_AT, KEY_HASH + 16 * i, 0);
		assert_found(&image);
	}
}

static void absent_key_is_absent(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_put64(&image.memory, image.zval + 16, KEY_HASH + FAKE_HASH_SLOTS);
		assert_int_equal(look_up_error(&image), ZVAL_E_ABSENT);
		fake_table(&image.memory, TABLE_AT, DATA_AT);
		assert_int_equal(look_up_error(&image), ZVAL_E_ABSENT);
	}
}

static void cyclic_chain_ends(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_put64(&image.memory, image.zval + 16, KEY_HASH + FAKE_HASH_SLOTS);
		fake_put32(&image.memory, image.zval + 12, 0); /* next: itself */
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
	}
}

static void table_whose_numbers_contradict_each_other_is_malformed(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_put32(&image.memory, TABLE_AT + 12, 0x80000000); /* 2^31 slots for 8 buckets */
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
		fake_put32(&image.memory, TABLE_AT + 12, 1);
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
		fake_put32(&image.memory, TABLE_AT + 12, (uint32_t)-FAKE_HASH_SLOTS);
		fake_put32(&image.memory, TABLE_AT + 24, FAKE_HASH_BUCKETS + 1);
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
		fake_put32(&image.memory, TABLE_AT + 24, 1);
		fake_put32(&image.memory, TABLE_AT + 32, 7);
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
		fake_put32(&image.memory, TABLE_AT + 32, 0xffffffff);
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
	}
}

static void largest_table_is_addressed_without_overflow(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		/* 2^30 buckets, 2^31 slots: the slot lies up to 8 GiB in front of the buckets, where nothing
		 * is. */
		fake_put32(&image.memory, TABLE_AT + 12, 0x80000000);
		fake_put32(&image.memory, TABLE_AT + 32, 0x40000000);
		assert_int_equal(look_up_error(&image), REMOTE_E_FAULT);
		fake_put64(&image.memory, TABLE_AT + 16, 0x1000); /* in front of it: negative addresses */
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
	}
}

static void chain_that_leaves_the_table_is_malformed(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_put64(&image.memory, image.zval + 16, KEY_HASH + FAKE_HASH_SLOTS);
		fake_put32(&image.memory, image.zval + 12, 5); /* of 1 used */
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
	}
}

static void pointers_outside_of_user_space_are_malformed(void **state)
{
	static const uint64_t hostile[] = {
		0, 1, 0xfff, 0x7fffffffffffULL, 0x800000000000ULL, UINT64_MAX, VALUE_AT + 1};
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
			fake_zval(&image.memory, image.zval, hostile[i], image.layout->IS_STRING);
			assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
		}
		fake_zval(&image.memory, image.zval, UNMAPPED_AT, image.layout->IS_STRING);
		assert_int_equal(look_up_error(&image), REMOTE_E_FAULT);
	}
}

static void string_of_2_to_the_63_bytes_is_too_long(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_put64(&image.memory, VALUE_AT + 16, UINT64_C(1) << 63);
		assert_int_equal(look_up_error(&image), ZVAL_E_TOO_LONG);
		fake_put64(&image.memory, VALUE_AT + 16, UINT64_MAX);
		assert_int_equal(look_up_error(&image), ZVAL_E_TOO_LONG);
	}
}

static void string_of_8_kib_is_too_long(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_map(&image.memory, VALUE_AT + PAGE, 2 * PAGE);
		fake_put64(&image.memory, VALUE_AT + 16, 8192);
		assert_int_equal(look_up_error(&image), ZVAL_E_TOO_LONG);
	}
}

static void string_of_the_greatest_length_is_found(void **state)
{
	char longest[MAX_BYTES + 1];
	struct image image;
	const char *text;
	size_t bytes;

	memset(longest, 'x', sizeof(longest));
	FOR_BOTH_LAYOUTS(image)
	{
		fake_string(&image.memory, VALUE_AT, longest, MAX_BYTES, 0);
		assert_int_equal(look_up(&image, &text, &bytes), 0);
		assert_int_equal(bytes, MAX_BYTES);
		assert_memory_equal(text, longest, MAX_BYTES);
		fake_string(&image.memory, VALUE_AT, longest, MAX_BYTES + 1, 0);
		assert_int_equal(look_up_error(&image), ZVAL_E_TOO_LONG);
	}
}

static void string_that_ends_with_its_page_is_found(void **state)
{
	remote_addr at = VALUE_AT + PAGE - 24 - 56;
	struct image image;

	/* Header 24, text 55 and closing 0: to the last byte, and the next page is not mapped. */
	FOR_BOTH_LAYOUTS(image)
	{
		fake_string(&image.memory, at, TEXT, 55, 0);
		fake_zval(&image.memory, image.zval, at, image.layout->IS_STRING);
		assert_found(&image);
	}
}

static void string_across_two_pages_is_found(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		/* Even its header can be: 8 bytes here, 16 there. */
		for (unsigned before = 8; before <= 64; before += 8) {
			remote_addr at = VALUE_AT + PAGE - before;

			fake_unmap(&image.memory, VALUE_AT);
			fake_map(&image.memory, VALUE_AT, 2 * PAGE);
			fake_string(&image.memory, at, TEXT, strlen(TEXT), 0);
			fake_zval(&image.memory, image.zval, at, image.layout->IS_STRING);
			assert_found(&image);
		}
	}
}

static void string_whose_header_does_not_fit_its_bytes_is_malformed(void **state)
{
	struct image image;

	FOR_BOTH_LAYOUTS(image)
	{
		fake_put64(&image.memory, VALUE_AT + 8, zval_hash(TEXT, strlen(TEXT)));
		assert_found(&image);
		fake_put64(&image.memory, VALUE_AT + 8, KEY_HASH); /* another text's hash */
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
		fake_put64(&image.memory, VALUE_AT + 8, 0);
		fake_put64(&image.memory, VALUE_AT + 16, strlen(TEXT) - 1); /* no closing 0 there */
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
		fake_put64(&image.memory, VALUE_AT + 16, strlen(TEXT));
		fake_put32(&image.memory, VALUE_AT + 4, 7); /* an array's header */
		assert_int_equal(look_up_error(&image), ZVAL_E_MALFORMED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_is_phps_djbx33a),
		cmocka_unit_test(plain_string_in_the_table_is_found),
		cmocka_unit_test(value_in_a_compiled_variable_is_found_through_indirect),
		cmocka_unit_test(indirect_has_another_number_in_7_4),
		cmocka_unit_test(value_made_shared_is_found_through_reference),
		cmocka_unit_test(value_is_found_through_indirect_and_reference_together),
		cmocka_unit_test(known_path_costs_one_read),
		cmocka_unit_test(reference_to_itself_ends),
		cmocka_unit_test(unset_and_null_are_absent),
		cmocka_unit_test(integer_and_array_are_not_strings),
		cmocka_unit_test(packed_table_has_no_string_keys),
		cmocka_unit_test(uninitialised_table_is_empty),
		cmocka_unit_test(other_key_of_the_same_hash_is_told_apart),
		cmocka_unit_test(key_is_found_behind_others_of_its_chain),
		cmocka_unit_test(absent_key_is_absent),
		cmocka_unit_test(cyclic_chain_ends),
		cmocka_unit_test(table_whose_numbers_contradict_each_other_is_malformed),
		cmocka_unit_test(largest_table_is_addressed_without_overflow),
		cmocka_unit_test(chain_that_leaves_the_table_is_malformed),
		cmocka_unit_test(pointers_outside_of_user_space_are_malformed),
		cmocka_unit_test(string_of_2_to_the_63_bytes_is_too_long),
		cmocka_unit_test(string_of_8_kib_is_too_long),
		cmocka_unit_test(string_of_the_greatest_length_is_found),
		cmocka_unit_test(string_that_ends_with_its_page_is_found),
		cmocka_unit_test(string_across_two_pages_is_found),
		cmocka_unit_test(string_whose_header_does_not_fit_its_bytes_is_malformed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
