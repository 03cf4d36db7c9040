/* SPDX-License-Identifier: MIT
 *
 * Real PHP processes for tests: the builds at hand, a script run by one of them up to where it says READY,
 * and the stack a php_process sees in it, as text.
 */
#pragma once

#include <errno.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "reader/php_process.h"

#define LIVE_MAX_BUILDS 16
#define LIVE_MAX_ARGUMENTS 16
#define LIVE_MAX_NAMES 8192
#define LIVE_DEADLINE_S 20
#define LIVE_TEXT_BYTES (1 << 20)

/* ---- the builds ---- */

struct live_build {
	char php[512];
	char library_path[512]; /* "" when none is needed */
	char opcache[512];      /* its opcache.so; "" when built in or loaded by its ini files */
};

static inline void live_add_build(struct live_build *builds, size_t *count, const char *php)
{
	struct live_build *build = &builds[*count];
	const char *native;

	if (*count == LIVE_MAX_BUILDS || access(php, X_OK) != 0)
		return;
	memset(build, 0, sizeof(*build));
	snprintf(build->php, sizeof(build->php), "%s", php);
	native = strstr(php, "/native/");
	if (native) {
		int bytes = (int)(native - php);

		snprintf(build->library_path, sizeof(build->library_path), "%.*s/native/lib", bytes, php);
		snprintf(build->opcache, sizeof(build->opcache), "%.*s/native/php/modules/opcache.so", bytes,
			php);
		if (access(build->opcache, R_OK) != 0)
			build->opcache[0] = '\0';
	}
	(*count)++;
}

/* Debian's PHP and what tests/setup/install-php-builds has fetched. */
static inline size_t live_builds(struct live_build *builds)
{
	const char *home = getenv("HOME");
	char pattern[512];
	glob_t found;
	size_t count = 0;

	live_add_build(builds, &count, "/usr/bin/php8.2");
	snprintf(pattern, sizeof(pattern),
		"%s/.cache/cbox-profd/php-builds/node_modules/@libphp/*/native/php/php",
		home ? home : "/root");
	if (glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			live_add_build(builds, &count, found.gl_pathv[i]);
		globfree(&found);
	}
	return count;
}

/* ---- one process ---- */

struct live_php {
	pid_t pid;
	int input, output; /* its stdin and stdout */
	char *said;        /* what it printed before READY */
};

/* Runs @script with @build and @options (NULL-terminated; "" are left out) until it has printed READY. */
static inline int live_start(struct live_php *php, const struct live_build *build, const char *const *options,
	const char *script, const char *argument)
{
	int to[2], from[2];
	size_t used = 0;

	if (pipe(to) < 0 || pipe(from) < 0)
		return -errno;
	php->said = calloc(1, LIVE_TEXT_BYTES);
	php->pid = fork();
	if (php->pid == 0) {
		const char *arguments[LIVE_MAX_ARGUMENTS] = {build->php};
		size_t count = 1;

		for (; *options; options++)
			if (**options)
				arguments[count++] = *options;
		arguments[count++] = script;
		arguments[count++] = argument;
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		if (build->library_path[0])
			setenv("LD_LIBRARY_PATH", build->library_path, 1);
		execv(build->php, (char *const *)arguments);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	php->input = to[1];
	php->output = from[0];
	while (used + 1 < LIVE_TEXT_BYTES) {
		struct pollfd wait = {.fd = php->output, .events = POLLIN};
		ssize_t got;
		char *ready;

		if (poll(&wait, 1, LIVE_DEADLINE_S * 1000) <= 0)
			return -ETIMEDOUT;
		got = read(php->output, php->said + used, LIVE_TEXT_BYTES - 1 - used);
		if (got <= 0)
			return -EPIPE;
		used += (size_t)got;
		ready = strstr(php->said, "READY\n");
		if (ready) {
			*ready = '\0';
			return 0;
		}
	}
	return -E2BIG;
}

static inline void live_stop(struct live_php *php)
{
	close(php->input);
	close(php->output);
	kill(php->pid, SIGKILL);
	waitpid(php->pid, NULL, 0);
	free(php->said);
}

/* ---- names ---- */

struct live_names {
	char *texts[LIVE_MAX_NAMES]; /* name|file */
	uint32_t lines[LIVE_MAX_NAMES];
	uint32_t count;
};

static inline uint32_t live_intern(void *context, const struct function_name *name)
{
	struct live_names *names = context;
	char text[2048];

	snprintf(text, sizeof(text), "%s|%s", name->name, name->file);
	for (uint32_t i = 0; i < names->count; i++)
		if (names->lines[i] == name->line && strcmp(names->texts[i], text) == 0)
			return i;
	if (names->count == LIVE_MAX_NAMES)
		abort();
	names->lines[names->count] = name->line;
	names->texts[names->count] = strdup(text);
	return names->count++;
}

static inline void live_names_clear(struct live_names *names)
{
	for (uint32_t i = 0; i < names->count; i++)
		free(names->texts[i]);
	names->count = 0;
}

/* The sample as the scripts print their stacks: name|file|line, a line a frame. Owned by the caller. */
static inline char *live_text(const struct php_sample *sample, const struct live_names *names)
{
	char *text = calloc(1, LIVE_TEXT_BYTES);
	size_t used = 0;

	for (size_t i = 0; i < sample->count; i++)
		used += (size_t)snprintf(text + used, LIVE_TEXT_BYTES - used, "%s|%u\n",
			names->texts[sample->frames[i].name_id], sample->frames[i].line);
	return text;
}

static inline void live_pause(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Samples until the leaf is @function (it says READY a moment before it blocks there). Returns the last
 * result. */
static inline int live_sample_at(struct php_process *process, const struct live_names *names,
	const char *function, struct php_sample *sample)
{
	time_t deadline = time(NULL) + LIVE_DEADLINE_S;
	int r;

	do {
		r = php_process_sample(process, sample);
		if (r == 0 && sample->count > 0 &&
			strncmp(names->texts[sample->frames[0].name_id], function, strlen(function)) == 0)
			return 0;
		live_pause();
	} while (time(NULL) < deadline);
	return r == 0 ? -ETIMEDOUT : r;
}
