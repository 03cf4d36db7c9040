/* SPDX-License-Identifier: MIT
 *
 * One process: is it there, whose is it, can its memory be read, is it PHP of a known kind, does a sample
 * work? Stops at the first thing the later checks can't do without.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reader/php_process.h"
#include "reader/refusal.h"
#include "daemon/cli/cli.h"
#include "daemon/cli/doctor_report.h"
#include "daemon/cli/process.h"
#include "symbols/layout.h"

static bool check_exists(struct report *report, pid_t pid, struct discovered *ret_identity)
{
	if (discovery_identify(pid, ret_identity) < 0) {
		report_add(report, "process", CHECK_FAIL, EXIT_NO_TARGET, "ps lists those there are",
			"there is no such process as %d, or it has ended", pid);
		return false;
	}
	if (process_is_kernel_thread(pid)) {
		report_add(report, "process", CHECK_FAIL, EXIT_NO_TARGET,
			"name a php-fpm worker or master, or a php process", "%d is a kernel thread", pid);
		return false;
	}
	report_add(report, "process", CHECK_OK, 0, "", "%d is there; its uid is %u, ours is %u", pid,
		ret_identity->uid, geteuid());
	return true;
}

static void check_namespaces(struct report *report, pid_t pid)
{
	if (refusal_shares_namespace(pid, "user"))
		report_add(report, "its spaces", CHECK_OK, 0, "", "the same user namespace%s%s",
			refusal_shares_namespace(pid, "pid") ? "" : ", another pid namespace",
			refusal_shares_namespace(pid, "mnt") ? "" : ", other mounts: none stands in the way");
	else
		report_add(report, "its spaces", CHECK_NOTE, 0,
			"if its memory can't be read: run as root of the machine",
			"another user namespace, or it can't be seen which");
}

/* The workers of a master. */
static void check_workers(struct report *report, pid_t pid)
{
	_cleanup_(discovery_freep) struct discovery *discovery = NULL;
	const struct discovered *workers = NULL;
	char list[200] = "";
	size_t count = 0;

	if (discovery_new(&discovery) < 0 || process_means(pid, discovery, &workers, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(list);

		snprintf(list + length, sizeof(list) - length, " %d", workers[i].pid);
	}
	if (count == 0)
		report_add(report, "workers", CHECK_NOTE, 0,
			"send it a request (pm = ondemand starts workers with the first)",
			"an FPM master without workers");
	else
		report_add(report, "workers", CHECK_OK, 0, "", "an FPM master with %zu:%s", count, list);
}

static struct php_process *check_php(struct report *report, pid_t pid, const struct frame_names *names)
{
	static const char *const sources[] = {
		[LAYOUT_FROM_TABLE] = "this program's table",
		[LAYOUT_FROM_DWARF] = "its debug information",
		[LAYOUT_TABLE_AND_DWARF] = "this program's table, and its debug information agrees",
	};
	const struct php_process_options options = {0};
	struct php_process *process = NULL;
	char why[512] = "";

	int r = php_process_open(pid, names, &options, &process, why, sizeof(why));
	if (r != 0) {
		report_add(report, "php", CHECK_FAIL, process_exit_status(r), "", "%s", why);
		return NULL;
	}
	const struct php_binary *binary = php_process_binary(process);
	report_add(report, "php", CHECK_OK, 0, "", "PHP %s (%s, %s) in %s", binary->version, binary->sapi,
		binary->debug ? "NTS debug" : "NTS", binary->path);
	report_add(report, "layout", CHECK_OK, 0, "", "%s, from %s; the live memory fits it",
		binary->layout->version, sources[binary->layout_source]);
	return process;
}

static void check_activity(struct report *report, pid_t pid, struct php_process *process)
{
	struct activity *activity = php_process_activity(process);
	struct activity_clocks clocks;

	if (!activity || activity_read_clocks(activity, &clocks) < 0)
		report_add(report, "its clocks", CHECK_FAIL, EXIT_NO_PERMISSION, "run as root",
			"/proc/%d/schedstat can't be read", pid);
	else if (!activity_knows_syscall(activity))
		report_add(report, "its clocks", CHECK_NOTE, 0, "run with CAP_SYS_PTRACE",
			"/proc/%d/syscall can't be read: waiting costs as much as running", pid);
	else
		report_add(report, "its clocks", CHECK_OK, 0, "", "schedstat and syscall can be read");
}

static void check_sample(struct report *report, struct php_process *process)
{
	static struct php_sample sample;

	int r = php_process_sample(process, &sample);
	if (r == 0)
		report_add(report, "sample", CHECK_OK, 0, "", "taken: %zu frames%s%s",
			sample.count + sample.omitted, sample.request.path[0] ? ", serving " : "",
			sample.request.path);
	else if (r == PHP_PROCESS_E_IDLE)
		report_add(report, "sample", CHECK_OK, 0, "", "taken: idle, no PHP code on its stack");
	else if (r == PHP_PROCESS_E_TORN)
		report_add(report, "sample", CHECK_OK, 0, "", "it runs, and moved meanwhile: that happens");
	else
		report_add(report, "sample", CHECK_NOTE, 0, "try again; is it ending?",
			"none could be taken this time");
}

static uint32_t no_number(void *context, const struct function_name *name)
{
	return 0;
}

void doctor_check_target(struct report *report, pid_t pid)
{
	const struct frame_names names = {.intern = no_number};
	struct discovered identity;

	if (!check_exists(report, pid, &identity))
		return;
	check_namespaces(report, pid);
	if (process_is_master(pid))
		check_workers(report, pid);
	_cleanup_(php_process_closep) struct php_process *process = check_php(report, pid, &names);
	if (!process)
		return;
	check_activity(report, pid, process);
	check_sample(report, process);
}
