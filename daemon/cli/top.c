/* SPDX-License-Identifier: MIT
 *
 * `top`: the table of functions from the daemon's windows, once or again each second. What is shown is what
 * was collected since the last reset.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon/cli/ask.h"
#include "daemon/cli/cli.h"
#include "daemon/export/export.h"

#define REFRESH_MS 1000
#define DEFAULT_ROWS 20

/* The alternate screen, so that what was on the terminal before is there again afterwards. */
#define SCREEN_ENTER "\x1b[?1049h\x1b[?25l"
#define SCREEN_CLEAR "\x1b[H\x1b[2J"
#define SCREEN_LEAVE "\x1b[?25h\x1b[?1049l"

struct top_options {
	struct question question;
	size_t rows;
	enum profile_order order;
	bool once;
};

static void read_row(
	const cJSON *json, uint32_t row, struct function_name *frame, struct profile_function *function)
{
	const cJSON *self = cJSON_GetObjectItemCaseSensitive(json, "self");
	const cJSON *total = cJSON_GetObjectItemCaseSensitive(json, "total");

	*frame = (struct function_name){
		.name = answer_string(json, "function"),
		.file = answer_string(json, "file"),
		.line = (uint32_t)answer_count(json, "line"),
	};
	*function = (struct profile_function){
		.frame = row,
		.self_samples = answer_count(self, "samples"),
		.self_wall_ns = answer_count(self, "wall_ns"),
		.self_cpu_ns = answer_count(self, "cpu_ns"),
		.total_samples = answer_count(total, "samples"),
		.total_wall_ns = answer_count(total, "wall_ns"),
		.total_cpu_ns = answer_count(total, "cpu_ns"),
	};
}

/* The table of an answer of the verb `top`. */
static int table_text(const cJSON *answer, enum profile_order order, struct text *text)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(answer, "functions"), *item;
	const cJSON *total = cJSON_GetObjectItemCaseSensitive(answer, "total");
	size_t room = (size_t)cJSON_GetArraySize(list);
	_cleanup_free_ struct function_name *frames = calloc(room + 1, sizeof(*frames));
	_cleanup_free_ struct profile_function *functions = calloc(room + 1, sizeof(*functions));
	uint32_t row = 0;

	if (!frames || !functions)
		return -ENOMEM;
	cJSON_ArrayForEach(item, list)
	{
		read_row(item, row, &frames[row], &functions[row]);
		row++;
	}
	struct top_table table = {
		.period_ns = answer_count(answer, "period_ns"),
		.samples = answer_count(total, "samples"),
		.wall_ns = answer_count(total, "wall_ns"),
		.cpu_ns = answer_count(total, "cpu_ns"),
		.accounting = answer_accounting(answer),
		.frames = frames,
		.functions = functions,
		.row_count = row,
		.function_count = (size_t)answer_count(answer, "function_count"),
	};
	return export_top_table(&table, order, text);
}

static cJSON *top_request(const struct top_options *options)
{
	_cleanup_(cJSON_Deletep) cJSON *request = question_request(&options->question, "top");
	bool ok = json_add_count(request, "n", options->rows);

	ok &= json_add_string(request, "order", profile_order_name(options->order));
	return ok ? TAKE(request) : NULL;
}

/* Asks and prints one table, behind @before. */
static int show(const struct top_options *options, const char *before)
{
	_cleanup_(cJSON_Deletep) cJSON *request = top_request(options), *answer = NULL;
	_cleanup_text_ struct text text = {0};

	int r = question_ask(&options->question, request, &answer);
	if (!answer)
		return r;
	if (table_text(answer, options->order, &text) < 0)
		return cli_fail(EXIT_FAILED, "no memory");
	fputs(before, stdout);
	fputs(text.bytes, stdout);
	fflush(stdout);
	return EXIT_OK;
}

/* Shows again and again until a signal to end comes. An error ends it too, after the screen is restored. */
static int show_live(const struct top_options *options)
{
	sigset_t ends, before;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	sigprocmask(SIG_BLOCK, &ends, &before);
	_cleanup_close_ int signals = signalfd(-1, &ends, SFD_CLOEXEC);
	if (signals < 0)
		return cli_fail(EXIT_FAILED, "signals can't be waited for: %s", strerror(errno));

	/* A failure before the first table is better told on the terminal as it is. */
	int r = show(options, "");
	if (r != EXIT_OK)
		return r;
	fputs(SCREEN_ENTER, stdout);
	do {
		r = show(options, SCREEN_CLEAR);
		struct pollfd pollfd = {.fd = signals, .events = POLLIN};
		if (r == EXIT_OK && poll(&pollfd, 1, REFRESH_MS) != 0)
			break;
	} while (r == EXIT_OK);
	fputs(SCREEN_LEAVE, stdout);
	fflush(stdout);
	/* What was said on the other screen is gone with it: said again, or it was a passing failure. */
	if (r != EXIT_OK)
		r = show(options, "");
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

int cli_top(int argc, char **argv)
{
	struct top_options top = {.rows = DEFAULT_ROWS, .order = PROFILE_BY_SELF_WALL};
	const struct cli_option options[] = {
		{"once", 0, NULL, cli_take_flag, &top.once,
			"one table, then end (also when stdout is no terminal)"},
		{"rows", 'n', "N", cli_take_rows, &top.rows, "functions shown; 20 if not given"},
		{"order", 0, "ORDER", cli_take_order, &top.order,
			"self_wall, total_wall, self_cpu, total_cpu or self_samples"},
		QUESTION_POOL(top.question),
		QUESTION_PID(top.question),
		QUESTION_JSON(top.question),
		QUESTION_SOCKET(top.question),
	};
	const struct cli_command command = {
		.verb = "top",
		.arguments = "",
		.summary =
			"Shows the functions that took most time in all that the daemon samples, since the "
			"last\n"
			"cbox-profd ctl reset. Self is a function's own code, total is with all it called.",
		CLI_OPTIONS(options),
		.examples = "  cbox-profd top\n"
			    "  cbox-profd top --once --pool www -n 10 --order total_cpu\n"
			    "  cbox-profd top --once --json | jq '.functions[0]'\n",
	};
	int first;

	int r = cli_options_parse(&command, argc, argv, &first);
	if (r != CLI_GO_ON)
		return r;
	if (top.once || top.question.json || !isatty(STDOUT_FILENO))
		return show(&top, "");
	return show_live(&top);
}
