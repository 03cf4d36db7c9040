/* SPDX-License-Identifier: MIT
 *
 * The parser of /proc/PID/maps: what proc_pid_maps(5) promises, what hostile names of files make of it, and
 * what is no such text at all.
 */
#include "support.h"

#include <sys/mman.h>

#include "symbols/procmap.h"

static int parse(const char *text, struct procmap **ret_maps)
{
	return procmap_parse(text, strlen(text), ret_maps);
}

static void each_field_of_a_line_is_read(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;

	assert_int_equal(
		parse("55d0c1a00000-55d0c1bff000 r-xp 000c8000 fe:01 1835033    /usr/sbin/php-fpm8.2\n"
		      "7f1200000000-7f1200021000 rw-s 00000000 00:05 77 \n",
			&maps),
		0);
	assert_int_equal(maps->count, 2);
	assert_int_equal(maps->mappings[0].start, 0x55d0c1a00000);
	assert_int_equal(maps->mappings[0].end, 0x55d0c1bff000);
	assert_int_equal(maps->mappings[0].file_offset, 0xc8000);
	assert_int_equal(maps->mappings[0].inode, 1835033);
	assert_int_equal(maps->mappings[0].device_major, 0xfe);
	assert_int_equal(maps->mappings[0].device_minor, 1);
	assert_true(maps->mappings[0].readable);
	assert_false(maps->mappings[0].writable);
	assert_true(maps->mappings[0].executable);
	assert_false(maps->mappings[0].shared);
	assert_false(maps->mappings[0].deleted);
	assert_string_equal(maps->mappings[0].path, "/usr/sbin/php-fpm8.2");
	assert_true(maps->mappings[1].writable);
	assert_false(maps->mappings[1].executable);
	assert_true(maps->mappings[1].shared);
	assert_string_equal(maps->mappings[1].path, "");
}

static void a_path_keeps_its_spaces(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;

	assert_int_equal(
		parse("1000-2000 r--p 00000000 08:01 7                  /opt/my php/bin/php  fpm\n", &maps),
		0);
	assert_string_equal(maps->mappings[0].path, "/opt/my php/bin/php  fpm");
}

static void a_deleted_file_is_marked_and_named_without_the_mark(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;

	assert_int_equal(parse("1000-2000 r--p 00000000 08:01 7 /usr/bin/php (deleted)\n"
			       "2000-3000 r--p 00000000 08:01 7 /usr/bin/php(deleted)\n",
				 &maps),
		0);
	assert_true(maps->mappings[0].deleted);
	assert_string_equal(maps->mappings[0].path, "/usr/bin/php");
	assert_false(maps->mappings[1].deleted);
	assert_string_equal(maps->mappings[1].path, "/usr/bin/php(deleted)");
}

static void an_escaped_newline_is_undone_wherever_it_stands(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;

	assert_int_equal(
		parse("1000-2000 r--p 00000000 08:01 7 /tmp/a\\012b\\012\\012 (deleted)\n", &maps), 0);
	assert_string_equal(maps->mappings[0].path, "/tmp/a\nb\n\n");
	assert_true(maps->mappings[0].deleted);
}

static void the_highest_address_there_is_can_be_read(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;

	assert_int_equal(
		parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n",
			&maps),
		0);
	assert_int_equal(maps->mappings[0].start, 0xffffffffff600000);
	assert_string_equal(maps->mappings[0].path, "[vsyscall]");
}

static void an_empty_text_is_a_process_without_memory(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;

	assert_int_equal(parse("", &maps), 0);
	assert_int_equal(maps->count, 0);
	assert_null(procmap_find(maps, 0x1000));
}

static void a_line_that_is_not_of_the_format_is_refused(void **state)
{
	static const char *const texts[] = {
		"\n",
		"garbage\n",
		"1000-2000\n",
		"1000-2000 r--p\n",
		"1000-2000 r--p 0 08:01\n",
		"1000-2000 r--p 0 0801 7\n",
		"1000-2000 rwzp 0 08:01 7\n",
		"1000-2000 r--p 0 08:01 7x\n",
		"1000-2000 r--p 0 08:01 0x7\n",
		"1000 2000 r--p 0 08:01 7\n",
		"-2000 r--p 0 08:01 7\n",
		"1000-2000 r--p -1 08:01 7\n",
		"1000-10000000000000000 r--p 0 08:01 7\n",
		"1000-2000 r--p 0 100000000:01 7\n",
		"1000-2000 r--p 0 08:01 18446744073709551616\n",
		"2000-1000 r--p 0 08:01 7\n",
		"1000-1000 r--p 0 08:01 7\n",
		"3000-4000 r--p 0 08:01 7\n1000-2000 r--p 0 08:01 7\n",
		"1000-3000 r--p 0 08:01 7\n2000-4000 r--p 0 08:01 7\n",
		"1000-2000 r--p 0 08:01 7 /cut/in/mid-pa",
	};
	struct procmap *maps = NULL;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(parse(texts[i], &maps), -EINVAL);
		assert_null(maps);
	}
	assert_int_equal(procmap_parse("1000-2000 r--p 0 08:01 7 /a\0b\n", 31, &maps), -EINVAL);
}

static void a_text_cut_anywhere_is_refused_or_ends_with_a_whole_line(void **state)
{
	static const char text[] = "1000-2000 r--p 00000000 08:01 7 /usr/bin/php (deleted)\n"
				   "2000-3000 rw-p 00001000 08:01 7 /usr/bin/php (deleted)\n";
	const size_t first_line = (size_t)(strchr(text, '\n') - text) + 1;

	for (size_t bytes = 0; bytes < sizeof(text); bytes++) {
		_cleanup_(procmap_freep) struct procmap *maps = NULL;
		bool whole = bytes == 0 || bytes == first_line || bytes == sizeof(text) - 1;

		assert_int_equal(procmap_parse(text, bytes, &maps), whole ? 0 : -EINVAL);
	}
}

static void more_mappings_than_the_kernel_allows_are_refused(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct procmap *maps = NULL;
	size_t bytes = 0;
	FILE *stream = open_memstream(&text, &bytes);

	for (unsigned i = 0; i <= PROCMAP_MAX_MAPPINGS; i++)
		fprintf(stream, "%x-%x r--p 0 0:0 0\n", (i + 1) << 12, (i + 2) << 12);
	assert_int_equal(fclose(stream), 0);
	assert_int_equal(procmap_parse(text, bytes, &maps), -E2BIG);
	/* One line less is accepted. */
	bytes = (size_t)((char *)memrchr(text, '\n', bytes - 1) + 1 - text);
	assert_int_equal(procmap_parse(text, bytes, &maps), 0);
	assert_int_equal(maps->count, PROCMAP_MAX_MAPPINGS);
	procmap_free(maps);
}

static void an_address_is_found_in_the_mapping_that_holds_it(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;

	assert_int_equal(
		parse("1000-2000 r--p 0 0:0 0 a\n2000-3000 r--p 0 0:0 0 b\n8000-9000 r--p 0 0:0 0 c\n",
			&maps),
		0);
	assert_null(procmap_find(maps, 0xfff));
	assert_string_equal(procmap_find(maps, 0x1000)->path, "a");
	assert_string_equal(procmap_find(maps, 0x1fff)->path, "a");
	assert_string_equal(procmap_find(maps, 0x2000)->path, "b");
	assert_null(procmap_find(maps, 0x3000));
	assert_null(procmap_find(maps, 0x7fff));
	assert_string_equal(procmap_find(maps, 0x8fff)->path, "c");
	assert_null(procmap_find(maps, 0x9000));
	assert_null(procmap_find(maps, UINT64_MAX));
}

static void random_texts_are_refused_or_sorted(void **state)
{
	static const char alphabet[] = "0123456789abcdef-rwxps: /\n\\";
	unsigned seed = 20221208;

	for (int round = 0; round < 20000; round++) {
		_cleanup_(procmap_freep) struct procmap *maps = NULL;
		char text[120] = "1000-2000 r-xp 00000000 08:01 7 /a\n2000-3000 r-xp 00000000 08:01 7 /b\n";
		size_t bytes = strlen(text);

		for (int change = 0; change < 3; change++)
			text[(size_t)rand_r(&seed) % bytes] =
				alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
		if (procmap_parse(text, bytes, &maps) != 0)
			continue;
		for (size_t i = 0; i < maps->count; i++) {
			assert_true(maps->mappings[i].start < maps->mappings[i].end);
			assert_true(i == 0 || maps->mappings[i - 1].end <= maps->mappings[i].start);
		}
	}
}

static void the_own_process_is_read_with_this_function_in_an_executable_mapping(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;
	const struct mapping *own;
	char exe[PATH_MAX] = "";

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_int_equal(procmap_read(getpid(), &maps), 0);
	own = procmap_find(
		maps, (uintptr_t)the_own_process_is_read_with_this_function_in_an_executable_mapping);
	assert_non_null(own);
	assert_true(own->executable);
	assert_false(own->writable);
	assert_string_equal(own->path, exe);
}

static void a_mapped_file_with_a_newline_and_a_space_in_its_name_is_read_back(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;
	const char *path = in_scratch("a b\nc");
	const struct mapping *mapping;
	struct stat status;
	void *mapped;
	int fd;

	write_file(path, "content");
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	mapped = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(mapped, MAP_FAILED);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(procmap_read(getpid(), &maps), 0);
	mapping = procmap_find(maps, (uintptr_t)mapped);
	assert_non_null(mapping);
	assert_string_equal(mapping->path, path);
	assert_true(mapping->deleted);
	assert_int_equal(mapping->inode, status.st_ino);
	munmap(mapped, 4096);
}

static void a_process_that_does_not_exist_is_esrch(void **state)
{
	struct procmap *maps = NULL;

	/* Above the largest pid the kernel gives out (PID_MAX_LIMIT). */
	assert_int_equal(procmap_read(4194305, &maps), -ESRCH);
	assert_null(maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_field_of_a_line_is_read),
		cmocka_unit_test(a_path_keeps_its_spaces),
		cmocka_unit_test(a_deleted_file_is_marked_and_named_without_the_mark),
		cmocka_unit_test(an_escaped_newline_is_undone_wherever_it_stands),
		cmocka_unit_test(the_highest_address_there_is_can_be_read),
		cmocka_unit_test(an_empty_text_is_a_process_without_memory),
		cmocka_unit_test(a_line_that_is_not_of_the_format_is_refused),
		cmocka_unit_test(a_text_cut_anywhere_is_refused_or_ends_with_a_whole_line),
		cmocka_unit_test(more_mappings_than_the_kernel_allows_are_refused),
		cmocka_unit_test(an_address_is_found_in_the_mapping_that_holds_it),
		cmocka_unit_test(random_texts_are_refused_or_sorted),
		cmocka_unit_test(the_own_process_is_read_with_this_function_in_an_executable_mapping),
		cmocka_unit_test(a_mapped_file_with_a_newline_and_a_space_in_its_name_is_read_back),
		cmocka_unit_test(a_process_that_does_not_exist_is_esrch),
	};

	return cmocka_run_group_tests_name("symbols/procmap", tests, make_scratch, remove_scratch);
}
