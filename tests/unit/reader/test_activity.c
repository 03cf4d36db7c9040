/* SPDX-License-Identifier: MIT
 *
 * Has it run? Asked of real php processes: one that sleeps, one that computes, one that is gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reader/activity.h"

#define DEADLINE_MS 10000

/* A php child with a standard input that stays empty, which runs @code; waits until that has written a byte.
 */
static pid_t start_php(const char *code)
{
	int pipe_fds[2], input_fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* A test that fails does not come to its end. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || pipe(input_fds) != 0)
			_exit(126);
		dup2(input_fds[0], STDIN_FILENO);
		dup2(pipe_fds[1], STDOUT_FILENO);
		execl("/usr/bin/php8.2", "php8.2", "-n", "-r", code, NULL);
		_exit(127);
	}
	close(pipe_fds[1]);
	assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
	close(pipe_fds[0]);
	return pid;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void pause_ms(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

/* Reads until the process is seen blocked in @number. */
static void wait_until_blocked_in(
	struct activity *activity, long number, struct activity_syscall *ret_syscall)
{
	for (int waited_ms = 0; waited_ms < DEADLINE_MS; waited_ms += 5) {
		assert_int_equal(activity_read_syscall(activity, ret_syscall), 0);
		if (ret_syscall->blocked && ret_syscall->number == number)
			return;
		pause_ms(5);
	}
	fail_msg("not blocked in system call %ld within %d ms", number, DEADLINE_MS);
}

static void sleeping_process_is_blocked_and_its_switch_ins_stand_still(void **state)
{
	pid_t pid = start_php("echo 1; sleep(60);");
	_cleanup_(activity_closep) struct activity *activity = NULL;
	struct activity_syscall syscall;
	struct activity_clocks before, after;

	assert_int_equal(activity_open(pid, &activity), 0);
	assert_true(activity_knows_syscall(activity));
	wait_until_blocked_in(activity, SYS_clock_nanosleep, &syscall);
	assert_true(syscall.stack_pointer > 0x1000);
	assert_true(syscall.program_counter > 0x1000);
	assert_int_equal(activity_read_clocks(activity, &before), 0);
	assert_true(before.run_ns > 0);
	assert_true(before.switch_ins > 0);
	pause_ms(100);
	assert_int_equal(activity_read_clocks(activity, &after), 0);
	assert_int_equal(after.switch_ins, before.switch_ins);
	assert_int_equal(after.run_ns, before.run_ns);
	stop(pid);
}

static void system_calls_arguments_are_its_own(void **state)
{
	pid_t pid = start_php("echo 1; fread(STDIN, 4711); sleep(60);");
	_cleanup_(activity_closep) struct activity *activity = NULL;
	struct activity_syscall syscall;

	assert_int_equal(activity_open(pid, &activity), 0);
	wait_until_blocked_in(activity, SYS_read, &syscall);
	assert_int_equal(syscall.arguments[0], STDIN_FILENO);
	stop(pid);
}

static void computing_process_runs_and_its_clocks_rise(void **state)
{
	pid_t pid = start_php("echo 1; while (true);");
	_cleanup_(activity_closep) struct activity *activity = NULL;
	struct activity_clocks before, after;
	struct activity_syscall syscall;
	int blocked = 0;

	assert_int_equal(activity_open(pid, &activity), 0);
	assert_int_equal(activity_read_clocks(activity, &before), 0);
	for (int i = 0; i < 20; i++) {
		pause_ms(5);
		assert_int_equal(activity_read_syscall(activity, &syscall), 0);
		blocked += syscall.blocked;
	}
	/* On a busy machine it may be queued; that is not blocked either. A page fault may be. */
	assert_true(blocked <= 2);
	after = before;
	for (int waited_ms = 0; after.run_ns <= before.run_ns && waited_ms < DEADLINE_MS; waited_ms += 5) {
		pause_ms(5);
		assert_int_equal(activity_read_clocks(activity, &after), 0);
	}
	assert_true(after.run_ns > before.run_ns);
	stop(pid);
}

static cpu_set_t allowed;

/* The @nth of the CPUs that this test may use; the calling thread, or @pid, is bound to it. */
static void bind(pid_t pid, int nth)
{
	cpu_set_t only;

	CPU_ZERO(&only);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && nth-- == 0)
			CPU_SET(cpu, &only);
	assert_int_equal(sched_setaffinity(pid, sizeof(only), &only), 0);
}

static int note_allowed(void **state)
{
	return sched_getaffinity(0, sizeof(allowed), &allowed);
}

static int unbind(void **state)
{
	return sched_setaffinity(0, sizeof(allowed), &allowed);
}

/* 1: it is on a CPU, 0: it is not, -1: it came to one meanwhile. */
static int is_on_cpu(struct activity *activity)
{
	struct activity_schedule schedule;
	struct activity_clocks before, after;

	assert_int_equal(activity_read_clocks(activity, &before), 0);
	assert_int_equal(activity_read_schedule(activity, &schedule), 0);
	assert_int_equal(activity_read_clocks(activity, &after), 0);
	return before.switch_ins == after.switch_ins ? before.switch_ins > schedule.switch_outs : -1;
}

static bool has_schedule(void)
{
	return access("/proc/self/sched", R_OK) == 0;
}

static void of_two_that_share_a_cpu_one_is_on_it(void **state)
{
	_cleanup_(activity_closep) struct activity *one = NULL, *other = NULL;
	pid_t pids[2];
	int on[2] = {0}, both = 0;

	if (CPU_COUNT(&allowed) < 2 || !has_schedule()) {
		print_message("SKIPPED: needs two CPUs and /proc/self/sched\n");
		skip();
	}
	for (int i = 0; i < 2; i++) {
		pids[i] = start_php("echo 1; while (true);");
		bind(pids[i], 0);
	}
	bind(0, 1);
	assert_int_equal(activity_open(pids[0], &one), 0);
	assert_int_equal(activity_open(pids[1], &other), 0);
	for (int i = 0; i < 500; i++) {
		int first, second;

		pause_ms(1);
		first = is_on_cpu(one);
		second = is_on_cpu(other);
		on[0] += first == 1;
		on[1] += second == 1;
		both += first == 1 && second == 1;
	}
	/* A look at both takes some microseconds of a turn of milliseconds; others may want that CPU too. */
	assert_in_range(both, 0, 10);
	assert_in_range(on[0], 25, 475);
	assert_in_range(on[1], 25, 475);
	stop(pids[0]);
	stop(pids[1]);
}

static void who_is_driven_off_by_the_thread_that_looks_left_when_that_came(void **state)
{
	_cleanup_(activity_closep) struct activity *activity = NULL, *own = NULL;
	struct activity_schedule schedule, own_schedule;
	pid_t pid;
	int together = 0;

	if (!has_schedule()) {
		print_message("SKIPPED: needs /proc/self/sched\n");
		skip();
	}
	pid = start_php("echo 1; while (true);");
	bind(pid, 0);
	bind(0, 0);
	assert_int_equal(activity_open(pid, &activity), 0);
	assert_int_equal(activity_open(gettid(), &own), 0);
	/* Of those times at which nobody else had the CPU before; on a busy machine they are few. */
	for (int i = 0; i < 5000 && together < 20; i++) {
		pause_ms(1);
		assert_int_equal(activity_read_schedule(own, &own_schedule), 0);
		assert_int_equal(activity_read_schedule(activity, &schedule), 0);
		together += own_schedule.accounted_ns == schedule.accounted_ns;
	}
	assert_int_equal(together, 20);
	stop(pid);
}

static void dead_process_is_gone_even_if_its_descriptors_are_kept(void **state)
{
	pid_t pid = start_php("echo 1; sleep(60);");
	_cleanup_(activity_closep) struct activity *activity = NULL;
	struct activity_syscall syscall;
	struct activity_clocks clocks;

	assert_int_equal(activity_open(pid, &activity), 0);
	stop(pid);
	assert_int_equal(activity_read_clocks(activity, &clocks), -ESRCH);
	assert_int_equal(activity_read_syscall(activity, &syscall), -ESRCH);
}

static void opening_what_is_no_process_is_esrch(void **state)
{
	pid_t pid = start_php("echo 1; sleep(60);");
	struct activity *activity = (struct activity *)state;

	stop(pid);
	assert_int_equal(activity_open(pid, &activity), -ESRCH);
	assert_ptr_equal(activity, state); /* untouched */
}

static void system_call_of_anothers_process_is_not_known_without_the_right_to_trace_it(void **state)
{
	pid_t php, child;
	int status;

	if (geteuid() != 0) {
		print_message("SKIPPED: needs root, to give it up\n");
		skip();
	}
	php = start_php("echo 1; sleep(60);");
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct activity_syscall syscall;
		struct activity *activity;
		struct activity_clocks clocks;

		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(1);
		if (activity_open(php, &activity) != 0)
			_exit(2);
		if (activity_knows_syscall(activity))
			_exit(3);
		if (activity_read_syscall(activity, &syscall) != -EOPNOTSUPP)
			_exit(4);
		if (activity_read_clocks(activity, &clocks) != 0)
			_exit(5);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	stop(php);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void each_question_is_one_read(void **state)
{
	_cleanup_(activity_closep) struct activity *activity = NULL;
	struct activity_syscall syscall;
	struct activity_clocks clocks;
	uint64_t reads;

	assert_int_equal(activity_open(getpid(), &activity), 0);
	reads = activity_reads();
	for (int i = 0; i < 10; i++)
		assert_int_equal(activity_read_clocks(activity, &clocks), 0);
	assert_int_equal(activity_reads(), reads + 10);
	assert_int_equal(activity_read_syscall(activity, &syscall), 0);
	assert_int_equal(activity_reads(), reads + 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sleeping_process_is_blocked_and_its_switch_ins_stand_still),
		cmocka_unit_test(system_calls_arguments_are_its_own),
		cmocka_unit_test(computing_process_runs_and_its_clocks_rise),
		cmocka_unit_test_setup_teardown(of_two_that_share_a_cpu_one_is_on_it, note_allowed, unbind),
		cmocka_unit_test_setup_teardown(
			who_is_driven_off_by_the_thread_that_looks_left_when_that_came, note_allowed, unbind),
		cmocka_unit_test(dead_process_is_gone_even_if_its_descriptors_are_kept),
		cmocka_unit_test(opening_what_is_no_process_is_esrch),
		cmocka_unit_test(system_call_of_anothers_process_is_not_known_without_the_right_to_trace_it),
		cmocka_unit_test(each_question_is_one_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
