/* SPDX-License-Identifier: MIT
 *
 * Discovery on processes whose titles and lives the test holds in its hand (fake_fpm.h), and on a real
 * php-fpm with two pools. Other masters on the machine are none of its business: it looks for its own. The
 * fakes run a copy of this binary called "php-fake"; "harmless" is the same file by a name that no PHP has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "daemon/sampling/discovery.h"
#include "daemon/sampling/fpm_master.h"
#include "daemon/sampling/proc_read.h"
#include "fake_fpm.h"

#define DEADLINE_NS 10000000000ull
#define POLL_US 2000
#define PHP_FPM "/usr/sbin/php-fpm8.2"

static char folder[64] = "/tmp/test-discovery-XXXXXX";
static char php_fake[128], harmless[128], php_spaced[128];

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static struct discovery *discovery_of(const struct selector *selectors, size_t count)
{
	struct discovery *discovery = NULL;

	assert_int_equal(discovery_new(&discovery), 0);
	assert_int_equal(discovery_select(discovery, selectors, count), 0);
	return discovery;
}

static size_t scan(struct discovery *discovery, unsigned full_scan_every, const struct discovered **found)
{
	size_t count = 0;

	assert_int_equal(discovery_scan(discovery, full_scan_every, found, &count), 0);
	return count;
}

static const struct discovered *find_in(const struct discovered *found, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++) {
		if (found[i].pid == pid)
			return &found[i];
	}
	return NULL;
}

/* Is @pid found by one scan that only follows the masters known? */
static bool sees(struct discovery *discovery, pid_t pid)
{
	const struct discovered *found;
	size_t count = scan(discovery, 1000, &found);

	return find_in(found, count, pid) != NULL;
}

static size_t descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static struct selector fpm_pools(const char *pattern)
{
	struct selector selector = {.kind = SELECT_FPM_POOL};

	snprintf(selector.pattern, sizeof(selector.pattern), "%s", pattern);
	return selector;
}

static void a_process_is_identified_whatever_it_calls_itself(void **state)
{
	struct proc_identity before, after;

	assert_int_equal(proc_identify(getpid(), &before), 0);
	assert_int_equal(before.pid, getpid());
	assert_int_equal(before.parent_pid, getppid());
	assert_int_equal(before.uid, geteuid());
	assert_true(before.start_time_ticks > 0);
	prctl(PR_SET_NAME, ") Z 1 (\n) 2 3");
	assert_int_equal(proc_identify(getpid(), &after), 0);
	prctl(PR_SET_NAME, "test_discovery");
	assert_memory_equal(&before, &after, sizeof(before));
}

static void a_dead_process_is_gone_even_while_nobody_has_reaped_it(void **state)
{
	struct discovered process;
	pid_t pid = fork();
	siginfo_t info;

	if (pid == 0)
		_exit(0);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	assert_int_equal(discovery_identify(pid, &process), -ESRCH);
	waitpid(pid, NULL, 0);
	assert_int_equal(discovery_identify(pid, &process), -ESRCH);
	assert_int_equal(discovery_identify(0, &process), -ESRCH);
	assert_int_equal(discovery_identify(-1, &process), -ESRCH);
}

static void the_effective_uid_is_what_counts(void **state)
{
	struct discovered process;
	int ready[2];
	char byte;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		if (setresuid(0, 4711, 0) < 0 || write(ready[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(discovery_identify(pid, &process), 0);
	assert_int_equal(process.uid, 4711);
	assert_int_equal(process.master_pid, getpid());
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}

static void titles_are_read_as_fpm_writes_them_and_where_they_were_cut(void **state)
{
	const char *pool = NULL;

	assert_int_equal(fpm_title_parse("php-fpm: master process (/etc/php.conf)", &pool), FPM_TITLE_MASTER);
	assert_int_equal(fpm_title_parse("php-fpm: ma", &pool), FPM_TITLE_MASTER);
	assert_int_equal(fpm_title_parse("php-fpm: m", &pool), FPM_TITLE_OTHER);
	assert_int_equal(fpm_title_parse("php-fpm: ", &pool), FPM_TITLE_OTHER);
	assert_int_equal(fpm_title_parse("php-fpm", &pool), FPM_TITLE_OTHER);
	assert_int_equal(fpm_title_parse("", &pool), FPM_TITLE_OTHER);
	assert_int_equal(fpm_title_parse("php-fpm: mattress", &pool), FPM_TITLE_OTHER);
	assert_int_equal(fpm_title_parse(" php-fpm: pool www", &pool), FPM_TITLE_OTHER);
	assert_null(pool);
	assert_int_equal(fpm_title_parse("php-fpm: pool www", &pool), FPM_TITLE_WORKER);
	assert_string_equal(pool, "www");
	assert_int_equal(fpm_title_parse("php-fpm: pool a b (c)", &pool), FPM_TITLE_WORKER);
	assert_string_equal(pool, "a b (c)");
	assert_int_equal(fpm_title_parse("php-fpm: po", &pool), FPM_TITLE_WORKER);
	assert_string_equal(pool, "");
}

static void an_executable_keeps_its_path_when_its_file_is_deleted(void **state)
{
	char path[256], copy[160];
	struct fake_fpm fake;

	snprintf(copy, sizeof(copy), "%s/php to delete", folder);
	assert_int_equal(link(php_fake, copy), 0);
	fake = fake_fpm_start(copy);
	assert_int_equal(proc_read_executable(fake.pid, path, sizeof(path)), 0);
	assert_string_equal(path, copy);
	unlink(copy);
	assert_int_equal(proc_read_executable(fake.pid, path, sizeof(path)), 0);
	assert_string_equal(path, copy);
	assert_int_equal(proc_read_executable(fake.pid, path, strlen(copy)), -ENAMETOOLONG);
	fake_fpm_stop(&fake);
}

static void workers_are_found_by_their_pools_name(void **state)
{
	struct selector selectors[] = {fpm_pools("shop*"), fpm_pools("api")};
	struct fake_fpm fake = fake_fpm_start(php_fake);
	pid_t shop = fake_fpm_fork(&fake, "shop-eu"), api = fake_fpm_fork(&fake, "api");
	pid_t other = fake_fpm_fork(&fake, "apis");
	struct discovery *discovery;
	const struct discovered *found;
	size_t count;

	snprintf(selectors[1].pool, sizeof(selectors[1].pool), "services");
	selectors[1].period_ns = 1000000;
	discovery = discovery_of(selectors, 2);
	count = scan(discovery, 1000, &found);
	assert_null(find_in(found, count, other));
	assert_string_equal(find_in(found, count, shop)->pool, "shop-eu");
	assert_int_equal(find_in(found, count, shop)->period_ns, 0);
	assert_string_equal(find_in(found, count, api)->pool, "services");
	assert_int_equal(find_in(found, count, api)->period_ns, 1000000);
	assert_int_equal(find_in(found, count, api)->master_pid, fake.pid);
	for (size_t i = 1; i < count; i++)
		assert_true(found[i - 1].pid < found[i].pid);
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

static void the_first_selector_that_selects_a_process_names_its_group(void **state)
{
	struct fake_fpm fake = fake_fpm_start(php_fake);
	pid_t worker = fake_fpm_fork(&fake, "www");
	struct selector selectors[] = {
		{.kind = SELECT_EXECUTABLE, .pool = "first"},
		fpm_pools("*"),
		{.kind = SELECT_PID, .pid = worker, .pool = "last"},
	};
	struct discovery *discovery;
	const struct discovered *found;
	size_t count;

	snprintf(selectors[0].pattern, sizeof(selectors[0].pattern), "%s/*", folder);
	discovery = discovery_of(selectors, 3);
	count = scan(discovery, 1, &found);
	assert_string_equal(find_in(found, count, worker)->pool, "first");
	assert_int_equal(discovery_select(discovery, selectors + 1, 2), 0);
	count = scan(discovery, 1, &found);
	assert_string_equal(find_in(found, count, worker)->pool, "www");
	assert_int_equal(discovery_select(discovery, selectors + 2, 1), 0);
	count = scan(discovery, 1, &found);
	assert_int_equal(count, 1);
	assert_string_equal(found[0].pool, "last");
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

static void a_title_alone_makes_no_master_but_the_operators_word_does(void **state)
{
	struct fake_fpm fake = fake_fpm_start(harmless);
	pid_t worker = fake_fpm_fork(&fake, "www");
	struct selector by_pattern = fpm_pools("*");
	struct selector by_pid = {.kind = SELECT_FPM_MASTER, .pid = fake.pid};
	struct discovery *discovery = discovery_of(&by_pattern, 1);
	const struct discovered *found;
	struct discovered process;
	size_t count;

	count = scan(discovery, 1, &found);
	assert_null(find_in(found, count, worker));
	assert_int_equal(discovery_find(discovery, worker, &process), -ESRCH);
	assert_int_equal(discovery_select(discovery, &by_pid, 1), 0);
	count = scan(discovery, 1, &found);
	assert_int_equal(count, 1);
	assert_int_equal(found[0].pid, worker);
	assert_string_equal(found[0].pool, "www");
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

static void a_worker_that_still_has_its_masters_title_is_waited_for(void **state)
{
	struct selector all = fpm_pools("*");
	struct fake_fpm fake = fake_fpm_start(php_fake);
	pid_t newborn = fake_fpm_fork_newborn(&fake);
	struct discovery *discovery = discovery_of(&all, 1);
	const struct discovered *found;
	struct discovered process;
	uint64_t deadline = now_ns() + DEADLINE_NS;
	size_t count;

	count = scan(discovery, 1, &found);
	assert_null(find_in(found, count, newborn));
	assert_false(sees(discovery, newborn));
	assert_int_equal(discovery_find(discovery, newborn, &process), -ESRCH);
	fake_fpm_name_newborn(&fake, newborn);
	while (!sees(discovery, newborn) && now_ns() < deadline)
		usleep(POLL_US);
	count = scan(discovery, 1000, &found);
	assert_non_null(find_in(found, count, newborn));
	assert_string_equal(find_in(found, count, newborn)->pool, "newborn");
	assert_int_equal(find_in(found, count, newborn)->master_pid, fake.pid);
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

static void workers_that_die_and_come_are_followed_without_looking_through_proc(void **state)
{
	struct selector all = fpm_pools("*");
	struct fake_fpm fake = fake_fpm_start(php_fake);
	pid_t first = fake_fpm_fork(&fake, "www"), second = fake_fpm_fork(&fake, "www"), third;
	struct discovery *discovery = discovery_of(&all, 1);
	const struct discovered *found;

	scan(discovery, 1000, &found);
	assert_true(sees(discovery, first));
	fake_fpm_kill_child(&fake, first);
	third = fake_fpm_fork(&fake, "www");
	assert_false(sees(discovery, first));
	assert_true(sees(discovery, second));
	assert_true(sees(discovery, third));
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

static void all_of_700_workers_are_seen(void **state)
{
	struct selector selector = {.kind = SELECT_FPM_MASTER};
	struct fake_fpm fake = fake_fpm_start(php_fake);
	struct discovery *discovery;
	const struct discovered *found;

	/* Their list is longer than the page that one read gives. */
	for (int i = 0; i < 700; i++)
		fake_fpm_fork(&fake, "www");
	selector.pid = fake.pid;
	discovery = discovery_of(&selector, 1);
	assert_int_equal(scan(discovery, 1000, &found), 700);
	assert_int_equal(scan(discovery, 1000, &found), 700);
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

/* A process with the number @pid, that has FPM's title of @pool. */
static pid_t fork_with_pid(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&pid, .set_tid_size = 1};
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	return child;
}

static void a_reused_pid_is_not_taken_for_the_process_that_was_named(void **state)
{
	struct fake_fpm fake = fake_fpm_start(php_fake);
	pid_t worker = fake_fpm_fork(&fake, "www");
	struct selector selector = {.kind = SELECT_PID, .pid = worker};
	struct discovery *discovery = discovery_of(&selector, 1);
	uint64_t born = now_ns();
	pid_t other;

	assert_true(sees(discovery, worker));
	fake_fpm_kill_child(&fake, worker);
	/* Start times have a resolution of 10 ms. */
	while (now_ns() - born < 30000000)
		usleep(POLL_US);
	other = fork_with_pid(worker);
	if (other < 0) {
		print_message("clone3(set_tid): %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(other, worker);
	assert_false(sees(discovery, worker));
	/* Nor after the same selector was given again among others. */
	assert_int_equal(discovery_select(discovery, &selector, 1), 0);
	assert_false(sees(discovery, worker));
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

static void a_named_pid_means_the_process_or_a_masters_workers(void **state)
{
	struct fake_fpm fake = fake_fpm_start(php_fake);
	pid_t one = fake_fpm_fork(&fake, "www"), two = fake_fpm_fork(&fake, "www");
	struct selector worker = {.kind = SELECT_PID, .pid = one},
			master = {.kind = SELECT_PID, .pid = fake.pid};
	struct selector self = {.kind = SELECT_PID, .pid = getpid()};
	struct discovery *discovery = discovery_of(&worker, 1);
	const struct discovered *found;

	assert_int_equal(scan(discovery, 1000, &found), 1);
	assert_int_equal(found[0].pid, one);
	assert_string_equal(found[0].pool, "www");
	assert_int_equal(discovery_select(discovery, &master, 1), 0);
	assert_int_equal(scan(discovery, 1000, &found), 2);
	assert_true(sees(discovery, two));
	assert_int_equal(discovery_select(discovery, &self, 1), 0);
	assert_int_equal(scan(discovery, 1000, &found), 1);
	assert_int_equal(found[0].pid, getpid());
	assert_string_equal(found[0].pool, "test_discovery");
	assert_int_equal(found[0].master_pid, 0);
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void a_pid_file_is_read_again_when_its_master_is_gone(void **state)
{
	struct selector selector = {.kind = SELECT_PID_FILE, .pool = "filed"};
	struct fake_fpm first = fake_fpm_start(php_fake), second = fake_fpm_start(php_fake);
	pid_t old_worker = fake_fpm_fork(&first, "www"), new_worker = fake_fpm_fork(&second, "www");
	struct discovery *discovery;
	const struct discovered *found;
	char text[32];

	snprintf(selector.pattern, sizeof(selector.pattern), "%s/fpm.pid", folder);
	discovery = discovery_of(&selector, 1);
	assert_int_equal(scan(discovery, 1000, &found), 0);
	write_file(selector.pattern, "not a number\n");
	assert_int_equal(scan(discovery, 1000, &found), 0);
	snprintf(text, sizeof(text), "%d\n", first.pid);
	write_file(selector.pattern, text);
	scan(discovery, 1, &found);
	assert_true(sees(discovery, old_worker));
	snprintf(text, sizeof(text), "%d", second.pid);
	write_file(selector.pattern, text);
	assert_true(sees(discovery, old_worker));
	fake_fpm_stop(&first);
	assert_true(sees(discovery, new_worker));
	assert_int_equal(scan(discovery, 1000, &found), 1);
	assert_string_equal(found[0].pool, "filed");
	discovery_free(discovery);
	fake_fpm_stop(&second);
}

static void a_pid_file_left_behind_selects_no_stranger(void **state)
{
	struct selector selector = {.kind = SELECT_PID_FILE};
	struct discovery *discovery;
	const struct discovered *found;
	char text[32];

	snprintf(selector.pattern, sizeof(selector.pattern), "%s/stale.pid", folder);
	snprintf(text, sizeof(text), "%d\n", getpid());
	write_file(selector.pattern, text);
	discovery = discovery_of(&selector, 1);
	assert_int_equal(scan(discovery, 1, &found), 0);
	discovery_free(discovery);
}

static void a_master_that_executes_itself_anew_is_still_followed(void **state)
{
	struct selector selector = {.kind = SELECT_FPM_MASTER};
	struct fake_fpm fake = fake_fpm_start(php_fake);
	pid_t before = fake_fpm_fork(&fake, "www"), after;
	struct discovery *discovery;

	selector.pid = fake.pid;
	discovery = discovery_of(&selector, 1);
	assert_true(sees(discovery, before));
	fake_fpm_kill_child(&fake, before);
	fake_fpm_reexecute(&fake);
	after = fake_fpm_fork(&fake, "www");
	assert_true(sees(discovery, after));
	assert_false(sees(discovery, before));
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

static void a_program_is_found_by_its_executables_path(void **state)
{
	struct selector selector = {.kind = SELECT_EXECUTABLE};
	struct fake_fpm fake = fake_fpm_start(php_spaced);
	pid_t worker = fake_fpm_fork(&fake, "www");
	pid_t program = fork();
	struct discovery *discovery;
	const struct discovered *found;
	uint64_t deadline = now_ns() + DEADLINE_NS;
	size_t count;

	if (program == 0) {
		execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	/* Workers of a master count, the master itself executes no PHP and does not. */
	snprintf(selector.pattern, sizeof(selector.pattern), "%s/* spaced", folder);
	discovery = discovery_of(&selector, 1);
	count = scan(discovery, 1, &found);
	assert_int_equal(count, 1);
	assert_int_equal(found[0].pid, worker);
	snprintf(selector.pattern, sizeof(selector.pattern), "*/sleep");
	assert_int_equal(discovery_select(discovery, &selector, 1), 0);
	do {
		count = scan(discovery, 1, &found);
	} while (!find_in(found, count, program) && now_ns() < deadline);
	assert_non_null(find_in(found, count, program));
	assert_string_equal(find_in(found, count, program)->pool, "sleep");
	kill(program, SIGKILL);
	waitpid(program, NULL, 0);
	assert_false(sees(discovery, program));
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

static void a_worker_that_asks_is_found_before_any_scan(void **state)
{
	struct selector selector = fpm_pools("w*");
	struct fake_fpm fake = fake_fpm_start(php_fake);
	pid_t worker = fake_fpm_fork(&fake, "www"), other = fake_fpm_fork(&fake, "api");
	struct discovery *discovery = discovery_of(&selector, 1);
	struct discovered process;

	assert_int_equal(discovery_find(discovery, worker, &process), 0);
	assert_int_equal(process.pid, worker);
	assert_int_equal(process.master_pid, fake.pid);
	assert_string_equal(process.pool, "www");
	assert_int_equal(discovery_find(discovery, other, &process), -ESRCH);
	assert_int_equal(discovery_find(discovery, fake.pid, &process), -ESRCH);
	assert_int_equal(discovery_find(discovery, getpid(), &process), -ESRCH);
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

static void names_that_processes_give_themselves_are_made_printable(void **state)
{
	struct selector all = fpm_pools("*");
	struct fake_fpm fake = fake_fpm_start(php_fake);
	pid_t worker = fake_fpm_fork(&fake, "\x1b[31mred\xff");
	struct discovery *discovery = discovery_of(&all, 1);
	const struct discovered *found;
	size_t count = scan(discovery, 1, &found);

	assert_string_equal(find_in(found, count, worker)->pool, "?[31mred?");
	discovery_free(discovery);
	fake_fpm_stop(&fake);
}

/* Masters of others, which come and go on this machine meanwhile, have descriptors too. */
static void descriptors_do_not_leak_over_generations_of_masters(void **state)
{
	enum { GENERATIONS = 40, OTHERS_AT_MOST = 20 };
	struct selector all = fpm_pools("*");
	struct discovery *discovery = discovery_of(&all, 1);
	const struct discovered *found;
	size_t before;

	scan(discovery, 1, &found);
	before = descriptors();
	for (int i = 0; i < GENERATIONS; i++) {
		struct fake_fpm fake = fake_fpm_start(php_fake);
		pid_t worker = fake_fpm_fork(&fake, "www");

		scan(discovery, 1, &found);
		assert_true(sees(discovery, worker));
		fake_fpm_stop(&fake);
		assert_false(sees(discovery, worker));
	}
	assert_true(descriptors() <= before + OTHERS_AT_MOST);
	discovery_free(discovery);
}

static pid_t start_php_fpm(void)
{
	char path[160], text[1024];
	pid_t pid;

	snprintf(path, sizeof(path), "%s/fpm.conf", folder);
	snprintf(text, sizeof(text),
		"[global]\nerror_log=%1$s/fpm.log\n"
		"[blue]\nuser=www-data\nlisten=%1$s/blue.sock\npm=static\npm.max_children=2\n"
		"[green]\nuser=www-data\nlisten=%1$s/green.sock\npm=static\npm.max_children=3\n",
		folder);
	write_file(path, text);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(PHP_FPM, PHP_FPM, "-F", "-y", path, NULL);
		_exit(1);
	}
	return pid;
}

/* Waits for @blue and @green workers of @master in their pools; returns one blue worker that isn't @not. */
static pid_t wait_for_workers(
	struct discovery *discovery, pid_t master, size_t blue, size_t green, pid_t not )
{
	uint64_t deadline = now_ns() + DEADLINE_NS;
	const struct passwd *www_data = getpwnam("www-data");

	while (now_ns() < deadline) {
		const struct discovered *found;
		size_t count = scan(discovery, 10, &found), blues = 0, greens = 0;
		pid_t one = 0;

		for (size_t i = 0; i < count; i++) {
			if (found[i].master_pid != master || found[i].pid == not )
				continue;
			assert_int_equal(found[i].uid, www_data->pw_uid);
			blues += strcmp(found[i].pool, "blue") == 0;
			greens += strcmp(found[i].pool, "green") == 0;
			if (strcmp(found[i].pool, "blue") == 0)
				one = found[i].pid;
		}
		if (blues == blue && greens == green)
			return one ? one : -1;
		usleep(POLL_US);
	}
	return 0;
}

static void a_real_php_fpm_with_two_pools_is_followed_through_kill_reload_and_end(void **state)
{
	struct selector all = fpm_pools("*");
	struct discovery *discovery;
	pid_t master, blue, after_reload;

	if (access(PHP_FPM, X_OK) < 0 || geteuid() != 0) {
		print_message("needs root and " PHP_FPM "\n");
		skip();
	}
	master = start_php_fpm();
	discovery = discovery_of(&all, 1);
	blue = wait_for_workers(discovery, master, 2, 3, 0);
	assert_true(blue > 0);
	kill(blue, SIGKILL);
	assert_true(wait_for_workers(discovery, master, 2, 3, blue) > 0);
	blue = wait_for_workers(discovery, master, 2, 3, 0);
	kill(master, SIGUSR2);
	/* The old workers end, then the master executes itself: the last of them is gone when others have
	 * taken all places. */
	do {
		after_reload = wait_for_workers(discovery, master, 2, 3, 0);
		assert_true(after_reload > 0);
	} while (sees(discovery, blue));
	kill(master, SIGTERM);
	waitpid(master, NULL, 0);
	assert_int_equal(wait_for_workers(discovery, master, 0, 0, 0), -1);
	discovery_free(discovery);
}

static int copy_self(void **state)
{
	char command[1024];

	if (!mkdtemp(folder))
		return -1;
	chmod(folder, 0755);
	snprintf(php_fake, sizeof(php_fake), "%s/php-fake", folder);
	snprintf(harmless, sizeof(harmless), "%s/harmless", folder);
	snprintf(php_spaced, sizeof(php_spaced), "%s/php fake spaced", folder);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s", getpid(), php_fake);
	if (system(command) != 0)
		return -1;
	/* Copies, not links: /proc/PID/exe of a hard link has the name it was started by, but one of them is
	 * deleted. */
	snprintf(
		command, sizeof(command), "cp %s %s && cp %s '%s'", php_fake, harmless, php_fake, php_spaced);
	return system(command) != 0;
}

static int remove_copies(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command) != 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_is_identified_whatever_it_calls_itself),
		cmocka_unit_test(a_dead_process_is_gone_even_while_nobody_has_reaped_it),
		cmocka_unit_test(the_effective_uid_is_what_counts),
		cmocka_unit_test(titles_are_read_as_fpm_writes_them_and_where_they_were_cut),
		cmocka_unit_test(an_executable_keeps_its_path_when_its_file_is_deleted),
		cmocka_unit_test(workers_are_found_by_their_pools_name),
		cmocka_unit_test(the_first_selector_that_selects_a_process_names_its_group),
		cmocka_unit_test(a_title_alone_makes_no_master_but_the_operators_word_does),
		cmocka_unit_test(a_worker_that_still_has_its_masters_title_is_waited_for),
		cmocka_unit_test(workers_that_die_and_come_are_followed_without_looking_through_proc),
		cmocka_unit_test(all_of_700_workers_are_seen),
		cmocka_unit_test(a_reused_pid_is_not_taken_for_the_process_that_was_named),
		cmocka_unit_test(a_named_pid_means_the_process_or_a_masters_workers),
		cmocka_unit_test(a_pid_file_is_read_again_when_its_master_is_gone),
		cmocka_unit_test(a_pid_file_left_behind_selects_no_stranger),
		cmocka_unit_test(a_master_that_executes_itself_anew_is_still_followed),
		cmocka_unit_test(a_program_is_found_by_its_executables_path),
		cmocka_unit_test(a_worker_that_asks_is_found_before_any_scan),
		cmocka_unit_test(names_that_processes_give_themselves_are_made_printable),
		cmocka_unit_test(descriptors_do_not_leak_over_generations_of_masters),
		cmocka_unit_test(a_real_php_fpm_with_two_pools_is_followed_through_kill_reload_and_end),
	};

	if (argc > 1 && strcmp(argv[1], FAKE_FPM_ROLE) == 0)
		return fake_fpm_main(argc, argv);
	return cmocka_run_group_tests(tests, copy_self, remove_copies);
}
