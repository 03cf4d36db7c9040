/* SPDX-License-Identifier: MIT
 *
 * cbox-profd: what PHP is doing, seen from outside. This file is the table of verbs; each has a file of its
 * own in daemon/cli/.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/cli/cli.h"

static int cli_help(int argc, char **argv);
static int cli_version(int argc, char **argv);

static const struct verb verbs[] = {
	{"attach", cli_attach,
		"profile a PHP process, or all workers of an FPM master, and show where time went"},
	{"dump", cli_dump, "show the PHP stack of a process as it is now"},
	{"doctor", cli_doctor,
		"find out what keeps this program from reading a process, and what to do about it"},
	{"daemon", cli_daemon, "sample the configured pools and answer on a socket; what systemd runs"},
	{"status", cli_status, "what the daemon does, and how well"},
	{"targets", cli_targets, "the processes the daemon samples, and what they serve now"},
	{"top", cli_top, "the functions that took most time, of all the daemon samples"},
	{"ctl", cli_ctl, "tell the daemon: reset, suspend, resume, rate, reload, attach, detach"},
	{"help", cli_help, "this list; help VERB: what that verb says of itself"},
	{"version", cli_version, "the program's version"},
};

static void print_verbs(FILE *file)
{
	fputs("cbox-profd " CBOX_PROFD_VERSION
	      ": why is this PHP request slow? Answers from outside the process.\n\n"
	      "usage: cbox-profd VERB [ARGUMENTS]\n\n",
		file);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		fprintf(file, "  %-9s %s\n", verbs[i].name, verbs[i].summary);
	fputs("\nEach verb explains itself: cbox-profd VERB --help\n"
	      "\nexit status:\n"
	      "  0  done                        4  no such process or pool, no PHP in it, no workers\n"
	      "  1  failed; stderr says why     5  PHP, but of a version or build that can't be read\n"
	      "  2  wrong command line          6  no daemon answers\n"
	      "  3  not permitted\n",
		file);
}

static const struct verb *find_verb(const char *name)
{
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(name, verbs[i].name) == 0)
			return &verbs[i];
	}
	return NULL;
}

static int refuse_verb(const char *name)
{
	fprintf(stderr, "cbox-profd: unknown verb \"%s\"; cbox-profd help lists them\n", name);
	return EXIT_USAGE;
}

static int cli_help(int argc, char **argv)
{
	const struct verb *verb = argc > 1 ? find_verb(argv[1]) : NULL;
	char help[] = "--help";

	if (argc > 1 && !verb && strcmp(argv[1], "--help") != 0 && strcmp(argv[1], "-h") != 0)
		return refuse_verb(argv[1]);
	if (verb && verb->run != cli_help && verb->run != cli_version)
		return verb->run(2, (char *[]){argv[1], help, NULL});
	print_verbs(stdout);
	return EXIT_OK;
}

static int cli_version(int argc, char **argv)
{
	puts("cbox-profd " CBOX_PROFD_VERSION);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_verbs(stderr);
		return EXIT_USAGE;
	}
	const char *name = argv[1];
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	const struct verb *verb = find_verb(name);
	return verb ? verb->run(argc - 1, argv + 1) : refuse_verb(name);
}
