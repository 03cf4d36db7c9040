/* SPDX-License-Identifier: MIT
 *
 * The verbs: what main() has a table of, and what they share.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct verb {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the verb's name; returns an exit status */
	const char *summary;               /* one line */
};

/* Exit statuses, the same for every verb. */
enum {
	EXIT_OK = 0,
	EXIT_FAILED = 1,        /* it was tried and did not work; the line on stderr says why */
	EXIT_USAGE = 2,         /* the command line is wrong */
	EXIT_NO_PERMISSION = 3, /* a capability, Yama, seccomp or the socket's mode stands in the way */
	EXIT_NO_TARGET = 4,     /* no such process or pool, or it is not PHP, or has no workers */
	EXIT_UNSUPPORTED = 5,   /* PHP, but a version or build that can't be read */
	EXIT_NO_DAEMON = 6,     /* the socket is not there or does not answer */
	EXIT_INTERRUPTED = 130,
};

int cli_daemon(int argc, char **argv);
int cli_attach(int argc, char **argv);
int cli_dump(int argc, char **argv);
int cli_status(int argc, char **argv);
int cli_targets(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_ctl(int argc, char **argv);
int cli_doctor(int argc, char **argv);
