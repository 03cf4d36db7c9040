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
	{"help", cli_help, "this list"},
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
	fputs("\nEach verb explains itself: cbox-profd VERB --help\n", file);
}

static int cli_help(int argc, char **argv)
{
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
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		if (strcmp(name, verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "cbox-profd: unknown verb \"%s\"; cbox-profd help lists them\n", name);
	return EXIT_USAGE;
}
