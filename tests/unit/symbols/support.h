/* SPDX-License-Identifier: MIT
 *
 * What the tests of this room share: a scratch directory, child processes that say when they are ready, a
 * compiler, and the memory of a live process. The room's own code never reads memory by itself, so the tests
 * bring a way: /proc/PID/mem.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "symbols/memory.h"

/* What a reader says of unmapped memory: any positive number. */
#define SUPPORT_E_FAULT 2

static char scratch[64];

static inline int make_scratch(void **state)
{
	(void)state;
	snprintf(scratch, sizeof(scratch), "/tmp/cbox-profd-test.XXXXXX");
	return mkdtemp(scratch) ? 0 : -1;
}

/* Runs @argv and waits; true if it succeeded. */
static inline bool run(const char *const *argv)
{
	int status = -1;
	pid_t pid;

	return posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0 &&
	       waitpid(pid, &status, 0) == pid && status == 0;
}

static inline int remove_scratch(void **state)
{
	(void)state;
	return run((const char *const[]){"rm", "-rf", "--", scratch, NULL}) ? 0 : -1;
}

/* The path of @name in the scratch directory; valid until four more have been asked for. */
static inline const char *in_scratch(const char *name)
{
	static char paths[4][PATH_MAX];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", scratch, name);
	return path;
}

/* The path of a file that lies beside the tests' sources. */
static inline const char *beside_tests(const char *name)
{
	static char path[PATH_MAX];
	const char *slash = strrchr(__FILE__, '/');

	snprintf(path, sizeof(path), "%.*s/%s", slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".",
		name);
	return path;
}

/* Compiles @source to @output with up to eight more arguments, ended by NULL. */
static inline void compile(const char *source, const char *output, ...)
{
	const char *argv[16] = {"gcc", "-O2", "-o", output, source};
	size_t used = 5;
	va_list more;

	va_start(more, output);
	while (used < 15 && (argv[used] = va_arg(more, const char *)))
		used++;
	va_end(more);
	assert_true(run(argv));
}

static inline void copy_file(const char *from, const char *to)
{
	assert_true(run((const char *const[]){"cp", "--", from, to, NULL}));
}

static inline void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

struct child {
	pid_t pid;
	int output;
};

/* Starts @argv, with @root as its root directory if given. */
static inline struct child spawn_child(const char *root, const char *const *argv)
{
	struct child child;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		/* It ends with the test, however that ends. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || dup2(ends[1], STDOUT_FILENO) < 0 ||
			(root && (chroot(root) != 0 || chdir("/") != 0)))
			_exit(126);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	close(ends[1]);
	child.output = ends[0];
	return child;
}

/* The same, and waits until it has printed a line. */
static inline struct child start_child(const char *root, const char *const *argv)
{
	struct child child = spawn_child(root, argv);
	char c = 0;

	while (read(child.output, &c, 1) == 1 && c != '\n')
		;
	assert_int_equal(c, '\n');
	return child;
}

static inline void end_child(struct child *child)
{
	kill(child->pid, SIGKILL);
	waitpid(child->pid, NULL, 0);
	close(child->output);
}

static inline int read_process(void *context, remote_addr addr, void *into, size_t bytes)
{
	char path[64];
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)*(const pid_t *)context);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	got = pread(fd, into, bytes, (off_t)addr);
	close(fd);
	return got >= 0 && (size_t)got == bytes ? 0 : SUPPORT_E_FAULT;
}

/* The memory of process *@pid. */
static inline struct memory process_memory(pid_t *pid)
{
	return (struct memory){read_process, pid};
}

/* A made-up memory: @bytes of @image stand at @base, and there is nothing else. */
struct saved_memory {
	remote_addr base;
	unsigned char image[65536];
	unsigned reads;
};

static inline int read_saved(void *context, remote_addr addr, void *into, size_t bytes)
{
	struct saved_memory *saved = context;

	saved->reads++;
	if (addr < saved->base || addr - saved->base > sizeof(saved->image) ||
		bytes > sizeof(saved->image) - (addr - saved->base))
		return SUPPORT_E_FAULT;
	memcpy(into, saved->image + (addr - saved->base), bytes);
	return 0;
}

static inline void put(struct saved_memory *saved, remote_addr addr, const void *from, size_t bytes)
{
	assert_true(addr >= saved->base && addr - saved->base + bytes <= sizeof(saved->image));
	memcpy(saved->image + (addr - saved->base), from, bytes);
}

static inline void put_word(struct saved_memory *saved, remote_addr addr, uint64_t word)
{
	put(saved, addr, &word, sizeof(word));
}

static inline void put_half(struct saved_memory *saved, remote_addr addr, uint32_t half)
{
	put(saved, addr, &half, sizeof(half));
}
