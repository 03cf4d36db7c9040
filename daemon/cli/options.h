/* SPDX-License-Identifier: MIT
 *
 * A verb's command line as a table: from it come the parsing, the one-line errors and the --help text.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/profile/profile.h"

/* Bounds of --rate and, turned round, of --period. */
#define CLI_MIN_RATE_HZ 1
#define CLI_MAX_RATE_HZ 10000

struct cli_option {
	const char *name;     /* without the dashes */
	char letter;          /* 0: none */
	const char *argument; /* "HZ"; NULL: takes none */
	/* Takes the argument (NULL for an option without). NULL when it was fine, else what is allowed: "a
	 * number of 1 to 10000". */
	const char *(*take)(const char *text, void *into);
	void *into;
	const char *help; /* one line */
};

struct cli_command {
	const char *verb;
	const char *arguments; /* "PID"; "" */
	const char *summary;   /* sentences below the usage line */
	const struct cli_option *options;
	size_t option_count;
	const char *examples; /* indented lines */
	int min_arguments, max_arguments;
};

#define CLI_OPTIONS(table) .options = (table), .option_count = sizeof(table) / sizeof((table)[0])

/* Go on: the command line was right and asked for no help. */
#define CLI_GO_ON (-1)

/* Takes all options. CLI_GO_ON, and *ret_first is the index in argv of the first argument that is none; or
 * the exit status: EXIT_OK after --help, EXIT_USAGE after a line on stderr. */
int cli_options_parse(const struct cli_command *command, int argc, char **argv, int *ret_first);

/* "cbox-profd VERB: <message>; see cbox-profd VERB --help" on stderr; EXIT_USAGE. */
int cli_usage_error(const char *verb, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "cbox-profd: <message>" on stderr; @status. */
int cli_fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For cli_option.take. Each says what it stores. Times have a unit. */
const char *cli_take_flag(const char *text, void *into); /* bool */
const char *cli_take_text(const char *text, void *into); /* const char *; not empty */
const char *cli_take_duration(
	const char *text, void *into);                     /* uint64_t ns: 10s, 500ms, 2m, 1h; more than 0 */
const char *cli_take_rate(const char *text, void *into);   /* uint64_t ns: the period of a rate in Hz */
const char *cli_take_period(const char *text, void *into); /* uint64_t ns: 10ms, 250us; bounds of the rate */
const char *cli_take_rows(const char *text, void *into);   /* size_t: 1 to 1000 */
const char *cli_take_count(const char *text, void *into);  /* uint64_t: 1 to 1000000 */
const char *cli_take_pid(const char *text, void *into);    /* pid_t: 1 and up */
const char *cli_take_order(const char *text, void *into);  /* enum profile_order */
