/* SPDX-License-Identifier: MIT
 *
 * What must hold on this machine, for this user, whatever the target is.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/cli/cli.h"
#include "daemon/cli/client.h"
#include "daemon/cli/doctor_report.h"
#include "daemon/export/json.h"
#include "daemon/sampling/discovery.h"
#include "reader/refusal.h"
#include "symbols/cleanup.h"

/* The daemon is only asked whether it is there, and how many threads sample. */
#define DAEMON_TIMEOUT_NS (UINT64_C(2) * 1000 * 1000 * 1000)
/* The first pid namespace's number, PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h. */
#define FIRST_PID_NAMESPACE "pid:[4026531836]"

static void check_capability(struct report *report, const struct refusal_facts *facts)
{
	if (facts->has_ptrace_capability == 1)
		report_add(report, "capability", CHECK_OK, 0, "", "CAP_SYS_PTRACE is effective");
	else
		report_add(report, "capability", CHECK_FAIL, EXIT_NO_PERMISSION,
			"run as root, or give it to the program: setcap cap_sys_ptrace+ep FILE; in a "
			"container: --cap-add SYS_PTRACE",
			"CAP_SYS_PTRACE is not effective (uid %u): own PHP scripts can be read, other users' "
			"processes and FPM workers can't",
			geteuid());
}

static void check_yama(struct report *report, const struct refusal_facts *facts)
{
	int scope = facts->yama_scope;

	if (scope < 0)
		report_add(report, "yama", CHECK_OK, 0, "", "not there: it restricts nothing");
	else if (scope == 3)
		report_add(report, "yama", CHECK_FAIL, EXIT_NO_PERMISSION,
			"set kernel.yama.ptrace_scope to at most 2 in /etc/sysctl.d and start the machine "
			"again",
			"kernel.yama.ptrace_scope is 3: nobody may read another process, root neither");
	else if (scope > 0 && facts->has_ptrace_capability != 1)
		report_add(report, "yama", CHECK_FAIL, EXIT_NO_PERMISSION, "run with CAP_SYS_PTRACE",
			"kernel.yama.ptrace_scope is %d: without CAP_SYS_PTRACE only own children can be "
			"read",
			scope);
	else
		report_add(report, "yama", CHECK_OK, 0, "",
			"kernel.yama.ptrace_scope is %d: fine with CAP_SYS_PTRACE", scope);
}

static void check_seccomp(struct report *report, const struct refusal_facts *facts)
{
	int mode = facts->seccomp_mode, error = facts->own_read_error;

	if (error == -ENOSYS && mode <= 0)
		report_add(report, "seccomp", CHECK_FAIL, EXIT_NO_PERMISSION,
			"use a kernel with CONFIG_CROSS_MEMORY_ATTACH",
			"this kernel has no process_vm_readv");
	else if (error != 0)
		report_add(report, "seccomp", CHECK_FAIL, EXIT_NO_PERMISSION,
			"run outside of the filter, or allow process_vm_readv in the container's or unit's "
			"seccomp profile",
			"a seccomp filter refuses process_vm_readv (%s; Seccomp: %d in /proc/self/status)",
			strerror(-error), mode);
	else
		report_add(report, "seccomp", CHECK_OK, 0, "", "%s",
			mode > 0 ? "a filter is in force; it lets process_vm_readv through" : "no filter");
}

static void check_pid_namespace(struct report *report)
{
	char link[64];
	ssize_t length = readlink("/proc/self/ns/pid", link, sizeof(link));

	if (length == (ssize_t)strlen(FIRST_PID_NAMESPACE) &&
		memcmp(link, FIRST_PID_NAMESPACE, (size_t)length) == 0)
		report_add(report, "namespace", CHECK_OK, 0, "",
			"the machine's own pid namespace: all processes are seen");
	else
		report_add(report, "namespace", CHECK_NOTE, 0,
			"to profile processes outside of it run on the machine itself, or with --pid=host",
			"a pid namespace of its own (a container): only processes in it are seen");
}

static bool can_read(const char *path)
{
	char byte;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && read(fd, &byte, 1) == 1;
}

static void check_proc(struct report *report)
{
	if (!can_read("/proc/self/stat"))
		report_add(report, "proc", CHECK_FAIL, EXIT_FAILED, "mount -t proc proc /proc",
			"/proc is not mounted");
	else if (!can_read("/proc/self/schedstat"))
		report_add(report, "proc", CHECK_FAIL, EXIT_UNSUPPORTED,
			"use a kernel with CONFIG_SCHED_INFO",
			"/proc/PID/schedstat is not there: CPU time can't be told");
	else if (!can_read("/proc/self/syscall"))
		report_add(report, "proc", CHECK_NOTE, 0, "use a kernel with CONFIG_HAVE_ARCH_TRACEHOOK",
			"/proc/PID/syscall is not there: waiting processes cost as much as running ones");
	else
		report_add(report, "proc", CHECK_OK, 0, "", "schedstat and syscall can be read");
}

static void check_realtime(struct report *report)
{
	const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
	struct sched_param before = {0};
	int policy = sched_getscheduler(0);

	sched_getparam(0, &before);
	if (sched_setscheduler(0, SCHED_FIFO, &lowest) < 0) {
		report_add(report, "real-time", CHECK_NOTE, 0,
			"run as root, or with CAP_SYS_NICE or LimitRTPRIO=1; in a cgroup v1 give it "
			"cpu.rt_runtime_us",
			"SCHED_FIFO is refused (%s): on a busy machine 4 to 13 %% of the ticks are missed",
			strerror(errno));
		return;
	}
	sched_setscheduler(0, policy, &before);
	report_add(report, "real-time", CHECK_OK, 0, "", "SCHED_FIFO can be had: ticks come on time");
}

/* 0: it does not say. */
static int count_samplers(struct daemon_client *client)
{
	_cleanup_(cJSON_Deletep) cJSON *request = cJSON_CreateObject(), *status = NULL;
	char why[512];

	if (!json_add_string(request, "verb", "status") ||
		daemon_client_ask(client, request, &status, NULL, why, sizeof(why)) != 0)
		return 0;
	return cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(
		cJSON_GetObjectItemCaseSensitive(status, "metrics"), "samplers"));
}

/* A worker is read from its own CPU when it moves under snapshots from others (docs/CONFIGURATION.md,
 * Placement). */
static void check_cpus(struct report *report)
{
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t allowed;
	int own;

	/* On machines with more CPUs than such a set has room for. */
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return;
	own = CPU_COUNT(&allowed);
	if (own < online)
		report_add(report, "cpus", CHECK_NOTE, 0, "run it without taskset, CPUAffinity= and cpuset",
			"this program may run on %d of %ld CPUs: samples of processes on the others are lost "
			"where their stacks change within microseconds",
			own, online);
	else
		report_add(report, "cpus", CHECK_OK, 0, "",
			"it may run on all %ld: any process can be read from its own", online);
}

static void check_daemon(struct report *report, const char *socket_path)
{
	_cleanup_(daemon_client_closep) struct daemon_client *client = NULL;
	char why[512], threads[48] = "";
	int samplers;

	int r = daemon_client_open(socket_path, DAEMON_TIMEOUT_NS, &client, why, sizeof(why));
	if (r == 0) {
		samplers = count_samplers(client);
		if (samplers > 1)
			snprintf(threads, sizeof(threads), ", samples with %d threads", samplers);
		report_add(report, "daemon", CHECK_OK, 0, "", "cbox-profd %s answers at %s%s",
			daemon_client_server_version(client), socket_path, threads);
	} else {
		report_add(report, "daemon", CHECK_NOTE, 0, "attach, dump and doctor work without it", "%s",
			why);
	}
}

static void check_masters(struct report *report, const struct refusal_facts *facts)
{
	_cleanup_(discovery_freep) struct discovery *discovery = NULL;
	const struct selector all = {.kind = SELECT_FPM_POOL, .pattern = "*"};
	const struct discovered *workers = NULL;
	size_t count = 0, masters = 0;
	char list[200] = "";

	if (discovery_new(&discovery) < 0 || discovery_select(discovery, &all, 1) < 0 ||
		discovery_scan(discovery, 1, &workers, &count) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(list), same = 0;

		while (same < i && workers[same].master_pid != workers[i].master_pid)
			same++;
		if (same < i)
			continue;
		masters++;
		snprintf(list + length, sizeof(list) - length, "%s%d", masters > 1 ? " " : "",
			workers[i].master_pid);
	}
	if (masters == 0 && facts->has_ptrace_capability != 1)
		report_add(report, "php-fpm", CHECK_NOTE, 0, "",
			"not known: without CAP_SYS_PTRACE it can't be seen which program other users' "
			"processes "
			"run");
	else if (masters == 0)
		report_add(report, "php-fpm", CHECK_NOTE, 0,
			"start PHP-FPM, or send it a request (pm = ondemand has no workers before the first)",
			"no PHP-FPM worker is seen");
	else
		report_add(report, "php-fpm", CHECK_OK, 0, "", "%zu %s with %zu workers: %s", masters,
			masters == 1 ? "master" : "masters", count, list);
}

void doctor_check_machine(struct report *report, const char *socket_path)
{
	struct refusal_facts facts;

	refusal_collect(getpid(), &facts);
	check_capability(report, &facts);
	check_yama(report, &facts);
	check_seccomp(report, &facts);
	check_pid_namespace(report);
	check_proc(report);
	check_realtime(report);
	check_cpus(report);
	check_daemon(report, socket_path);
	check_masters(report, &facts);
}
