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

/* Asks, and makes the table; with --json the answer is printed as it is. */
static int ask_table(const struct top_options *options, struct text *text)
{
	_cleanup_(cJSON_Deletep) cJSON *request = top_request(options), *answer = NULL;

	int r = question_ask(&options->question, request, &answer);
	if (r == EXIT_OK && !options->question.json && table_text(answer, options->order, text) < 0)
		return cli_fail(EXIT_FAILED, "no memory");
	return r;
}

static void print(const char *before, const struct text *text)
{
	fputs(before, stdout);
	if (text->bytes)
		fputs(text->bytes, stdout);
	fflush(stdout);
}

static int show_once(const struct top_options *options)
{
	_cleanup_text_ struct text text = {0};

	int r = ask_table(options, &text);
	print("", &text);
	return r;
}

/* Shows again and again until a signal to end comes. An error ends it too, after the screen is restored. */
static int show_live(const struct top_options *options)
{
	_cleanup_text_ struct text first = {0};
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
	int r = ask_table(options, &first);
	if (r != EXIT_OK)
		return r;
	struct pollfd pollfd = {.fd = signals, .events = POLLIN};
	print(SCREEN_ENTER SCREEN_CLEAR, &first);
	while (r == EXIT_OK && poll(&pollfd, 1, REFRESH_MS) == 0) {
		_cleanup_text_ struct text text = {0};

		r = ask_table(options, &text);
		if (r == EXIT_OK)
			print(SCREEN_CLEAR, &text);
	}
	fputs(SCREEN_LEAVE, stdout);
	fflush(stdout);
	/* What was said on the other screen is gone with it: said again, or it was a passing failure. */
	if (r != EXIT_OK)
		r = show_once(options);
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
		return show_once(&top);
	return show_live(&top);
}
