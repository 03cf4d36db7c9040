/* SPDX-License-Identifier: MIT
 *
 * Processes that are stopped and let go again must not be able to tell, but for the time: signals, group
 * stops, system calls, their ends. The processes are real ones; what they do is seen through memory shared
 * with them.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "reader/hold.h"

#define HOLDS 10000
#define DEADLINE_S 20

/* What a process shows of itself. */
struct shown {
	_Atomic uint64_t steps;
	_Atomic uint64_t signals, values; /* of SIGRTMIN: how many, and the sum of their numbers */
	_Atomic uint64_t plain;           /* of SIGUSR1 */
	_Atomic uint64_t sent, sent_values, sent_plain;
	_Atomic bool enough, holding;
	_Atomic int error; /* of the system call it is about; -1: has not returned */
};

static struct shown *shown;

static int set_up(void **state)
{
	shown = mmap(NULL, sizeof(*shown), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shown, MAP_FAILED);
	shown->error = -1;
	return 0;
}

static int tear_down(void **state)
{
	return munmap(shown, sizeof(*shown));
}

/* ---- processes ---- */

static void count_signal(int signal, siginfo_t *info, void *context)
{
	if (signal == SIGUSR1) {
		shown->plain++;
		return;
	}
	shown->signals++;
	shown->values += (uint64_t)info->si_value.sival_int;
}

static void count_signals(void)
{
	struct sigaction action = {.sa_sigaction = count_signal, .sa_flags = SA_SIGINFO | SA_RESTART};

	sigaction(SIGRTMIN, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
}

/* Counts its steps, and the signals it gets. */
static void step(void)
{
	count_signals();
	for (;;)
		shown->steps++;
}

static pid_t run(void (*body)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body();
		_exit(0);
	}
	return pid;
}

static int end(pid_t pid)
{
	int status = -1;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	return status;
}

/* ---- waiting ---- */

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

#define wait_until(condition)                                                            \
	do {                                                                             \
		time_t deadline = time(NULL) + DEADLINE_S;                               \
		while (!(condition)) {                                                   \
			if (time(NULL) > deadline)                                       \
				fail_msg("not within %d s: %s", DEADLINE_S, #condition); \
			sleep_ms(1);                                                     \
		}                                                                        \
	} while (0)

static bool goes_on(void)
{
	uint64_t before = shown->steps;

	wait_until(shown->steps > before + 1000);
	return true;
}

/* Field 3 of /proc/PID/stat. */
static char state_of(pid_t pid)
{
	char path[64], text[512] = "", *name_end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return '-';
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	name_end = strrchr(text, ')');
	if (!name_end || !name_end[1])
		return '-';
	return name_end[2];
}

/* A busy machine may take longer to stop a process than the patience of one call. */
static int take(struct hold *hold)
{
	int r;

	do
		r = hold_take(hold);
	while (r == HOLD_E_LATE);
	return r;
}

/* ---- tests ---- */

static void a_held_process_stands_still_until_it_is_released(void **state)
{
	pid_t pid = run(step);
	struct hold hold = {.pid = pid};
	uint64_t steps;

	goes_on();
	assert_int_equal(take(&hold), 0);
	assert_true(hold_is_open(&hold));
	steps = shown->steps;
	sleep_ms(20);
	assert_int_equal(shown->steps, steps);
	hold_release(&hold);
	assert_false(hold_is_open(&hold));
	assert_int_equal(hold_check(pid, NULL, 0), 0);
	goes_on();
	end(pid);
}

/* Sends both kinds by turns, one of them numbered, until it is told to end; shows what it sent. */
static pid_t start_sender(pid_t pid)
{
	pid_t sender;

	goes_on(); /* it handles them by now */
	sender = fork();
	assert_true(sender >= 0);
	if (sender == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (int i = 1; !shown->enough; i++) {
			while (sigqueue(pid, SIGRTMIN, (union sigval){.sival_int = i}) < 0) {
				if (errno != EAGAIN) /* its queue is full */
					_exit(1);
				sleep_ms(1);
			}
			shown->sent++;
			shown->sent_values += (uint64_t)i;
			kill(pid, SIGUSR1);
			shown->sent_plain++;
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
		}
		_exit(0);
	}
	return sender;
}

/* Everything that was sent has arrived, and nothing else. */
static void compare_signals(void)
{
	wait_until(shown->signals >= shown->sent);
	goes_on();
	assert_int_equal(shown->signals, shown->sent);
	assert_int_equal(shown->values, shown->sent_values);
}

static void ten_thousand_holds_lose_no_signal(void **state)
{
	pid_t pid = run(step), sender = start_sender(pid);
	struct hold hold = {.pid = pid};
	int status;

	for (int i = 0; i < HOLDS; i++) {
		assert_int_equal(take(&hold), 0);
		hold_release(&hold);
	}
	shown->enough = true;
	assert_int_equal(waitpid(sender, &status, 0), sender);
	assert_int_equal(status, 0);
	compare_signals();
	/* Those without a queue may become one. */
	assert_in_range(shown->plain, 1, shown->sent_plain);
	end(pid);
}

/* The rare case of the above, made: a signal comes when the process is traced and not yet interrupted. */
static int take_at_a_signal(struct hold *hold, int number)
{
	if (ptrace(PTRACE_SEIZE, hold->pid, NULL, NULL) < 0 ||
		sigqueue(hold->pid, SIGRTMIN, (union sigval){.sival_int = number}) < 0)
		return -errno;
	hold->state = HOLD_COMING;
	shown->sent++;
	shown->sent_values += (uint64_t)number;
	return take(hold);
}

static void a_signal_on_its_way_arrives_after_the_hold(void **state)
{
	pid_t pid = run(step);
	struct hold hold = {.pid = pid};

	goes_on();
	for (int i = 1; i <= 1000; i++) {
		assert_int_equal(take_at_a_signal(&hold, i), 0);
		assert_int_equal(hold.signal, SIGRTMIN);
		hold_release(&hold);
	}
	compare_signals();
	end(pid);
}

static void a_signal_on_its_way_survives_the_death_of_the_holder(void **state)
{
	pid_t pid = run(step);

	goes_on();
	for (int i = 1; i <= 50; i++) {
		pid_t holder = fork();

		assert_true(holder >= 0);
		if (holder == 0) {
			struct hold hold = {.pid = pid};

			prctl(PR_SET_PDEATHSIG, SIGKILL);
			shown->holding = take_at_a_signal(&hold, i) == 0 && hold.signal == SIGRTMIN;
			pause();
		}
		wait_until(shown->holding);
		assert_int_equal(state_of(pid), 't');
		end(holder);
		shown->holding = false;
	}
	compare_signals();
	end(pid);
}

static void what_was_stopped_before_stays_stopped(void **state)
{
	pid_t pid = run(step);
	struct hold hold = {.pid = pid};
	uint64_t steps;

	goes_on();
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	assert_int_equal(state_of(pid), 'T');
	steps = shown->steps;
	for (int i = 0; i < 50; i++) {
		assert_int_equal(take(&hold), 0);
		hold_release(&hold);
	}
	wait_until(state_of(pid) == 'T');
	sleep_ms(20);
	assert_int_equal(shown->steps, steps);
	kill(pid, SIGCONT);
	goes_on();
	end(pid);
}

static void a_stop_that_is_asked_for_while_it_is_held_comes_after(void **state)
{
	pid_t pid = run(step);
	struct hold hold = {.pid = pid};

	goes_on();
	assert_int_equal(take(&hold), 0);
	kill(pid, SIGSTOP);
	hold_release(&hold);
	wait_until(state_of(pid) == 'T');
	/* And one that is called off meanwhile does not. */
	assert_int_equal(take(&hold), 0);
	kill(pid, SIGCONT);
	hold_release(&hold);
	goes_on();
	end(pid);
}

/* Holds @pid as long as there is one, from another process than its parent, as in life; and lives on, since
 * the kernel lets go whom a dying process traces. */
static pid_t start_holder(pid_t pid)
{
	pid_t holder = fork();

	if (holder == 0) {
		struct hold hold = {.pid = pid};

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (take(&hold) == 0)
			hold_release(&hold);
		pause();
	}
	return holder;
}

static void a_parent_learns_how_a_held_process_ended(void **state)
{
	for (int i = 0; i < 50; i++) {
		pid_t pid = run(step), holder = start_holder(pid), ended = 0;
		int status = 0;

		if (i % 2)
			wait_until(state_of(pid) == 't');
		kill(pid, SIGKILL);
		wait_until((ended = waitpid(pid, &status, WNOHANG)) != 0);
		assert_int_equal(ended, pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		end(holder);
	}
}

static void run_and_exit_with_seven(void)
{
	for (int i = 0; i < 100000; i++)
		shown->steps++;
	_exit(7);
}

static void an_exit_status_passes_through_a_hold(void **state)
{
	for (int i = 0; i < 50; i++) {
		pid_t pid = run(run_and_exit_with_seven), holder = start_holder(pid), ended = 0;
		int status = 0;

		wait_until((ended = waitpid(pid, &status, WNOHANG)) != 0);
		assert_int_equal(ended, pid);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
		end(holder);
	}
}

/* Calls execve() fifty times in a row. */
static void turn_into_a_shell_again_and_again(void)
{
	const char *script = "[ $1 = 0 ] && exit 7; exec /bin/sh -c \"$0\" \"$0\" $(($1 - 1))";

	execl("/bin/sh", "sh", "-c", script, script, "50", NULL);
}

static void a_process_may_become_another_program_while_it_is_held(void **state)
{
	pid_t pid = run(turn_into_a_shell_again_and_again), holder = start_holder(pid), ended = 0;
	int status = 0;

	wait_until((ended = waitpid(pid, &status, WNOHANG)) != 0);
	assert_int_equal(ended, pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	end(holder);
}

static int gate[2];

/* A parent in vfork() can't be stopped, nor reached by a signal that doesn't kill it. */
static void sleep_where_nothing_reaches(void)
{
	char byte;
	pid_t child = vfork();

	if (child == 0) {
		(void)!read(gate[0], &byte, 1);
		_exit(0);
	}
	step();
}

static void one_that_can_not_be_stopped_is_waited_for_briefly_and_stopped_later(void **state)
{
	struct timespec before, after;
	struct hold hold = {0};
	pid_t pid;

	assert_int_equal(pipe(gate), 0);
	pid = hold.pid = run(sleep_where_nothing_reaches);
	wait_until(state_of(pid) == 'D');
	clock_gettime(CLOCK_MONOTONIC, &before);
	assert_int_equal(hold_take(&hold), HOLD_E_LATE);
	clock_gettime(CLOCK_MONOTONIC, &after);
	/* Its patience, and a busy machine's delay. */
	assert_in_range((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000,
		HOLD_PATIENCE_NS / 1000000 - 1, 1000);
	hold_release(&hold);
	assert_true(hold_is_open(&hold));
	assert_int_equal(hold_take(&hold), HOLD_E_LATE);

	assert_int_equal(write(gate[1], "x", 1), 1);
	wait_until(state_of(pid) == 't');
	assert_int_equal(shown->steps, 0);
	assert_int_equal(take(&hold), 0);
	hold_release(&hold);
	goes_on();
	end(pid);
	close(gate[0]);
	close(gate[1]);
}

static void what_is_late_is_let_go_at_the_end(void **state)
{
	struct hold hold = {0};

	assert_int_equal(pipe(gate), 0);
	hold.pid = run(sleep_where_nothing_reaches);
	wait_until(state_of(hold.pid) == 'D');
	assert_int_equal(hold_take(&hold), HOLD_E_LATE);
	assert_int_equal(write(gate[1], "x", 1), 1);
	hold_deinit(&hold);
	assert_false(hold_is_open(&hold));
	goes_on();
	end(hold.pid);
	close(gate[0]);
	close(gate[1]);
}

static void trace_parent_and_wait(void)
{
	if (ptrace(PTRACE_SEIZE, getppid(), NULL, NULL) < 0)
		_exit(1);
	prctl(PR_SET_NAME, "rival");
	shown->plain = 1;
	pause();
}

/* A process whose child traces it. */
static void be_traced(void)
{
	run(trace_parent_and_wait);
	step();
}

static void a_process_that_somebody_else_traces_is_refused_by_the_tracers_name(void **state)
{
	pid_t pid = run(be_traced);
	struct hold hold = {.pid = pid};
	char why[256] = "";

	wait_until(shown->plain == 1);
	assert_int_equal(hold_check(pid, why, sizeof(why)), -EBUSY);
	if (!strstr(why, "because rival (process ") || !strstr(why, "end that, or"))
		fail_msg("%s", why);
	assert_int_equal(hold_take(&hold), -EPERM);
	assert_false(hold_is_open(&hold));
	goes_on();
	end(pid);
}

static void a_process_that_is_not_there_is_no_process(void **state)
{
	struct hold hold = {.pid = run(step)};

	end(hold.pid);
	assert_int_equal(hold_take(&hold), -ESRCH);
	assert_false(hold_is_open(&hold));
}

static int sockets[2];

static void receive(void)
{
	char byte;

	shown->steps = 1;
	shown->error = recv(sockets[1], &byte, 1, 0) == 1 ? 0 : errno;
	pause();
}

static void receive_within_a_minute(void)
{
	const struct timeval minute = {.tv_sec = 60};

	setsockopt(sockets[1], SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
	receive();
}

/* What a receive that is under way when its process is held returns. A byte comes after the hold. */
static int result_of_receive(void (*body)(void))
{
	struct hold hold = {0};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	shown->error = -1;
	shown->steps = 0;
	hold.pid = run(body);
	wait_until(shown->steps == 1 && state_of(hold.pid) == 'S');
	assert_int_equal(take(&hold), 0);
	hold_release(&hold);
	wait_until(state_of(hold.pid) == 'S');
	assert_int_equal(write(sockets[0], "x", 1), 1);
	wait_until(shown->error != -1);
	end(hold.pid);
	close(sockets[0]);
	close(sockets[1]);
	return shown->error;
}

/* signal(7), "Interruption of system calls and library functions by stop signals": the second is what
 * --blocking warns of, and why a process that waits is not stopped for its samples. */
static void a_system_call_goes_on_after_a_hold_unless_it_has_a_time_limit(void **state)
{
	assert_int_equal(result_of_receive(receive), 0);
	assert_int_equal(result_of_receive(receive_within_a_minute), EINTR);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_held_process_stands_still_until_it_is_released),
		TEST(ten_thousand_holds_lose_no_signal),
		TEST(a_signal_on_its_way_arrives_after_the_hold),
		TEST(a_signal_on_its_way_survives_the_death_of_the_holder),
		TEST(what_was_stopped_before_stays_stopped),
		TEST(a_stop_that_is_asked_for_while_it_is_held_comes_after),
		TEST(a_parent_learns_how_a_held_process_ended),
		TEST(an_exit_status_passes_through_a_hold),
		TEST(a_process_may_become_another_program_while_it_is_held),
		TEST(one_that_can_not_be_stopped_is_waited_for_briefly_and_stopped_later),
		TEST(what_is_late_is_let_go_at_the_end),
		TEST(a_process_that_somebody_else_traces_is_refused_by_the_tracers_name),
		TEST(a_process_that_is_not_there_is_no_process),
		TEST(a_system_call_goes_on_after_a_hold_unless_it_has_a_time_limit),
	};

	return cmocka_run_group_tests_name("hold", tests, NULL, NULL);
}
