/* SPDX-License-Identifier: MIT
 *
 * The frame table: identity by content, hard bounds, stable answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/profile/frame_table.h"

static struct frame_table *new_table(uint32_t max_frames, size_t max_bytes)
{
	struct frame_table *table = NULL;

	assert_int_equal(frame_table_new(max_frames, max_bytes, &table), 0);
	return table;
}

static uint32_t intern(struct frame_table *table, const char *name, const char *file, uint32_t line)
{
	return frame_table_intern(table, &(struct function_name){.name = name, .file = file, .line = line});
}

static void equal_names_from_different_places_get_one_number(void **state)
{
	_cleanup_(frame_table_freep) struct frame_table *table = new_table(100, 1 << 20);
	char name[] = "App\\Foo::bar", file[] = "/srv/foo.php";
	uint32_t first = intern(table, "App\\Foo::bar", "/srv/foo.php", 12);

	assert_int_equal(first, FRAME_FIRST_PHP);
	assert_int_equal(intern(table, name, file, 12), first);
	assert_int_equal(frame_table_count(table), FRAME_FIRST_PHP + 1);
}

static void name_file_and_line_each_tell_frames_apart(void **state)
{
	_cleanup_(frame_table_freep) struct frame_table *table = new_table(100, 1 << 20);

	assert_int_equal(intern(table, "ab", "c", 1), FRAME_FIRST_PHP);
	assert_int_equal(intern(table, "a", "bc", 1), FRAME_FIRST_PHP + 1);
	assert_int_equal(intern(table, "ab", "c", 2), FRAME_FIRST_PHP + 2);
	assert_int_equal(intern(table, "ab", "d", 1), FRAME_FIRST_PHP + 3);
}

static void what_was_given_stays_while_the_table_grows(void **state)
{
	_cleanup_(frame_table_freep) struct frame_table *table = new_table(20000, 8 << 20);
	const struct function_name *first = frame_table_get(table, intern(table, "first", "/a.php", 7));
	char name[32], file[32];

	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "function_%d", i);
		snprintf(file, sizeof(file), "/file_%d.php", i / 10);
		assert_int_equal(intern(table, name, file, (uint32_t)i), FRAME_FIRST_PHP + 1 + i);
	}
	assert_string_equal(first->name, "first");
	assert_string_equal(first->file, "/a.php");
	assert_int_equal(first->line, 7);
	const struct function_name *late = frame_table_get(table, FRAME_FIRST_PHP + 1 + 9876);
	assert_string_equal(late->name, "function_9876");
	assert_string_equal(late->file, "/file_987.php");
	assert_int_equal(intern(table, "function_1234", "/file_123.php", 1234), FRAME_FIRST_PHP + 1 + 1234);
}

static void a_full_table_answers_other_and_counts(void **state)
{
	_cleanup_(frame_table_freep) struct frame_table *table = new_table(FRAME_FIRST_PHP + 2, 1 << 20);

	intern(table, "one", "", 0);
	uint32_t two = intern(table, "two", "", 0);
	assert_int_equal(intern(table, "three", "", 0), FRAME_OTHER);
	assert_int_equal(intern(table, "four", "", 0), FRAME_OTHER);
	assert_int_equal(intern(table, "two", "", 0), two);
	assert_int_equal(frame_table_overflows(table), 2);
}

static void text_is_bounded_too(void **state)
{
	_cleanup_(frame_table_freep) struct frame_table *table = new_table(UINT32_MAX, 256 * 1024);
	char name[1000];

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	for (uint32_t line = 0; line < 1000; line++)
		intern(table, name, "", line);
	/* 262,144 bytes hold at most 256 names of 1,000 bytes and their entries, and at least 200. */
	assert_in_range(frame_table_count(table), 200, 256 + FRAME_FIRST_PHP);
	assert_int_equal(frame_table_overflows(table), 1000 + FRAME_FIRST_PHP - frame_table_count(table));
}

static void fixed_frames_have_their_names_and_are_found_by_them(void **state)
{
	_cleanup_(frame_table_freep) struct frame_table *table = new_table(100, 1 << 20);

	assert_string_equal(frame_table_get(table, FRAME_TORN)->name, "<torn>");
	assert_string_equal(frame_table_get(table, FRAME_TRUNCATED)->name, "<truncated>");
	assert_int_equal(intern(table, "<unread>", "", 0), FRAME_UNREAD);
}

static int prune(struct frame_table **table, uint32_t *numbers)
{
	struct frame_table *pruned = NULL;
	int r = frame_table_prune(*table, numbers, &pruned);

	frame_table_free(*table);
	*table = pruned;
	return r;
}

static void a_pruned_table_keeps_what_is_used_and_has_room_again(void **state)
{
	_cleanup_(frame_table_freep) struct frame_table *table = new_table(FRAME_FIRST_PHP + 4, 1 << 20);
	uint32_t numbers[FRAME_FIRST_PHP + 4] = {0};

	for (uint32_t line = 0; line < 6; line++)
		intern(table, "f", "/a.php", line);
	assert_int_equal(frame_table_overflows(table), 2);
	numbers[FRAME_FIRST_PHP + 1] = numbers[FRAME_FIRST_PHP + 3] = 1;
	assert_int_equal(prune(&table, numbers), 0);

	assert_int_equal(frame_table_count(table), FRAME_FIRST_PHP + 2);
	assert_int_equal(numbers[FRAME_ROOT], FRAME_ROOT);
	assert_int_equal(numbers[FRAME_OTHER], FRAME_OTHER);
	assert_int_equal(numbers[FRAME_FIRST_PHP + 1], FRAME_FIRST_PHP);
	assert_int_equal(numbers[FRAME_FIRST_PHP + 3], FRAME_FIRST_PHP + 1);
	assert_int_equal(frame_table_get(table, FRAME_FIRST_PHP)->line, 1);
	assert_int_equal(frame_table_get(table, FRAME_FIRST_PHP + 1)->line, 3);
	assert_string_equal(frame_table_get(table, FRAME_FIRST_PHP + 1)->file, "/a.php");
	/* What was counted stays counted; what is new finds room. */
	assert_int_equal(frame_table_overflows(table), 2);
	assert_int_equal(intern(table, "f", "/a.php", 3), FRAME_FIRST_PHP + 1);
	assert_int_equal(intern(table, "f", "/a.php", 5), FRAME_FIRST_PHP + 2);
	assert_int_equal(frame_table_overflows(table), 2);
}

static void a_table_full_of_text_can_be_pruned_too(void **state)
{
	_cleanup_(frame_table_freep) struct frame_table *table = new_table(100000, 1 << 20);
	static uint32_t numbers[100000];
	char name[500] = "";

	for (uint32_t line = 0; frame_table_overflows(table) == 0; line++) {
		snprintf(name, sizeof(name), "%0*u", (int)sizeof(name) - 1, line);
		intern(table, name, "/a.php", line);
	}
	/* All of it is in use: it stays, with its numbers. */
	uint32_t count = frame_table_count(table);
	for (uint32_t id = 0; id < count; id++)
		numbers[id] = 1;
	assert_int_equal(prune(&table, numbers), 0);
	assert_int_equal(frame_table_count(table), count);
	assert_int_equal(numbers[count - 1], count - 1);
	memset(numbers, 0, sizeof(numbers));
	assert_int_equal(prune(&table, numbers), 0);
	assert_int_equal(frame_table_count(table), FRAME_FIRST_PHP);
}

static void who_has_a_reference_keeps_the_names_of_before(void **state)
{
	_cleanup_(frame_table_freep) struct frame_table *table = new_table(FRAME_FIRST_PHP + 4, 1 << 20);
	_cleanup_(frame_table_freep) struct frame_table *before = frame_table_ref(table);
	uint32_t numbers[FRAME_FIRST_PHP + 4] = {0};

	intern(table, "old", "/a.php", 1);
	assert_int_equal(prune(&table, numbers), 0);
	assert_int_equal(intern(table, "new", "/a.php", 1), FRAME_FIRST_PHP);
	assert_string_equal(frame_table_get(before, FRAME_FIRST_PHP)->name, "old");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_names_from_different_places_get_one_number),
		cmocka_unit_test(name_file_and_line_each_tell_frames_apart),
		cmocka_unit_test(what_was_given_stays_while_the_table_grows),
		cmocka_unit_test(a_full_table_answers_other_and_counts),
		cmocka_unit_test(text_is_bounded_too),
		cmocka_unit_test(fixed_frames_have_their_names_and_are_found_by_them),
		cmocka_unit_test(a_pruned_table_keeps_what_is_used_and_has_room_again),
		cmocka_unit_test(a_table_full_of_text_can_be_pruned_too),
		cmocka_unit_test(who_has_a_reference_keeps_the_names_of_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
