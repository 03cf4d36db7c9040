/* SPDX-License-Identifier: MIT
 *
 * Result files: whole or not at all.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbols/cleanup.h"
#include "daemon/cli/output.h"

static int set_up(void **state)
{
	char *directory = strdup("/tmp/test-output-XXXXXX");

	assert_non_null(mkdtemp(directory));
	assert_int_equal(chdir(directory), 0);
	*state = directory;
	return 0;
}

static int entries(void)
{
	DIR *directory = opendir(".");
	int count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count - 2; /* . and .. */
}

static int tear_down(void **state)
{
	unlink("out");
	unlink("link");
	unlink("pipe");
	assert_int_equal(entries(), 0);
	assert_int_equal(chdir("/"), 0);
	rmdir(*state);
	free(*state);
	return 0;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	_cleanup_fclose_ FILE *file = fopen(path, "w");

	fputs(text, file);
	assert_int_equal(fchmod(fileno(file), mode), 0);
}

static const char *contents(const char *path, char into[64])
{
	_cleanup_fclose_ FILE *file = fopen(path, "r");

	into[file ? fread(into, 1, 63, file) : 0] = 0;
	return into;
}

static mode_t mode_of(const char *path)
{
	struct stat status;

	assert_int_equal(stat(path, &status), 0);
	return status.st_mode & 07777;
}

static void a_new_file_appears_at_commit(void **state)
{
	_cleanup_(output_close) struct output output;
	char text[64];

	umask(022);
	assert_int_equal(output_open("out", &output), 0);
	assert_int_equal(access("out", F_OK), -1);
	assert_int_equal(output_commit(&output, "result\n", 7), 0);
	assert_string_equal(contents("out", text), "result\n");
	assert_int_equal(mode_of("out"), 0644);
	assert_int_equal(entries(), 1);
}

static void without_commit_the_old_file_stays_and_nothing_else(void **state)
{
	struct output output;
	char text[64];

	write_file("out", "old\n", 0600);
	assert_int_equal(output_open("out", &output), 0);
	output_close(&output);
	assert_string_equal(contents("out", text), "old\n");
	assert_int_equal(entries(), 1);
}

static void a_replaced_file_keeps_its_permissions(void **state)
{
	_cleanup_(output_close) struct output output;
	char text[64];

	write_file("out", "old\n", 0600);
	assert_int_equal(output_open("out", &output), 0);
	assert_int_equal(output_commit(&output, "new\n", 4), 0);
	assert_string_equal(contents("out", text), "new\n");
	assert_int_equal(mode_of("out"), 0600);
}

static void behind_a_symbolic_link_the_file_is_replaced(void **state)
{
	_cleanup_(output_close) struct output output;
	struct stat status;
	char text[64];

	write_file("out", "old\n", 0644);
	assert_int_equal(symlink("out", "link"), 0);
	assert_int_equal(output_open("link", &output), 0);
	assert_int_equal(output_commit(&output, "new\n", 4), 0);
	assert_string_equal(contents("out", text), "new\n");
	assert_int_equal(lstat("link", &status), 0);
	assert_true(S_ISLNK(status.st_mode));
}

static void a_pipe_is_written_to_and_not_replaced(void **state)
{
	_cleanup_(output_close) struct output output;
	struct stat status;
	char text[8] = "";

	assert_int_equal(mkfifo("pipe", 0600), 0);
	_cleanup_close_ int reader = open("pipe", O_RDONLY | O_NONBLOCK);
	assert_int_equal(output_open("pipe", &output), 0);
	assert_int_equal(output_commit(&output, "new\n", 4), 0);
	assert_int_equal(read(reader, text, sizeof(text)), 4);
	assert_string_equal(text, "new\n");
	assert_int_equal(stat("pipe", &status), 0);
	assert_true(S_ISFIFO(status.st_mode));
}

static void a_pipe_that_nobody_reads_is_refused_and_not_waited_for(void **state)
{
	struct output output;

	assert_int_equal(mkfifo("pipe", 0600), 0);
	assert_int_equal(output_open("pipe", &output), -ENXIO);
}

/* Opened to append: the file behind it must be neither replaced nor cut. */
static void a_descriptors_name_means_the_descriptor(void **state)
{
	_cleanup_(output_close) struct output output;
	char name[32], text[64];

	write_file("out", "old\n", 0600);
	_cleanup_close_ int fd = open("out", O_WRONLY | O_APPEND | O_CLOEXEC);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	assert_int_equal(output_open(name, &output), 0);
	assert_false(output_is_replaced(&output));
	assert_int_equal(output_commit(&output, "new\n", 4), 0);
	assert_string_equal(contents("out", text), "old\nnew\n");
}

static void a_descriptor_that_is_not_open_for_writing_is_refused(void **state)
{
	struct output output;
	char name[32];

	write_file("out", "", 0600);
	_cleanup_close_ int fd = open("out", O_RDONLY | O_CLOEXEC);
	snprintf(name, sizeof(name), "/dev/fd/%d", fd);
	assert_int_equal(output_open(name, &output), -EBADF);
	assert_int_equal(output_open("/dev/fd/999", &output), -EBADF);
}

static void what_can_not_be_written_is_told_at_once(void **state)
{
	struct output output;

	assert_int_equal(output_open("no/such/directory/out", &output), -ENOENT);
	assert_int_equal(output_open("/tmp", &output), -EISDIR);
}

static void no_path_and_a_dash_are_standard_output(void **state)
{
	struct output output;

	assert_int_equal(output_open(NULL, &output), 0);
	assert_int_equal(output.fd, -1);
	assert_int_equal(output_open("-", &output), 0);
	assert_int_equal(output.fd, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_new_file_appears_at_commit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			without_commit_the_old_file_stays_and_nothing_else, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_replaced_file_keeps_its_permissions, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			behind_a_symbolic_link_the_file_is_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pipe_is_written_to_and_not_replaced, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_pipe_that_nobody_reads_is_refused_and_not_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_descriptors_name_means_the_descriptor, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_descriptor_that_is_not_open_for_writing_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_can_not_be_written_is_told_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_path_and_a_dash_are_standard_output, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
