/* SPDX-License-Identifier: MIT
 *
 * Finding a worker's slot, in child processes that have mapped what php-fpm's workers have, from their
 * parent.
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
#include <sys/prctl.h>
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

#define PAGE_BYTES 4096
#define LARGE_BOARD_BYTES (7 << 20)

enum situation {
	HEALTHY,
	FREE_SLOT,
	TWO_SLOTS,
	FAR_SLOT,
	TOO_LARGE,
	PRIVATE_MAPPING,
	OWN_MAPPING, /* that the worker's parent has not */
	FORGED_SLOT, /* a true one, and one in a mapping of the worker's own */
	SPARSE,      /* large, and little of it in use */
	CROWDED,     /* large, and more in use than is read */
};

static size_t board_bytes; /* of the mapping that the last worker got */
static char *board;        /* ours of it */

static void put_slot(char *into, size_t offset, pid_t pid, bool used)
{
	struct slot slot = {
		.used = used,
		.start_epoch = 1700000000,
		.pid = pid,
		.requests = 4711,
		.stage = 4,
	};

	memcpy(into + offset, &slot, sizeof(slot));
}

/* What a master does before it forks; of OWN_MAPPING the child does it. */
static char *map_board(enum situation situation)
{
	bool large = situation == SPARSE || situation == CROWDED;

	board_bytes = situation == TOO_LARGE ? 9 << 20 : large ? LARGE_BOARD_BYTES : SCOREBOARD_BYTES;
	return mmap(NULL, board_bytes, PROT_READ | PROT_WRITE,
		MAP_ANONYMOUS | (situation == PRIVATE_MAPPING ? MAP_PRIVATE : MAP_SHARED), -1, 0);
}

/* In the child: fills a slot for @pid and its neighbours. Its address. */
static uint64_t be_worker(enum situation situation, pid_t pid)
{
	/* 65512: the slot's fields lie on both sides of 64 KiB, the reader's step, and of a page. */
	size_t offset = situation == FAR_SLOT ? 65512 : 128 + SLOT_BYTES;
	char *own = situation == OWN_MAPPING ? map_board(situation) : board;

	if (own == MAP_FAILED)
		_exit(1);
	if (situation == CROWDED)
		memset(own + PAGE_BYTES, 1, 3 << 20);
	if (situation == FAR_SLOT)
		memset(own, 0, SCOREBOARD_BYTES); /* a run of pages longer than a step */
	if (situation == FORGED_SLOT)
		put_slot(map_board(situation), 128, pid, true);
	put_slot(own, 128, pid + 1, true);
	put_slot(own, offset, pid, situation != FREE_SLOT);
	put_slot(own, 128 + 2 * SLOT_BYTES, situation == TWO_SLOTS ? pid : pid + 2, true);
	return (uint64_t)(uintptr_t)(own + offset);
}

/* Forks a worker; its slot's address. */
static pid_t start_worker(enum situation situation, bool own_namespace, uint64_t *ret_slot)
{
	int fds[2];
	pid_t pid;

	board = situation == OWN_MAPPING ? NULL : map_board(situation);
	assert_true(board != MAP_FAILED);
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = own_namespace ? (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0) : fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
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

static void stop_worker(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	if (board)
		munmap(board, board_bytes);
}

static int find(pid_t pid, remote_addr *ret_slot)
{
	_cleanup_(fpm_scoreboard_closep) struct fpm_scoreboard *scoreboard = NULL;
	struct memory memory = remote_memory(&pid);
	int r = fpm_scoreboard_open(pid, &scoreboard);

	return r != 0 ? r : fpm_scoreboard_find_slot(scoreboard, &memory, ret_slot);
}

/* What is found in such a worker, less its slot's address. */
static int search(enum situation situation, bool own_namespace, remote_addr *ret_offset)
{
	uint64_t slot;
	pid_t pid = start_worker(situation, own_namespace, &slot);
	struct memory memory = remote_memory(&pid);
	remote_addr addr;
	int r;

	r = find(pid, &addr);
	if (r == 0) {
		unsigned char bytes[FPM_SLOT_BYTES];

		assert_int_equal(memory_read(&memory, addr, bytes, sizeof(bytes)), 0);
		assert_int_equal(fpm_slot_read(bytes).requests, 4711);
		*ret_offset = addr - slot;
	}
	stop_worker(pid);
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

static void mapping_that_the_worker_has_not_from_its_parent_is_not_looked_at(void **state)
{
	remote_addr offset;

	assert_int_equal(search(OWN_MAPPING, false, &offset), FPM_SCOREBOARD_E_NOT_FOUND);
	assert_int_equal(search(FORGED_SLOT, false, &offset), 0);
	assert_int_equal(offset, 0);
}

/* Pages of the mapping that exist. */
static size_t pages_allocated(void)
{
	static unsigned char in_memory[LARGE_BOARD_BYTES / PAGE_BYTES];
	size_t count = 0;

	assert_int_equal(mincore(board, board_bytes, in_memory), 0);
	for (size_t i = 0; i < board_bytes / PAGE_BYTES; i++)
		count += in_memory[i] & 1;
	return count;
}

static void looking_for_the_slot_allocates_nothing_in_the_worker(void **state)
{
	uint64_t slot;
	pid_t pid = start_worker(SPARSE, false, &slot);
	remote_addr addr = 0;

	assert_int_equal(pages_allocated(), 1);
	assert_int_equal(find(pid, &addr), 0);
	assert_int_equal(addr, slot);
	assert_int_equal(pages_allocated(), 1);
	stop_worker(pid);
}

static void no_more_is_read_than_a_scoreboard_could_have(void **state)
{
	remote_addr offset;

	assert_int_equal(search(CROWDED, false, &offset), FPM_SCOREBOARD_E_NOT_FOUND);
}

static void slot_that_is_filled_later_is_found_without_a_look_at_the_maps(void **state)
{
	_cleanup_(fpm_scoreboard_closep) struct fpm_scoreboard *scoreboard = NULL;
	uint64_t slot;
	pid_t pid = start_worker(FREE_SLOT, false, &slot);
	struct memory memory = remote_memory(&pid);
	remote_addr addr = 42;

	assert_int_equal(fpm_scoreboard_open(pid, &scoreboard), 0);
	assert_int_equal(fpm_scoreboard_find_slot(scoreboard, &memory, &addr), FPM_SCOREBOARD_E_NOT_FOUND);
	assert_int_equal(addr, 42);
	put_slot(board, 128 + SLOT_BYTES, pid, true);
	assert_int_equal(fpm_scoreboard_find_slot(scoreboard, &memory, &addr), 0);
	assert_int_equal(addr, slot);
	stop_worker(pid);
	assert_int_equal(fpm_scoreboard_find_slot(scoreboard, &memory, &addr), -ESRCH);
}

static void dead_worker_is_an_error(void **state)
{
	uint64_t slot;
	pid_t pid = start_worker(HEALTHY, false, &slot);
	remote_addr addr = 42;

	stop_worker(pid);
	assert_int_equal(find(pid, &addr), -ESRCH);
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
		cmocka_unit_test(mapping_that_the_worker_has_not_from_its_parent_is_not_looked_at),
		cmocka_unit_test(looking_for_the_slot_allocates_nothing_in_the_worker),
		cmocka_unit_test(no_more_is_read_than_a_scoreboard_could_have),
		cmocka_unit_test(slot_that_is_filled_later_is_found_without_a_look_at_the_maps),
		cmocka_unit_test(dead_worker_is_an_error),
		cmocka_unit_test(script_began_when_stage_executing_did_and_in_no_other_stage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
