/* SPDX-License-Identifier: MIT
 *
 * `doctor`: what keeps this program from reading a process? All checks are made and told, also those that are
 * well, so that the list can be sent to somebody; the exit status is that of the first that failed. Asked
 * about a process, it is that process's: an own script can be read without any of what other users' workers
 * need.
 */
#include <stdarg.h>
#include <stdio.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/client.h"
#include "daemon/cli/doctor_report.h"
#include "daemon/cli/options.h"
#include "daemon/export/json.h"

void report_add(struct report *report, const char *name, enum check_state state, int exit_status,
	const char *remedy, const char *found_format, ...)
{
	va_list arguments;

	if (report->count == REPORT_MAX_CHECKS)
		return;
	struct check *check = &report->checks[report->count++];
	check->name = name;
	check->state = state;
	snprintf(check->remedy, sizeof(check->remedy), "%s", remedy);
	va_start(arguments, found_format);
	vsnprintf(check->found, sizeof(check->found), found_format, arguments);
	va_end(arguments);
	if (state == CHECK_FAIL && report->exit_status == EXIT_OK)
		report->exit_status = exit_status;
}

/* What would be in the way of other processes is not in the way of the one that was asked about. */
static void forgive(struct report *report)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->checks[i].state == CHECK_FAIL)
			report->checks[i].state = CHECK_NOTE;
}

static void print_report(const struct report *report, pid_t pid)
{
	static const char *const words[] = {[CHECK_OK] = "ok", [CHECK_NOTE] = "note", [CHECK_FAIL] = "FAIL"};

	for (size_t i = 0; i < report->count; i++) {
		const struct check *check = &report->checks[i];

		printf("%-4s  %-12s %s\n", words[check->state], check->name, check->found);
		if (check->remedy[0])
			printf("                   -> %s\n", check->remedy);
	}
	if (report->exit_status != EXIT_OK)
		printf("\nSomething stands in the way: see FAIL.\n");
	else if (pid > 0)
		printf("\nNothing stands in the way. Next: cbox-profd attach %d --duration 10s\n", pid);
	else
		printf("\nNothing stands in the way on this machine. Next: cbox-profd doctor PID, for one "
		       "process\n");
}

static int print_json(const struct report *report)
{
	static const char *const words[] = {[CHECK_OK] = "ok", [CHECK_NOTE] = "note", [CHECK_FAIL] = "fail"};
	_cleanup_(cJSON_Deletep) cJSON *json = cJSON_CreateObject();
	bool ok = json_add_bool(json, "ok", report->exit_status == EXIT_OK);
	cJSON *list = cJSON_AddArrayToObject(json, "checks");

	for (size_t i = 0; i < report->count && ok; i++) {
		cJSON *item = cJSON_CreateObject();

		ok &= json_add_string(item, "check", report->checks[i].name);
		ok &= json_add_string(item, "state", words[report->checks[i].state]);
		ok &= json_add_string(item, "found", report->checks[i].found);
		ok &= json_add_string_or_null(item, "remedy", report->checks[i].remedy);
		ok &= json_append_item(list, item);
	}
	_cleanup_free_ char *text = ok ? cJSON_PrintUnformatted(json) : NULL;
	if (!text)
		return cli_fail(EXIT_FAILED, "no memory");
	puts(text);
	return report->exit_status;
}

int cli_doctor(int argc, char **argv)
{
	struct report report = {0};
	const char *socket = NULL;
	bool json = false;
	const struct cli_option options[] = {
		{"json", 0, NULL, cli_take_flag, &json, "JSON on one line, for programs"},
		{"socket", 0, "PATH", cli_take_text, &socket,
			"the daemon's socket (or environment " CLIENT_PATH_VARIABLE ")"},
	};
	const struct cli_command command = {
		.verb = "doctor",
		.arguments = "[PID]",
		.summary = "Checks one by one what this program needs: capability, Yama, seccomp, "
			   "namespaces, /proc,\n"
			   "real-time priority, the daemon; with PID also that process and its PHP. Says "
			   "what to do.",
		CLI_OPTIONS(options),
		.examples = "  sudo cbox-profd doctor\n"
			    "  cbox-profd doctor $(pgrep -n php)        an own script: no root needed\n"
			    "  sudo cbox-profd doctor 4711\n"
			    "  cbox-profd doctor --json 4711 | jq '.checks[] | select(.state != \"ok\")'\n",
		.max_arguments = 1,
	};
	pid_t pid = 0;
	int first;

	int r = cli_options_parse(&command, argc, argv, &first);
	if (r != CLI_GO_ON)
		return r;
	const char *allowed = first < argc ? cli_take_pid(argv[first], &pid) : NULL;
	if (allowed)
		return cli_usage_error("doctor", "\"%s\": must be %s", argv[first], allowed);
	doctor_check_machine(&report, daemon_client_path(socket));
	if (pid > 0) {
		/* Asked about one process, the verdict is about that one. */
		report.exit_status = EXIT_OK;
		doctor_check_target(&report, pid);
		if (report.exit_status == EXIT_OK)
			forgive(&report);
	}
	if (json)
		return print_json(&report);
	print_report(&report, pid);
	return report.exit_status;
}
