/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "reader/activity.h"
#include "reader/placement.h"

static cpu_set_t own_cpus(void)
{
	cpu_set_t cpus;

	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	return cpus;
}

static int last_cpu(const cpu_set_t *cpus)
{
	int last = -1;

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((unsigned)cpu, cpus))
			last = cpu;
	return last;
}

/* A child that spins on @cpu and nowhere else. */
static pid_t spin_on(int cpu)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		cpu_set_t only;

		CPU_ZERO(&only);
		CPU_SET((unsigned)cpu, &only);
		if (sched_setaffinity(0, sizeof(only), &only) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			;
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void the_cpu_a_process_runs_on_is_known_and_whether_it_waits(void **state)
{
	cpu_set_t cpus = own_cpus();
	int cpu = last_cpu(&cpus);
	pid_t pid = spin_on(cpu);
	struct activity *activity = NULL;
	struct activity_place place;

	assert_int_equal(activity_open(pid, &activity), 0);
	assert_int_equal(activity_read_place(activity, &place), 0);
	assert_int_equal(place.cpu, cpu);
	assert_true(place.ready);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	assert_int_equal(activity_read_place(activity, &place), 0);
	assert_int_equal(place.cpu, cpu);
	assert_false(place.ready);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(activity_read_place(activity, &place), -ESRCH);
	activity_close(activity);
}

static void a_thread_that_joined_a_cpu_runs_there_until_it_leaves(void **state)
{
	cpu_set_t before = own_cpus(), after;
	int cpu = last_cpu(&before);

	assert_int_equal(placement_join(cpu), 0);
	assert_int_equal(sched_getcpu(), cpu);
	after = own_cpus();
	assert_int_equal(CPU_COUNT(&after), 1);
	placement_leave();
	after = own_cpus();
	assert_true(CPU_EQUAL(&before, &after));
}

static void a_process_does_not_run_while_it_is_read_from_its_own_cpu(void **state)
{
	cpu_set_t cpus = own_cpus();
	pid_t pid = spin_on(last_cpu(&cpus));
	struct activity *activity = NULL;
	struct activity_clocks before, after;
	struct activity_place place;

	assert_int_equal(activity_open(pid, &activity), 0);
	/* A spin of this length is a hundred times as long as a snapshot; a scheduler tick in it may hand the
	 * CPU back to an ordinary thread's neighbour, so it may take a second try. */
	for (int attempt = 0; attempt < 20; attempt++) {
		assert_int_equal(activity_read_place(activity, &place), 0);
		assert_int_equal(placement_join(place.cpu), 0);
		assert_int_equal(activity_read_clocks(activity, &before), 0);
		for (volatile int i = 0; i < 100000; i++)
			;
		assert_int_equal(activity_read_clocks(activity, &after), 0);
		placement_leave();
		if (after.switch_ins == before.switch_ins)
			break;
	}
	assert_int_equal(after.switch_ins, before.switch_ins);
	assert_int_equal(after.run_ns, before.run_ns);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	activity_close(activity);
}

/* That its count of switch-ins did not rise proves nothing by itself, since one that runs elsewhere all the
 * time has the same. With its CPU being ours at one moment in between it is proof: here it can't have run
 * then. */
static void a_realtime_thread_keeps_a_process_from_running_on_its_cpu(void **state)
{
	const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)},
				 ordinary = {.sched_priority = 0};
	cpu_set_t cpus = own_cpus();
	pid_t pid = spin_on(last_cpu(&cpus));
	struct activity *activity = NULL;
	struct activity_clocks before, after;
	struct activity_place place;
	int proved = 0;

	if (sched_setscheduler(0, SCHED_FIFO, &lowest) < 0) {
		print_message("  SCHED_FIFO is refused: run it as root\n");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		skip();
	}
	assert_int_equal(activity_open(pid, &activity), 0);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(activity_read_place(activity, &place), 0);
		assert_int_equal(placement_join(place.cpu), 0);
		assert_int_equal(activity_read_clocks(activity, &before), 0);
		assert_int_equal(activity_read_place(activity, &place), 0);
		for (volatile int spin = 0; spin < 10000; spin++)
			;
		assert_int_equal(activity_read_clocks(activity, &after), 0);
		proved += place.cpu == sched_getcpu() && after.switch_ins == before.switch_ins;
		placement_leave();
		usleep(100);
	}
	assert_int_equal(sched_setscheduler(0, SCHED_OTHER, &ordinary), 0);
	/* The kernel keeps a twentieth of a CPU for others when realtime threads take all of it. */
	assert_in_range(proved, 490, 500);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	activity_close(activity);
}

static void a_cpu_it_may_not_run_on_is_refused_and_changes_nothing(void **state)
{
	cpu_set_t before = own_cpus(), after;

	assert_int_equal(placement_join(-1), -EINVAL);
	assert_int_equal(placement_join(CPU_SETSIZE), -EINVAL);
	assert_int_equal(placement_join(last_cpu(&before) + 1), -EINVAL);
	placement_leave();
	after = own_cpus();
	assert_true(CPU_EQUAL(&before, &after));
}

static void a_process_is_read_from_its_own_cpu_at_once_when_one_in_sixteen_snapshots_tears(void **state)
{
	struct placement_habit habit = {0};

	/* One in 50: never. */
	for (unsigned look = 0; look < 1000; look++) {
		assert_false(placement_is_habit(&habit));
		placement_note_first(&habit, look % 50 == 0);
	}
	/* All of them: from 1 - (63/64)^n >= 1/16 on, which is the fifth, or earlier by what is in mind
	 * already. */
	habit = (struct placement_habit){0};
	for (unsigned look = 0; look < 5; look++) {
		assert_false(placement_is_habit(&habit));
		placement_note_first(&habit, true);
	}
	assert_true(placement_is_habit(&habit));
}

static void every_sixteenth_time_it_is_seen_whether_they_still_tear(void **state)
{
	struct placement_habit habit = {.torn = 32768};
	unsigned visited = 0;

	for (unsigned look = 0; look < 160; look++)
		if (placement_is_habit(&habit))
			visited++;
		else
			placement_note_first(&habit, true);
	assert_int_equal(visited, 150);
	/* They don't any more: 1 - 0.5 * (63/64)^10 of them did, which is below 1/16 after 141 that don't. */
	for (unsigned look = 0; look < 130 * 16; look++)
		if (!placement_is_habit(&habit))
			placement_note_first(&habit, false);
	assert_true(placement_is_habit(&habit));
	for (unsigned look = 0; look < 20 * 16; look++)
		if (!placement_is_habit(&habit))
			placement_note_first(&habit, false);
	for (unsigned look = 0; look < 100; look++)
		assert_false(placement_is_habit(&habit));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_cpu_a_process_runs_on_is_known_and_whether_it_waits),
		cmocka_unit_test(a_thread_that_joined_a_cpu_runs_there_until_it_leaves),
		cmocka_unit_test(a_process_does_not_run_while_it_is_read_from_its_own_cpu),
		cmocka_unit_test(a_realtime_thread_keeps_a_process_from_running_on_its_cpu),
		cmocka_unit_test(a_cpu_it_may_not_run_on_is_refused_and_changes_nothing),
		cmocka_unit_test(
			a_process_is_read_from_its_own_cpu_at_once_when_one_in_sixteen_snapshots_tears),
		cmocka_unit_test(every_sixteenth_time_it_is_seen_whether_they_still_tear),
	};

	return cmocka_run_group_tests_name("placement", tests, NULL, NULL);
}
