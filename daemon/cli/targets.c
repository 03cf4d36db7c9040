/* SPDX-License-Identifier: MIT
 *
 * `targets`: a line a process that the daemon samples, and the request it serves.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/cli/ask.h"
#include "daemon/cli/cli.h"

static void print_target(const cJSON *target)
{
	uint64_t age_ns = answer_count(target, "request_age_ns");
	const char *state = answer_string(target, "state");
	char age[24] = "-";

	/* Nobody looks at it: the request that was on at the last look may have ended long ago. */
	if (answer_flag(target, "suspended")) {
		printf("%8" PRIu64 "  %-12.12s %-9.9s %-9.9s suspended\n", answer_count(target, "pid"),
			answer_string(target, "pool"), answer_string(target, "php_version"),
			answer_string(target, "sapi"));
		return;
	}
	if (age_ns > 0)
		snprintf(age, sizeof(age), "%.3f", (double)age_ns / 1e9);
	printf("%8" PRIu64 "  %-12.12s %-9.9s %-9.9s %-9.9s %7.4g %9" PRIu64 " %9s  %s %s\n",
		answer_count(target, "pid"), answer_string(target, "pool"),
		answer_string(target, "php_version"), answer_string(target, "sapi"), state,
		(double)answer_count(target, "period_ns") / 1e6, answer_count(target, "requests_seen"), age,
		answer_string(target, "method"), answer_string(target, "path"));
	if (answer_string(target, "trace_id")[0])
		printf("%10strace %s\n", "", answer_string(target, "trace_id"));
}

/* By pool, then by pid. */
static int compare_targets(const void *left, const void *right)
{
	const cJSON *a = *(const cJSON *const *)left, *b = *(const cJSON *const *)right;
	uint64_t a_pid = answer_count(a, "pid"), b_pid = answer_count(b, "pid");
	int by_pool = strcmp(answer_string(a, "pool"), answer_string(b, "pool"));

	return by_pool ? by_pool : (a_pid > b_pid) - (a_pid < b_pid);
}

static bool any_target(const cJSON *answer)
{
	return cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(answer, "targets")) > 0;
}

/* The answer to filters that nothing passes is an empty list: asks `top`, which names what there is. */
static int tell_absent(const struct question *question)
{
	const struct question same = {
		.socket = question->socket, .pool = question->pool, .pid = question->pid};
	_cleanup_(cJSON_Deletep) cJSON *request = question_request(&same, "top"), *answer = NULL;

	int r = question_ask(&same, request, &answer);
	/* It may have come, or left what it did behind, in between. */
	return r == EXIT_OK ? cli_fail(EXIT_NO_TARGET, "no process of that kind is sampled now") : r;
}

static int print_targets(const cJSON *answer)
{
	const cJSON *targets = cJSON_GetObjectItemCaseSensitive(answer, "targets"), *target;
	_cleanup_free_ const cJSON **sorted = NULL;
	size_t count = 0;

	if (!any_target(answer)) {
		puts("No process is sampled that you may see. cbox-profd status says which could not be "
		     "attached,\n"
		     "and which entries of the daemon's configuration (pools:) find nothing.");
		return EXIT_OK;
	}
	sorted = calloc((size_t)cJSON_GetArraySize(targets), sizeof(const cJSON *));
	if (!sorted)
		return cli_fail(EXIT_FAILED, "no memory");
	/* They come one sampling thread's after the other's. */
	cJSON_ArrayForEach(target, targets)
	{
		sorted[count++] = target;
	}
	qsort(sorted, count, sizeof(const cJSON *), compare_targets);
	printf("%8s  %-12s %-9s %-9s %-9s %7s %9s %9s  %s\n", "pid", "pool", "php", "sapi", "state",
		"each ms", "requests", "for s", "request");
	for (size_t i = 0; i < count; i++)
		print_target(sorted[i]);
	return EXIT_OK;
}

int cli_targets(int argc, char **argv)
{
	struct question question = {0};
	const struct cli_option options[] = {QUESTION_POOL(question), QUESTION_PID(question),
		QUESTION_JSON(question), QUESTION_SOCKET(question)};
	const struct cli_command command = {
		.verb = "targets",
		.arguments = "",
		.summary = "Lists the processes the daemon samples: state, how often it looks, the request "
			   "served now\n"
			   "and for how long.",
		CLI_OPTIONS(options),
		.examples = "  cbox-profd targets\n"
			    "  cbox-profd targets --pool www\n"
			    "  cbox-profd targets --json | jq '.targets[] | select(.state == \"running\")'\n",
	};
	_cleanup_(cJSON_Deletep) cJSON *targets = NULL;
	int first;

	int r = cli_options_parse(&command, argc, argv, &first);
	if (r != CLI_GO_ON)
		return r;
	_cleanup_(cJSON_Deletep) cJSON *request = question_request(&question, "targets");
	r = question_ask(&question, request, &targets);
	if (r != EXIT_OK)
		return r;
	if ((question.pool || question.pid > 0) && !any_target(targets))
		return tell_absent(&question);
	return question.json ? EXIT_OK : print_targets(targets);
}
