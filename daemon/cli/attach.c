/* SPDX-License-Identifier: MIT
 *
 * `attach`: profiles a process and shows where its time went. Works without a daemon. The result is always
 * written: when the time is up, when the target ends, on Ctrl-C.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/options.h"
#include "daemon/cli/output.h"
#include "daemon/cli/process.h"
#include "daemon/cli/session.h"
#include "daemon/export/export.h"
#include "daemon/export/json.h"

#define DEFAULT_PERIOD_NS UINT64_C(10000000)
#define DEFAULT_ROWS 20

enum format { FORMAT_TOP, FORMAT_FOLDED, FORMAT_JSON };

struct attach_options {
	struct session_options session;
	size_t rows;
	enum profile_order order;
	enum format format;
	const char *output;
	uint64_t rate_ns, period_ns; /* of --rate and of --period; 0: not given */
	bool lines, json;
};

static const char *take_format(const char *text, void *into)
{
	static const char *const names[] = {
		[FORMAT_TOP] = "top", [FORMAT_FOLDED] = "folded", [FORMAT_JSON] = "json"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*(enum format *)into = (enum format)i;
			return NULL;
		}
	}
	return "top, folded or json";
}

static int append_json(cJSON *json, struct text *text)
{
	_cleanup_(cJSON_Deletep) cJSON *owned = json;
	_cleanup_free_ char *printed = cJSON_PrintUnformatted(owned);

	if (!printed)
		return -ENOMEM;
	text_append(text, "%s\n", printed);
	return text->error;
}

static void append_hint(
	const struct attach_options *options, const struct profile *profile, struct text *text)
{
	struct discovered identity;
	pid_t pid = options->session.pid;

	if (discovery_identify(pid, &identity) < 0) /* it has ended: there is nothing more to see */
		return;
	if (profile_sum(profile).samples == 0)
		text_append(text, "\nnext: cbox-profd dump %d    what it does at this moment\n", pid);
	else
		text_append(text,
			"\nnext: cbox-profd attach %d --duration 10s --format folded --output out.folded\n"
			"      flamegraph.pl out.folded > out.svg    the same as a flame graph, for a "
			"browser\n",
			pid);
}

static int write_text(const struct attach_options *options, const struct profile *profile, struct text *text)
{
	switch (options->format) {
	case FORMAT_FOLDED:
		return export_folded(profile, options->lines, text);
	case FORMAT_JSON:
		return append_json(export_profile_json(profile), text);
	case FORMAT_TOP:
		break;
	}
	if (options->json)
		return append_json(export_top_json(profile, options->order, options->rows), text);
	int r = export_top_text(profile, options->order, options->rows, text);
	if (r == 0)
		append_hint(options, profile, text);
	return r < 0 ? r : text->error;
}

/* Who keeps a result that no person reads is told on stderr what it is worth. */
static void tell_worth(const struct attach_options *options, const struct profile *profile)
{
	bool is_table = options->format == FORMAT_TOP && !options->json;
	_cleanup_text_ struct text text = {0};

	if (is_table || (!options->output && isatty(STDOUT_FILENO)))
		return;
	if (profile_sum(profile).samples == 0)
		export_why_empty_text(&profile->accounting, &text);
	if (export_accounting_text(&profile->accounting, &text) == 0)
		fputs(text.bytes, stderr);
}

static const char *output_failure(int error)
{
	return error == -ENXIO ? "nobody reads this pipe; start its reader first" : strerror(-error);
}

/* What can be refused is refused before any time is spent. */
static int check_target(struct session_options *session)
{
	const struct frame_names no_names = {0};
	const struct php_process_options options = {.blocking = session->blocking};
	_cleanup_(php_process_closep) struct php_process *process = NULL;
	char why[512] = "";

	if (process_is_kernel_thread(session->pid))
		return cli_fail(EXIT_NO_TARGET, "process %d: it is a kernel thread, not PHP", session->pid);
	session->is_master = process_is_master(session->pid);
	int r = php_process_open(session->pid, &no_names, &options, &process, why, sizeof(why));
	if (r == 0 || r == PHP_BINARY_E_NOT_STARTED)
		return EXIT_OK;
	return cli_fail(process_exit_status(r), "%s", why);
}

static void tell_what_blocking_does(const struct session_options *session)
{
	fprintf(stderr,
		"cbox-profd: %sprocess %d is being stopped for each sample (--blocking): it runs slower, and "
		"system calls with a time limit may fail in it with EINTR\n",
		session->is_master ? "each worker of " : "", session->pid);
}

static int run(struct attach_options *options)
{
	_cleanup_(output_close) struct output output = OUTPUT_STANDARD;
	_cleanup_(profile_freep) struct profile *profile = NULL;
	_cleanup_text_ struct text text = {0};
	char why[512] = "";

	int r = check_target(&options->session);
	if (r != EXIT_OK)
		return r;
	if (options->session.blocking)
		tell_what_blocking_does(&options->session);
	session_block_signals();
	signal(SIGPIPE, SIG_IGN); /* a reader that goes is told by write() */
	r = output_open(options->output, &output);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "%s: can't be written: %s", options->output, output_failure(r));
	r = session_run(&options->session, &profile, why, sizeof(why));
	if (r != 0)
		return cli_fail(r, "%s", why);
	r = write_text(options, profile, &text);
	/* A reader may take as long as it likes: a signal ends the waiting for it. */
	if (!output_is_replaced(&output))
		session_unblock_signals();
	if (r == 0)
		r = output_commit(&output, text.bytes ? text.bytes : "", text.length);
	if (r < 0)
		return cli_fail(EXIT_FAILED, "%s: the result can't be written: %s",
			options->output ? options->output : "standard output", strerror(-r));
	tell_worth(options, profile);
	return EXIT_OK;
}

int cli_attach(int argc, char **argv)
{
	struct attach_options attach = {
		.session = {.progress = isatty(STDERR_FILENO)},
		.rows = DEFAULT_ROWS,
		.order = PROFILE_BY_SELF_WALL,
	};
	const struct cli_option options[] = {
		{"duration", 'd', "TIME", cli_take_duration, &attach.session.duration_ns,
			"10s, 500ms, 2m; if not given: until Ctrl-C, or the target ends"},
		{"rate", 'r', "HZ", cli_take_rate, &attach.rate_ns,
			"samples a second of each process, 1 to 10000; 100 if not given"},
		{"period", 0, "TIME", cli_take_period, &attach.period_ns,
			"the same as time between two samples: 10ms"},
		{"blocking", 0, NULL, cli_take_flag, &attach.session.blocking,
			"for reference: stops it for each sample; its calls with a time limit may fail "
			"(EINTR)"},
		{"top", 'n', "N", cli_take_rows, &attach.rows, "functions in the table; 20 if not given"},
		{"order", 0, "ORDER", cli_take_order, &attach.order,
			"self_wall, total_wall, self_cpu, total_cpu or self_samples"},
		{"format", 'f', "FORMAT", take_format, &attach.format,
			"top (a table), folded (for flame graphs) or json (everything)"},
		{"json", 0, NULL, cli_take_flag, &attach.json, "the table as JSON on one line"},
		{"lines", 0, NULL, cli_take_flag, &attach.lines, "folded: with the line each frame runs"},
		{"output", 'o', "FILE", cli_take_text, &attach.output,
			"write there, whole or not at all; - is standard output"},
	};
	const struct cli_command command = {
		.verb = "attach",
		.arguments = "PID",
		.summary = "Profiles a PHP process from outside and shows where its time went. PID is an FPM "
			   "worker, any\n"
			   "PHP CLI process, or an FPM master: then all its workers, also those to come. "
			   "Needs no daemon.\n"
			   "Ctrl-C ends it with the result.",
		CLI_OPTIONS(options),
		.examples = "  cbox-profd attach $(pgrep -o php-fpm) --duration 10s\n"
			    "  cbox-profd attach 4711 --rate 1000 --order total_cpu\n"
			    "  cbox-profd attach 4711 -d 30s --format folded -o out.folded\n",
		.min_arguments = 1,
		.max_arguments = 1,
	};
	int first;

	int r = cli_options_parse(&command, argc, argv, &first);
	if (r != CLI_GO_ON)
		return r;
	const char *allowed = cli_take_pid(argv[first], &attach.session.pid);
	if (allowed)
		return cli_usage_error("attach", "\"%s\": must be %s", argv[first], allowed);
	if (attach.rate_ns && attach.period_ns)
		return cli_usage_error("attach", "--rate and --period say the same: only one can be given");
	if (attach.rate_ns || attach.period_ns)
		attach.session.period_ns = attach.rate_ns ? attach.rate_ns : attach.period_ns;
	else
		attach.session.period_ns = DEFAULT_PERIOD_NS;
	if (attach.lines && attach.format != FORMAT_FOLDED)
		return cli_usage_error(
			"attach", "--lines goes with --format folded; json has the lines always");
	if (attach.json && attach.format == FORMAT_FOLDED)
		return cli_usage_error("attach", "--json goes not with --format folded");
	return run(&attach);
}
