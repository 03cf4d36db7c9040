/* SPDX-License-Identifier: MIT
 *
 * `ctl`: the verbs that change what the daemon does, each with what it needs and a line that says what it
 * did.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/cli/ask.h"
#include "daemon/cli/cli.h"

struct action {
	const char *verb;
	const char *done;     /* what became of the targets */
	const char *argument; /* "HZ", "PID"; NULL: takes none */
	/* Which filters it understands. */
	bool pool, pid;
};

static const struct action actions[] = {
	{"reset", "emptied", NULL, true, false},
	{"suspend", "suspended; what was collected stays", NULL, true, true},
	{"resume", "resumed", NULL, true, true},
	{"rate", "at the new rate", "HZ", true, false},
	{"attach", "added", "PID", true, false},
	{"detach", "let go", "PID", false, false},
	{"reload", NULL, NULL, false, false},
};

static const struct action *find_action(const char *verb)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(verb, actions[i].verb) == 0)
			return &actions[i];
	}
	return NULL;
}

/* Takes the action's own argument. NULL, or what is allowed. Which rates are, the daemon knows, whose
 * configuration says it. */
static const char *take_argument(
	const struct action *action, const char *text, struct question *question, uint64_t *ret_rate_hz)
{
	if (strcmp(action->argument, "HZ") == 0)
		return cli_take_count(text, ret_rate_hz)
			       ? "a whole number of samples a second, from 1 to the configuration's "
				 "sampling.max_rate (1000 where it says nothing)"
			       : NULL;
	return cli_take_pid(text, &question->pid);
}

static int check_filters(const struct action *action, const struct question *question)
{
	if (question->pool && !action->pool)
		return cli_usage_error("ctl", "%s knows no --pool", action->verb);
	if (question->pid > 0 && !action->pid)
		return cli_usage_error("ctl", "%s knows no --pid", action->verb);
	return CLI_GO_ON;
}

static void print_done(const struct action *action, const cJSON *result)
{
	uint64_t affected = answer_count(result, "affected");
	const char *note = answer_string(result, "note");

	if (!action->done)
		printf("%s: the configuration was read again\n", action->verb);
	else if (note[0])
		printf("%s: %s\n", action->verb, note);
	else
		printf("%s: %" PRIu64 " %s %s\n", action->verb, affected,
			affected == 1 ? "target" : "targets", action->done);
}

int cli_ctl(int argc, char **argv)
{
	struct question question = {0};
	const struct cli_option options[] = {QUESTION_POOL(question), QUESTION_PID(question),
		QUESTION_JSON(question), QUESTION_SOCKET(question)};
	const struct cli_command command = {
		.verb = "ctl",
		.arguments = "reset|suspend|resume|rate HZ|attach PID|detach PID|reload",
		.summary =
			"Tells the daemon what to do. For root and members of socket.admin_group.\n\n"
			"  reset       empties the windows that top and profile show     [--pool]\n"
			"  suspend     stops sampling, keeps what was collected          [--pool] [--pid]\n"
			"  resume      goes on                                           [--pool] [--pid]\n"
			"  rate HZ     samples a second, up to sampling.max_rate         [--pool]\n"
			"  attach PID  samples a process, or an FPM master's workers too [--pool]: its name "
			"in lists\n"
			"  detach PID  no more\n"
			"  reload      reads the configuration again; a bad one changes nothing",
		CLI_OPTIONS(options),
		.examples = "  cbox-profd ctl rate 1000 --pool www\n"
			    "  cbox-profd ctl reset && sleep 60 && cbox-profd top --once\n"
			    "  cbox-profd ctl suspend --pid 4711\n",
		.min_arguments = 1,
		.max_arguments = 2,
	};
	_cleanup_(cJSON_Deletep) cJSON *result = NULL;
	uint64_t rate_hz = 0;
	int first;

	int r = cli_options_parse(&command, argc, argv, &first);
	if (r != CLI_GO_ON)
		return r;
	const struct action *action = find_action(argv[first]);
	if (!action)
		return cli_usage_error("ctl", "unknown action \"%s\"", argv[first]);
	r = check_filters(action, &question);
	if (r != CLI_GO_ON)
		return r;
	if (!action->argument && argc - first > 1)
		return cli_usage_error("ctl", "%s takes no argument", action->verb);
	if (action->argument && argc - first < 2)
		return cli_usage_error("ctl", "%s: %s is missing", action->verb, action->argument);
	if (action->argument) {
		const char *allowed = take_argument(action, argv[first + 1], &question, &rate_hz);

		if (allowed)
			return cli_usage_error(
				"ctl", "%s \"%s\": must be %s", action->verb, argv[first + 1], allowed);
	}
	_cleanup_(cJSON_Deletep) cJSON *request = question_request(&question, action->verb);
	if (request && rate_hz > 0 && !json_add_count(request, "rate_hz", rate_hz))
		return cli_fail(EXIT_FAILED, "no memory");
	r = question_ask(&question, request, &result);
	if (r == EXIT_OK && !question.json)
		print_done(action, result);
	return r;
}
