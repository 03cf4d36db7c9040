/* SPDX-License-Identifier: MIT
 *
 * Finding PHP in live processes: a real php8.2 in all the places where it was overlooked by others, and
 * made-up ones (fake_php.c) for builds that aren't installed here.
 */
#include "support.h"

#include <elf.h>

#include "symbols/mapped_file.h"
#include "symbols/php_binary.h"

#define PHP "/usr/bin/php8.2"
#define PHP_FPM "/usr/sbin/php-fpm8.2"
#define NOBODY 65534

/* Longest wait for a state of another process. */
#define DEADLINE_MS 5000

/* What the last examination that failed said. */
static char why[512];

static int examine(pid_t pid, struct php_binary **ret_binary)
{
	struct memory memory = process_memory(&pid);

	why[0] = '\0';
	return php_binary_examine(pid, &memory, ret_binary, why, sizeof(why));
}

static struct php_binary *examine_ok(pid_t pid)
{
	struct php_binary *binary = NULL;

	if (examine(pid, &binary) != 0)
		fail_msg("%s", why);
	assert_string_equal(why, "");
	return binary;
}

/* The sentence must begin with the process and have @says in it. */
static void expect_refusal(pid_t pid, int expected, const char *says)
{
	struct php_binary *binary = NULL;
	char prefix[32];

	assert_int_equal(examine(pid, &binary), expected);
	assert_null(binary);
	snprintf(prefix, sizeof(prefix), "process %d: ", (int)pid);
	assert_memory_equal(why, prefix, strlen(prefix));
	if (!strstr(why, says))
		fail_msg("\"%s\" does not say \"%s\"", why, says);
	assert_null(strchr(why, '\n'));
}

static int build_fakes(void **state)
{
	const char *source = beside_tests("fake_php.c");

	if (make_scratch(state) != 0)
		return -1;
	compile(source, in_scratch("fake"), "-rdynamic", NULL);
	compile(source, in_scratch("fake_zts"), "-rdynamic", "-DFAKE_ZTS", "-DFAKE_POWERED_BY=\"8.3.1\"",
		NULL);
	compile(source, in_scratch("fake_5"), "-rdynamic", "-DFAKE_POWERED_BY=\"5.6.40\"", NULL);
	compile(source, in_scratch("fake_no_pie"), "-rdynamic", "-no-pie", "-fno-pie", "-fcf-protection=full",
		NULL);
	compile(source, in_scratch("fake_g"), "-rdynamic", "-g", NULL);
	compile(source, in_scratch("fake_moved"), "-rdynamic", "-g", "-DFAKE_MOVED", NULL);
	compile(source, in_scratch("fake_patched"), "-rdynamic", "-DFAKE_MOVED", NULL);
	compile(source, in_scratch("libphp.so"), "-shared", "-fPIC", "-DFAKE_LIBRARY", NULL);
	compile(source, in_scratch("httpd"), "-DFAKE_PROGRAM", in_scratch("libphp.so"), NULL);
	compile(source, in_scratch("httpd_no_pie"), "-DFAKE_PROGRAM", "-no-pie", "-fno-pie",
		in_scratch("libphp.so"), NULL);
	return 0;
}

static struct child start_fake(
	const char *program, const char *version, const char *build_id, const char *state)
{
	return start_child(NULL, (const char *const[]){in_scratch(program), version, build_id, state, NULL});
}

/* A PHP that prints what it knows of itself and waits. */
static struct child start_php(const char *path)
{
	return start_child(NULL, (const char *const[]){path, "-n", "-r",
					 "$a = new stdClass; $a->a = $a; unset($a); gc_collect_cycles(); "
					 "echo PHP_VERSION, \"\\n\"; "
					 "sleep(60);",
					 NULL});
}

static void expect_php_8_2(const struct php_binary *binary)
{
	assert_memory_equal(binary->version, "8.2.", 4);
	assert_int_equal(binary->version_id / 100, 802);
	assert_false(binary->zts);
	assert_false(binary->debug);
	assert_string_equal(binary->layout->version, "8.2");
}

static void expect_found(const char *path)
{
	struct child child = start_php(path);
	_cleanup_(php_binary_freep) struct php_binary *binary = examine_ok(child.pid);

	expect_php_8_2(binary);
	assert_string_equal(binary->sapi, "cli");
	end_child(&child);
}

static void php_cli_is_examined_whole(void **state)
{
	struct child child = start_php(PHP);
	_cleanup_(php_binary_freep) struct php_binary *binary = examine_ok(child.pid);
	struct memory memory = process_memory(&child.pid);
	uint64_t heap, size, real_size;
	uint32_t runs, collected;

	expect_php_8_2(binary);
	assert_string_equal(binary->sapi, "cli");
	assert_string_equal(binary->path, PHP);
	assert_int_equal(strlen(binary->build_id), 40);
	assert_true(binary->compiler_globals && binary->sapi_globals && binary->core_globals);
	/* Zend's counters, through what the accessors return: one cycle of one object was collected in one
	 * run. */
	assert_int_equal(memory_read(&memory, binary->mm_heap_pointer, &heap, 8), 0);
	assert_int_equal(memory_read(&memory, heap + binary->layout->mm_heap_size, &size, 8), 0);
	assert_int_equal(memory_read(&memory, heap + binary->layout->mm_heap_real_size, &real_size, 8), 0);
	assert_int_equal(real_size, 2 << 20);
	assert_true(size > 100000 && size < real_size);
	assert_int_equal(memory_read(&memory, binary->gc_globals + binary->layout->gc_gc_runs, &runs, 4), 0);
	assert_int_equal(
		memory_read(&memory, binary->gc_globals + binary->layout->gc_collected, &collected, 4), 0);
	assert_int_equal(runs, 1);
	assert_int_equal(collected, 1);
	end_child(&child);
}

static void a_deleted_php_is_found(void **state)
{
	const char *path = in_scratch("deleted-php");
	struct child child;
	_cleanup_(php_binary_freep) struct php_binary *binary = NULL;

	copy_file(PHP, path);
	child = start_php(path);
	assert_int_equal(unlink(path), 0);
	binary = examine_ok(child.pid);
	expect_php_8_2(binary);
	assert_string_equal(binary->path, path);
	end_child(&child);
}

static void a_php_whose_file_was_replaced_is_found(void **state)
{
	const char *path = in_scratch("replaced-php");
	struct child child;
	_cleanup_(php_binary_freep) struct php_binary *binary = NULL;

	copy_file(PHP, path);
	child = start_php(path);
	assert_int_equal(unlink(path), 0);
	copy_file(in_scratch("fake_zts"), path);
	binary = examine_ok(child.pid);
	expect_php_8_2(binary);
	end_child(&child);
}

static void spaces_and_newlines_in_the_path_don_t_matter(void **state)
{
	const char *path = in_scratch("my php\n8.2 (deleted)");

	copy_file(PHP, path);
	expect_found(path);
}

static void a_php_without_section_headers_is_found(void **state)
{
	const char *path = in_scratch("stripped-php");
	_cleanup_close_ int fd = -1;

	copy_file(PHP, path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &(uint64_t){0}, 8, offsetof(Elf64_Ehdr, e_shoff)), 8);
	assert_int_equal(pwrite(fd, &(uint32_t){0}, 4, offsetof(Elf64_Ehdr, e_shnum)), 4);
	close(fd);
	fd = -1;
	expect_found(path);
}

static void wait_for_children(pid_t pid, pid_t *children, size_t count)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	for (int ms = 0; ms < DEADLINE_MS; ms++) {
		_cleanup_fclose_ FILE *file = fopen(path, "r");
		size_t found = 0;

		assert_non_null(file);
		while (found < count && fscanf(file, "%d", &children[found]) == 1)
			found++;
		if (found == count)
			return;
		usleep(1000);
	}
	fail_msg("process %d has not %zu children", (int)pid, count);
}

static void an_fpm_master_and_a_worker_that_never_served_are_examined(void **state)
{
	char configuration[512];
	struct child master;
	pid_t worker;

	snprintf(configuration, sizeof(configuration),
		"[global]\nerror_log = %s\ndaemonize = no\n"
		"[pool]\nlisten = %s\nuser = nobody\npm = static\npm.max_children = 1\n",
		in_scratch("fpm.log"), in_scratch("fpm.sock"));
	write_file(in_scratch("fpm.conf"), configuration);
	master = spawn_child(NULL, (const char *const[]){PHP_FPM, "-n", "-y", in_scratch("fpm.conf"), NULL});
	wait_for_children(master.pid, &worker, 1);
	for (int i = 0; i < 2; i++) {
		_cleanup_(php_binary_freep) struct php_binary *binary = examine_ok(i ? worker : master.pid);

		expect_php_8_2(binary);
		assert_string_equal(binary->sapi, "fpm-fcgi");
		assert_true(binary->mm_heap_pointer && binary->gc_globals);
	}
	end_child(&master);
	kill(worker, SIGKILL);
}

static void php_in_a_library_is_found_wherever_the_library_went(void **state)
{
	struct child child = start_fake("httpd", "8.2.7", "API20220829,NTS", "running");
	_cleanup_(php_binary_freep) struct php_binary *binary = examine_ok(child.pid), *again = NULL;

	assert_string_equal(binary->version, "8.2.7");
	assert_string_equal(binary->path, in_scratch("libphp.so"));
	assert_string_equal(binary->sapi, "fa?ke");
	assert_int_equal(rename(in_scratch("libphp.so"), in_scratch("moved.so")), 0);
	write_file(in_scratch("libphp.so"), "not a library");
	again = examine_ok(child.pid);
	assert_int_equal(again->executor_globals, binary->executor_globals);
	assert_int_equal(rename(in_scratch("moved.so"), in_scratch("libphp.so")), 0);
	end_child(&child);
}

static void a_program_s_copies_of_the_library_s_globals_are_used(void **state)
{
	struct child child = start_fake("httpd_no_pie", "8.2.7", "API20220829,NTS", "running");
	_cleanup_(php_binary_freep) struct php_binary *binary = examine_ok(child.pid);

	/* The program is linked to 4 MiB, the library is loaded high up. */
	assert_true(binary->executor_globals < 0x1000000);
	assert_true(binary->module_registry > 0x1000000);
	end_child(&child);
}

static void a_library_that_only_looks_like_php_is_passed_over(void **state)
{
	struct child child;
	_cleanup_(php_binary_freep) struct php_binary *binary = NULL;

	write_file(in_scratch("decoy.c"), "char executor_globals[4096], sapi_globals[64];\n");
	compile(in_scratch("decoy.c"), in_scratch("libphp8.so"), "-shared", "-fPIC", NULL);
	setenv("LD_PRELOAD", in_scratch("libphp8.so"), 1);
	child = start_php(PHP);
	unsetenv("LD_PRELOAD");
	binary = examine_ok(child.pid);
	expect_php_8_2(binary);
	assert_string_equal(binary->path, PHP);
	end_child(&child);
}

static void a_program_at_fixed_addresses_is_examined_with_its_accessors(void **state)
{
	struct child child = start_fake("fake_no_pie", "7.4.33", "API20190902,NTS", "idle");
	_cleanup_(php_binary_freep) struct php_binary *binary = examine_ok(child.pid);

	assert_string_equal(binary->layout->version, "7.4");
	assert_true(binary->executor_globals < 0x1000000);
	assert_int_equal(binary->layout_source, LAYOUT_FROM_TABLE);
	/* It has an endbr64 before each load. */
	assert_true(binary->mm_heap_pointer && binary->mm_heap_pointer < 0x1000000);
	assert_true(binary->gc_globals && binary->gc_globals < 0x1000000);
	end_child(&child);
}

static void a_static_program_in_a_chroot_is_found(void **state)
{
	struct child child;
	char exports[128];
	_cleanup_(php_binary_freep) struct php_binary *binary = NULL;

	if (geteuid() != 0) {
		print_message("needs root to chroot\n");
		skip();
	}
	assert_int_equal(mkdir(in_scratch("root"), 0755), 0);
	/* All of libc's symbols would be more than a static program's start-up code can relocate. */
	write_file(
		in_scratch("exports"), "{ executor_globals; sapi_globals; core_globals; module_registry; };");
	snprintf(exports, sizeof(exports), "-Wl,--dynamic-list=%s", in_scratch("exports"));
	compile(beside_tests("fake_php.c"), in_scratch("root/php"), "-static-pie", exports, NULL);
	child = start_child(
		in_scratch("root"), (const char *const[]){"/php", "8.4.14", "API20240924,NTS", "idle", NULL});
	binary = examine_ok(child.pid);
	assert_string_equal(binary->layout->version, "8.4");
	end_child(&child);
}

/* Runs @test as nobody, in a process of its own, which must end well. */
static void as_nobody(int (*test)(void))
{
	int status = -1;
	pid_t pid;

	assert_int_equal(chmod(scratch, 0777), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(setgid(NOBODY) == 0 && setuid(NOBODY) == 0 ? test() : 99);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int examine_a_deleted_library(void)
{
	struct child child = start_fake("httpd", "8.2.7", "API20220829,NTS", "running");
	_cleanup_(procmap_freep) struct procmap *maps = NULL;
	struct php_binary *binary = NULL;
	int result = 0, fd;

	if (unlink(in_scratch("libphp.so")) != 0 || procmap_read(child.pid, &maps) != 0)
		result = 1;
	for (size_t i = 0; result == 0 && i < maps->count; i++)
		if (strstr(maps->mappings[i].path, ".so") && maps->mappings[i].deleted &&
			mapped_file_open(child.pid, &maps->mappings[i], &fd) == 0)
			result = 2;
	if (result == 0 && (examine(child.pid, &binary) != 0 || binary->executor_globals == 0 ||
				   strcmp(binary->version, "8.2.7") != 0))
		result = 3;
	end_child(&child);
	return result;
}

/* Without CAP_SYS_ADMIN /proc/PID/map_files is closed, and the name leads nowhere: memory is all there is. */
static void a_deleted_library_is_read_from_memory_by_an_examiner_without_privileges(void **state)
{
	if (geteuid() != 0) {
		print_message("needs root to become nobody\n");
		skip();
	}
	as_nobody(examine_a_deleted_library);
	compile(beside_tests("fake_php.c"), in_scratch("libphp.so"), "-shared", "-fPIC", "-DFAKE_LIBRARY",
		NULL);
}

static int examine_what_is_forbidden(void)
{
	struct php_binary *binary = NULL;

	return examine(getppid(), &binary) == -EACCES && strstr(why, "CAP_SYS_PTRACE") ? 0 : 1;
}

static void a_process_that_may_not_be_read_is_refused_with_the_missing_capability(void **state)
{
	if (geteuid() != 0) {
		print_message("needs root to become nobody\n");
		skip();
	}
	as_nobody(examine_what_is_forbidden);
}

static void a_thread_safe_build_is_refused(void **state)
{
	struct child child = start_fake("fake_zts", "8.3.1", "API20230831,TS", "idle");
	struct child started = start_fake("fake_zts", "8.3.1", "API20230831,TS", "starting");
	struct child disguised = start_fake("fake", "8.3.1", "API20230831,TS", "idle");

	expect_refusal(child.pid, PHP_BINARY_E_ZTS, "PHP 8.3.1 is a thread-safe (ZTS) build");
	expect_refusal(started.pid, PHP_BINARY_E_ZTS, "PHP 8.3.1 is a thread-safe (ZTS) build");
	expect_refusal(disguised.pid, PHP_BINARY_E_ZTS, "PHP 8.3.1 is a thread-safe (ZTS) build");
	end_child(&child);
	end_child(&started);
	end_child(&disguised);
}

static void a_debug_build_is_refused_unless_its_debug_information_is_there(void **state)
{
	struct child without = start_fake("fake", "8.2.7", "API20220829,NTS,debug", "running");
	struct child with = start_fake("fake_g", "8.2.7", "API20220829,NTS,debug", "running");
	_cleanup_(php_binary_freep) struct php_binary *binary = NULL;

	expect_refusal(without.pid, PHP_BINARY_E_DEBUG, "PHP 8.2.7 is a debug build");
	binary = examine_ok(with.pid);
	assert_true(binary->debug);
	end_child(&without);
	end_child(&with);
}

static void debug_information_that_agrees_confirms_the_table(void **state)
{
	struct child child = start_fake("fake_g", "8.2.7", "API20220829,NTS", "running");
	_cleanup_(php_binary_freep) struct php_binary *binary = examine_ok(child.pid);

	assert_int_equal(binary->layout_source, LAYOUT_TABLE_AND_DWARF);
	assert_int_equal(binary->layout->eg_current_execute_data, 488);
	end_child(&child);
}

static void debug_information_that_differs_is_believed(void **state)
{
	struct child child = start_fake("fake_moved", "8.2.7", "API20220829,NTS", "running");
	_cleanup_(php_binary_freep) struct php_binary *binary = examine_ok(child.pid);

	assert_int_equal(binary->layout_source, LAYOUT_FROM_DWARF);
	assert_int_equal(binary->layout->eg_current_execute_data, 496);
	assert_int_equal(binary->layout->fcgi_request_env, 8296);
	end_child(&child);
}

static void versions_without_a_table_are_refused_by_name(void **state)
{
	struct child newer = start_fake("fake", "8.7.0-dev", "API20270101,NTS", "idle");
	struct child older = start_fake("fake", "7.3.33", "API20180731,NTS", "idle");
	struct child five = start_fake("fake_5", "", "", "php5");
	struct child unknown = start_fake("fake", "", "", "php5");

	expect_refusal(newer.pid, PHP_BINARY_E_UNKNOWN_VERSION,
		"PHP 8.7.0-dev is newer than this build knows (7.4 to 8.6)");
	expect_refusal(older.pid, PHP_BINARY_E_UNKNOWN_VERSION,
		"PHP 7.3.33 is older than this build knows (7.4 to 8.6)");
	expect_refusal(five.pid, PHP_BINARY_E_UNKNOWN_VERSION, "PHP 5.6.40 is older than this build knows");
	expect_refusal(unknown.pid, PHP_BINARY_E_UNKNOWN_VERSION, "7.4 to 8.6");
	end_child(&newer);
	end_child(&older);
	end_child(&five);
	end_child(&unknown);
}

static void a_php_that_is_still_starting_is_to_be_tried_again(void **state)
{
	struct child child = start_fake("fake", "", "", "starting");

	expect_refusal(child.pid, PHP_BINARY_E_NOT_STARTED, "try again");
	end_child(&child);
}

static void memory_that_does_not_fit_the_layout_is_refused(void **state)
{
	struct child child = start_fake("fake", "8.2.7", "API20220829,NTS", "broken");
	/* A member more than the table knows, and no debug information to tell. */
	struct child patched = start_fake("fake_patched", "8.2.7", "API20220829,NTS", "running");

	expect_refusal(child.pid, PHP_BINARY_E_SELF_TEST, "null and an error value");
	expect_refusal(patched.pid, PHP_BINARY_E_SELF_TEST, "PHP 8.2.7 does not fit the layout of PHP 8.2");
	end_child(&child);
	end_child(&patched);
}

static void a_process_that_is_not_php_is_refused(void **state)
{
	char self[PATH_MAX] = "";
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	expect_refusal(pid, PHP_BINARY_E_NOT_PHP, self);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void ended_processes_and_kernel_threads_are_esrch(void **state)
{
	siginfo_t info;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	expect_refusal(pid, -ESRCH, "has ended");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	expect_refusal(pid, -ESRCH, "no such process");
}

static void a_sentence_longer_than_its_room_is_cut(void **state)
{
	struct php_binary *binary = NULL;
	char little[16] = "untouched", none = 'x';
	pid_t nobody = 4194305;
	struct memory memory = process_memory(&nobody);

	assert_int_equal(php_binary_examine(nobody, &memory, &binary, little, sizeof(little)), -ESRCH);
	assert_string_equal(little, "process 4194305");
	assert_int_equal(php_binary_examine(nobody, &memory, &binary, &none, 0), -ESRCH);
	assert_int_equal(none, 'x');
	assert_int_equal(php_binary_examine(nobody, &memory, &binary, NULL, 0), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(php_cli_is_examined_whole),
		cmocka_unit_test(a_deleted_php_is_found),
		cmocka_unit_test(a_php_whose_file_was_replaced_is_found),
		cmocka_unit_test(spaces_and_newlines_in_the_path_don_t_matter),
		cmocka_unit_test(a_php_without_section_headers_is_found),
		cmocka_unit_test(an_fpm_master_and_a_worker_that_never_served_are_examined),
		cmocka_unit_test(php_in_a_library_is_found_wherever_the_library_went),
		cmocka_unit_test(a_program_s_copies_of_the_library_s_globals_are_used),
		cmocka_unit_test(a_library_that_only_looks_like_php_is_passed_over),
		cmocka_unit_test(a_program_at_fixed_addresses_is_examined_with_its_accessors),
		cmocka_unit_test(a_static_program_in_a_chroot_is_found),
		cmocka_unit_test(a_deleted_library_is_read_from_memory_by_an_examiner_without_privileges),
		cmocka_unit_test(a_process_that_may_not_be_read_is_refused_with_the_missing_capability),
		cmocka_unit_test(a_thread_safe_build_is_refused),
		cmocka_unit_test(a_debug_build_is_refused_unless_its_debug_information_is_there),
		cmocka_unit_test(debug_information_that_agrees_confirms_the_table),
		cmocka_unit_test(debug_information_that_differs_is_believed),
		cmocka_unit_test(versions_without_a_table_are_refused_by_name),
		cmocka_unit_test(a_php_that_is_still_starting_is_to_be_tried_again),
		cmocka_unit_test(memory_that_does_not_fit_the_layout_is_refused),
		cmocka_unit_test(a_process_that_is_not_php_is_refused),
		cmocka_unit_test(ended_processes_and_kernel_threads_are_esrch),
		cmocka_unit_test(a_sentence_longer_than_its_room_is_cut),
	};

	return cmocka_run_group_tests_name("symbols/php_binary", tests, build_fakes, remove_scratch);
}
