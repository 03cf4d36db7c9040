/* SPDX-License-Identifier: MIT
 *
 * Command lines from tables. getopt_long() does the splitting; what it would say about a mistake is said here
 * instead, in one line that names the verb and where to read on.
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/options.h"

#define MAX_OPTIONS 24
#define NS_PER_S UINT64_C(1000000000)

static void print_help(const struct cli_command *command)
{
	printf("usage: cbox-profd %s%s%s%s\n\n%s\n\n", command->verb, command->arguments[0] ? " " : "",
		command->arguments, command->option_count > 0 ? " [OPTIONS]" : "", command->summary);
	for (size_t i = 0; i < command->option_count; i++) {
		const struct cli_option *option = &command->options[i];
		char left[64], letter[8] = "    ";

		if (option->letter)
			snprintf(letter, sizeof(letter), "-%c, ", option->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
			option->argument ? option->argument : "");
		printf("  %-26s %s\n", left, option->help);
	}
	printf("  %-26s %s\n\nexamples:\n%s", "-h, --help", "this text", command->examples);
}

int cli_usage_error(const char *verb, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "cbox-profd %s: ", verb);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "; see cbox-profd %s --help\n", verb);
	return EXIT_USAGE;
}

int cli_fail(int status, const char *format, ...)
{
	va_list arguments;

	fputs("cbox-profd: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return status;
}

static int check_count(const struct cli_command *command, int argc, char **argv, int first)
{
	int given = argc - first;

	if (given < command->min_arguments)
		return cli_usage_error(command->verb, "%s is missing", command->arguments);
	if (given > command->max_arguments)
		return cli_usage_error(
			command->verb, "unexpected argument \"%s\"", argv[first + command->max_arguments]);
	return CLI_GO_ON;
}

int cli_options_parse(const struct cli_command *command, int argc, char **argv, int *ret_first)
{
	struct option longs[MAX_OPTIONS + 2] = {0};
	char shorts[2 * MAX_OPTIONS + 4] = ":h", *end = shorts + 2;
	size_t count = command->option_count < MAX_OPTIONS ? command->option_count : MAX_OPTIONS;
	int found, index;

	/* Long options are told apart by their index, from 256 on: no letter is that large. */
	for (size_t i = 0; i < count; i++) {
		const struct cli_option *option = &command->options[i];

		longs[i] = (struct option){option->name, option->argument ? required_argument : no_argument,
			NULL, (int)(256 + i)};
		if (option->letter)
			*end++ = option->letter;
		if (option->letter && option->argument)
			*end++ = ':';
	}
	longs[count] = (struct option){"help", no_argument, NULL, 'h'};
	opterr = 0;
	optind = 0; /* a fresh start, whatever was parsed before */
	while ((found = getopt_long(argc, argv, shorts, longs, &index)) != -1) {
		if (found == 'h') {
			print_help(command);
			return EXIT_OK;
		}
		if (found == ':')
			return cli_usage_error(command->verb, "%s wants an argument", argv[optind - 1]);
		if (found == '?' && optopt && optopt < 256 && isprint(optopt))
			return cli_usage_error(command->verb, "unknown option -%c", optopt);
		if (found == '?')
			return cli_usage_error(command->verb, "unknown option %s", argv[optind - 1]);
		const struct cli_option *option = command->options;
		if (found >= 256)
			option += found - 256;
		else
			while (option->letter != found)
				option++;
		const char *allowed = option->take(optarg, option->into);
		if (allowed)
			return cli_usage_error(
				command->verb, "--%s \"%s\": must be %s", option->name, optarg, allowed);
	}
	*ret_first = optind;
	return check_count(command, argc, argv, optind);
}

const char *cli_take_flag(const char *text, void *into)
{
	*(bool *)into = true;
	return NULL;
}

const char *cli_take_text(const char *text, void *into)
{
	if (!text[0])
		return "something";
	*(const char **)into = text;
	return NULL;
}

/* A whole decimal number and nothing else. */
static bool parse_number(const char *text, uint64_t max, uint64_t *ret_number)
{
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	if (errno || *end || number > max)
		return false;
	*ret_number = number;
	return true;
}

static bool parse_duration(const char *text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"min", 60e9}, {"h", 3600e9}};
	const double longest_ns = 366.0 * 24 * 3600e9;
	char *end;

	/* strtod() knows more than a person would call a duration: signs, "inf", hexadecimal. */
	if (strspn(text, "0123456789.") == 0)
		return false;
	double number = strtod(text, &end);
	if (strspn(text, "0123456789.") != (size_t)(end - text))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].unit) != 0)
			continue;
		double ns = number * units[i].ns;
		if (ns < 1 || ns > longest_ns)
			return false;
		*ret_ns = (uint64_t)(ns + 0.5);
		return true;
	}
	return false;
}

/* A number alone would be seconds to one, milliseconds to another. */
static bool is_without_unit(const char *text)
{
	return text[0] && !text[strspn(text, "0123456789.")];
}

const char *cli_take_duration(const char *text, void *into)
{
	if (is_without_unit(text))
		return "a time with its unit, which is missing: 10s, 500ms, 2m";
	return parse_duration(text, into) ? NULL : "a time such as 10s, 500ms or 2m, at most a year";
}

const char *cli_take_rate(const char *text, void *into)
{
	uint64_t rate_hz;

	if (!parse_number(text, CLI_MAX_RATE_HZ, &rate_hz) || rate_hz < CLI_MIN_RATE_HZ)
		return "a number of samples a second, 1 to 10000";
	*(uint64_t *)into = NS_PER_S / rate_hz;
	return NULL;
}

const char *cli_take_period(const char *text, void *into)
{
	uint64_t period_ns;

	if (is_without_unit(text))
		return "a time with its unit, which is missing: 10ms, 250us";
	if (!parse_duration(text, &period_ns) || period_ns < NS_PER_S / CLI_MAX_RATE_HZ ||
		period_ns > NS_PER_S / CLI_MIN_RATE_HZ)
		return "a time of 100us to 1s";
	*(uint64_t *)into = period_ns;
	return NULL;
}

const char *cli_take_rows(const char *text, void *into)
{
	uint64_t rows;

	if (!parse_number(text, 1000, &rows) || rows < 1)
		return "a number of 1 to 1000";
	*(size_t *)into = rows;
	return NULL;
}

const char *cli_take_count(const char *text, void *into)
{
	uint64_t count;

	if (!parse_number(text, 1000000, &count) || count < 1)
		return "a number of 1 to 1000000";
	*(uint64_t *)into = count;
	return NULL;
}

const char *cli_take_pid(const char *text, void *into)
{
	uint64_t pid;

	if (!parse_number(text, INT_MAX, &pid) || pid < 1)
		return "a process id";
	*(pid_t *)into = (pid_t)pid;
	return NULL;
}

const char *cli_take_order(const char *text, void *into)
{
	return profile_order_parse(text, into) == 0
		       ? NULL
		       : "self_wall, total_wall, self_cpu, total_cpu or self_samples";
}
