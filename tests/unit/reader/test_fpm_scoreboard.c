/* SPDX-License-Identifier: MIT
 *
 * Finding a worker's slot, in child processes that map what php-fpm's workers map.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reader/fpm_scoreboard.h"
#include "reader/remote.h"

#define SLOT_BYTES 1168 /* sizeof(struct fpm_scoreboard_proc_s) in 8.2 */
#define SCOREBOARD_BYTES (64 * 1024 + 4096)

struct slot {
	char lock[16];
	int32_t used;
	int64_t start_epoch;
	int32_t pid;
	uint64_t requests;
	uint32_t stage;
};

enum situation { HEALTHY, FREE_SLOT, TWO_SLOTS, FAR_SLOT, TOO_LARGE, PRIVATE_MAPPING };

static void put_slot(char *board, size_t offset, pid_t pid, bool used)
{
	struct slot slot = {
		.used = used,
		.start_epoch = 1700000000,
		.pid = pid,
		.requests = 4711,
		.stage = 4,
	};

	memcpy(board + offset, &slot, sizeof(slot));
}

/* In the child: maps a scoreboard with a slot for @pid and its neighbours. Its address. */
static uint64_t be_worker(enum situation situation, pid_t pid)
{
	size_t bytes = situation == TOO_LARGE ? 9 << 20 : SCOREBOARD_BYTES;
	char *board = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_ANONYMOUS | (situation == PRIVATE_MAPPING ? MAP_PRIVATE : MAP_SHARED), -1, 0);
	/* 65512: the slot's fields lie on both sides of 64 KiB, the reader's step. */
	size_t offset = situation == FAR_SLOT ? 65512 : 128 + SLOT_BYTES;

	if (board == MAP_FAILED)
		_exit(1);
	put_slot(board, 128, pid + 1, true);
	put_slot(board, offset, pid, situation != FREE_SLOT);
	put_slot(board, 128 + 2 * SLOT_BYTES, situation == TWO_SLOTS ? pid : pid + 2, true);
	return (uint64_t)(uintptr_t)(board + offset);
}

/* Forks a worker; its slot's address. */
static pid_t start_worker(enum situation situation, bool own_namespace, uint64_t *ret_slot)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = own_namespace ? (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0) : fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		uint64_t slot = be_worker(situation, getpid());

		if (write(fds[1], &slot, sizeof(slot)) != sizeof(slot))
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], ret_slot, sizeof(*ret_slot)), sizeof(*ret_slot));
	close(fds[0]);
	return pid;
}

/* What is found in such a worker, less its slot's address. */
static int search(enum situation situation, bool own_namespace, remote_addr *ret_offset)
{
	uint64_t slot;
	pid_t pid = start_worker(situation, own_namespace, &slot);
	struct memory memory = remote_memory(&pid);
	remote_addr addr;
	int r;

	r = fpm_scoreboard_find_slot(pid, &memory, &addr);
	if (r == 0) {
		unsigned char bytes[FPM_SLOT_BYTES];

		assert_int_equal(memory_read(&memory, addr, bytes, sizeof(bytes)), 0);
		assert_int_equal(fpm_slot_read(bytes).requests, 4711);
		*ret_offset = addr - slot;
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return r;
}

static void workers_slot_is_found(void **state)
{
	remote_addr offset;

	assert_int_equal(search(HEALTHY, false, &offset), 0);
	assert_int_equal(offset, 0);
}

static void slot_across_two_reads_is_found_once(void **state)
{
	remote_addr offset;

	assert_int_equal(search(FAR_SLOT, false, &offset), 0);
	assert_int_equal(offset, 0);
}

static void worker_in_a_pid_namespace_is_known_by_its_own_pid(void **state)
{
	remote_addr offset;

	if (geteuid() != 0) {
		print_message("SKIPPED: needs root for a pid namespace\n");
		skip();
	}
	assert_int_equal(search(HEALTHY, true, &offset), 0);
	assert_int_equal(offset, 0);
}

static void what_is_no_slot_of_the_worker_is_not_taken_for_one(void **state)
{
	remote_addr offset;

	assert_int_equal(search(FREE_SLOT, false, &offset), FPM_SCOREBOARD_E_NOT_FOUND);
	assert_int_equal(search(TWO_SLOTS, false, &offset), FPM_SCOREBOARD_E_NOT_FOUND);
	assert_int_equal(search(TOO_LARGE, false, &offset), FPM_SCOREBOARD_E_NOT_FOUND);
	assert_int_equal(search(PRIVATE_MAPPING, false, &offset), FPM_SCOREBOARD_E_NOT_FOUND);
}

static void dead_worker_is_an_error(void **state)
{
	uint64_t slot;
	pid_t pid = start_worker(HEALTHY, false, &slot);
	struct memory memory = remote_memory(&pid);
	remote_addr addr = 42;

	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(fpm_scoreboard_find_slot(pid, &memory, &addr), -ESRCH);
	assert_int_equal(addr, 42);
}

static void script_began_when_stage_executing_did_and_in_no_other_stage(void **state)
{
	unsigned char slot[FPM_SLOT_BYTES] = {0};
	uint64_t seconds = 86400, microseconds = 250000, wrapping = UINT64_MAX / 2;
	uint32_t executing = 4, finished = 6;

	memcpy(slot + 96, &seconds, 8);
	memcpy(slot + 104, &microseconds, 8);
	memcpy(slot + 48, &executing, 4);
	assert_int_equal(fpm_slot_read(slot).executing_ns, 86400250000000);
	memcpy(slot + 48, &finished, 4);
	assert_int_equal(fpm_slot_read(slot).executing_ns, 0);
	memcpy(slot + 48, &executing, 4);
	memcpy(slot + 96, &wrapping, 8);
	assert_int_equal(fpm_slot_read(slot).executing_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workers_slot_is_found),
		cmocka_unit_test(slot_across_two_reads_is_found_once),
		cmocka_unit_test(worker_in_a_pid_namespace_is_known_by_its_own_pid),
		cmocka_unit_test(what_is_no_slot_of_the_worker_is_not_taken_for_one),
		cmocka_unit_test(dead_worker_is_an_error),
		cmocka_unit_test(script_began_when_stage_executing_did_and_in_no_other_stage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
