/* SPDX-License-Identifier: MIT
 *
 * Processes that look like FPM from outside: the test's own binary, started again under another name, writes
 * FPM's titles over its argv and does what it is told over a pipe. So every moment of a worker's life can be
 * held still, also the one between the fork and the title. Included by one test only, hence static.
 */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAKE_FPM_ROLE "--be-fake-fpm"
#define FAKE_FPM_TITLE_ROOM \
	"...................................................................................."

struct fake_fpm {
	pid_t pid;
	int orders, answers;
};

enum fake_order_verb { FAKE_FORK, FAKE_NAME_NEWBORN, FAKE_KILL, FAKE_REEXECUTE };

struct fake_order {
	enum fake_order_verb verb;
	pid_t pid;
	char pool[64]; /* "": a newborn, which still has the master's title */
};

static char **fake_argv;
static size_t fake_title_room;

static void fake_set_title(const char *kind, const char *what, const char *end)
{
	char title[256];

	snprintf(title, sizeof(title), "php-fpm: %s%s%s", kind, what, end);
	memset(fake_argv[0], 0, fake_title_room);
	memcpy(fake_argv[0], title, strlen(title) < fake_title_room ? strlen(title) : fake_title_room - 1);
}

static void fake_get_name(int signal)
{
	fake_set_title("pool ", "newborn", "");
}

static void fake_fork_child(const struct fake_order *order)
{
	int named[2];
	char byte;
	pid_t pid;

	if (pipe(named) < 0)
		_exit(1);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(named[0]);
		signal(SIGUSR1, fake_get_name);
		if (order->pool[0])
			fake_set_title("pool ", order->pool, "");
		close(named[1]);
		for (;;)
			pause();
	}
	close(named[1]);
	while (read(named[0], &byte, 1) > 0)
		;
	close(named[0]);
	if (write(STDOUT_FILENO, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
}

/* What a process started with FAKE_FPM_ROLE does. Ends with its pipe. */
static int fake_fpm_main(int argc, char **argv)
{
	struct fake_order order;
	char executable[512];
	pid_t done = 0;

	fake_argv = argv;
	fake_title_room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
	snprintf(executable, sizeof(executable), "%s", argv[0]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	fake_set_title("master process (", executable, ")");
	if (write(STDOUT_FILENO, &done, sizeof(done)) != sizeof(done))
		return 1;
	while (read(STDIN_FILENO, &order, sizeof(order)) == sizeof(order)) {
		switch (order.verb) {
		case FAKE_FORK:
			fake_fork_child(&order);
			continue;
		case FAKE_NAME_NEWBORN:
			kill(order.pid, SIGUSR1);
			break;
		case FAKE_KILL:
			kill(order.pid, SIGKILL);
			waitpid(order.pid, NULL, 0);
			break;
		case FAKE_REEXECUTE:
			execl(executable, executable, FAKE_FPM_ROLE, FAKE_FPM_TITLE_ROOM, NULL);
			return 1;
		}
		if (write(STDOUT_FILENO, &done, sizeof(done)) != sizeof(done))
			return 1;
	}
	/* Reaped here: where nothing reaps orphans, hundreds of dead ones would stay with the machine. */
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	while (wait(NULL) > 0)
		;
	return 0;
}

static pid_t fake_fpm_answer(struct fake_fpm *fake)
{
	pid_t pid = -1;

	if (read(fake->answers, &pid, sizeof(pid)) != sizeof(pid))
		abort();
	return pid;
}

static pid_t fake_fpm_order(struct fake_fpm *fake, enum fake_order_verb verb, pid_t pid, const char *pool)
{
	struct fake_order order = {.verb = verb, .pid = pid};

	snprintf(order.pool, sizeof(order.pool), "%s", pool);
	if (write(fake->orders, &order, sizeof(order)) != sizeof(order))
		abort();
	return fake_fpm_answer(fake);
}

/* Starts @executable, a copy of this binary, as a master. */
static struct fake_fpm fake_fpm_start(const char *executable)
{
	int orders[2], answers[2];
	struct fake_fpm fake;

	if (pipe(orders) < 0 || pipe(answers) < 0)
		abort();
	fake.pid = fork();
	if (fake.pid == 0) {
		dup2(orders[0], STDIN_FILENO);
		dup2(answers[1], STDOUT_FILENO);
		for (int fd = STDERR_FILENO + 1; fd < 64; fd++)
			close(fd);
		execl(executable, executable, FAKE_FPM_ROLE, FAKE_FPM_TITLE_ROOM, NULL);
		_exit(1);
	}
	close(orders[0]);
	close(answers[1]);
	fake.orders = orders[1];
	fake.answers = answers[0];
	fake_fpm_answer(&fake);
	return fake;
}

static pid_t fake_fpm_fork(struct fake_fpm *fake, const char *pool)
{
	return fake_fpm_order(fake, FAKE_FORK, 0, pool);
}

static pid_t fake_fpm_fork_newborn(struct fake_fpm *fake)
{
	return fake_fpm_order(fake, FAKE_FORK, 0, "");
}

/* Tells a newborn to take its title; it will have it soon. */
static void fake_fpm_name_newborn(struct fake_fpm *fake, pid_t pid)
{
	fake_fpm_order(fake, FAKE_NAME_NEWBORN, pid, "");
}

static void fake_fpm_kill_child(struct fake_fpm *fake, pid_t pid)
{
	fake_fpm_order(fake, FAKE_KILL, pid, "");
}

/* The master executes itself anew, as FPM does on SIGUSR2. */
static void fake_fpm_reexecute(struct fake_fpm *fake)
{
	fake_fpm_order(fake, FAKE_REEXECUTE, 0, "");
}

/* Ends the master, and with it its children. */
static void fake_fpm_stop(struct fake_fpm *fake)
{
	close(fake->orders);
	close(fake->answers);
	waitpid(fake->pid, NULL, 0);
}
