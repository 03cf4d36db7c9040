/* SPDX-License-Identifier: MIT
 *
 * process_vm_readv(2) says EPERM for half a dozen reasons. Which one it was can't be asked, but the things it
 * depends on can be looked at (ptrace(2), "Ptrace access mode checking"): our capability, the users, Yama's
 * scope, a seccomp filter. From them the likeliest cause follows, in the order in which the kernel checks.
 */
#include "reader/refusal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/cleanup.h"

#define CAP_SYS_PTRACE_BIT 19 /* linux/capability.h */
#define SECCOMP_MODE_FILTER_NUMBER 2
#define YAMA_SCOPE_PATH "/proc/sys/kernel/yama/ptrace_scope"

static void read_own_status(struct refusal_facts *facts)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/status", "re");
	char line[256];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		uint64_t capabilities;
		int mode;

		if (sscanf(line, "CapEff: %" SCNx64, &capabilities) == 1)
			facts->has_ptrace_capability = capabilities >> CAP_SYS_PTRACE_BIT & 1;
		else if (sscanf(line, "Seccomp: %d", &mode) == 1)
			facts->seccomp_filtered = mode == SECCOMP_MODE_FILTER_NUMBER;
	}
}

void refusal_collect(pid_t pid, struct refusal_facts *ret_facts)
{
	_cleanup_fclose_ FILE *yama = fopen(YAMA_SCOPE_PATH, "re");
	char path[64];
	struct stat status;

	*ret_facts = (struct refusal_facts){-1, -1, -1, -1};
	read_own_status(ret_facts);
	if (yama && fscanf(yama, "%d", &ret_facts->yama_scope) != 1)
		ret_facts->yama_scope = -1;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &status) == 0)
		ret_facts->same_user = status.st_uid == geteuid();
}

void refusal_explain(pid_t pid, int error, const struct refusal_facts *facts, char *why, size_t why_bytes)
{
	const char *cause, *remedy;

	if (error == -ESRCH) {
		cause = "there is no such process, or it has ended";
		remedy = "`ps` lists those there are";
	} else if (error == -ENOSYS) {
		cause = "the system call process_vm_readv is refused by a seccomp filter, or not in this "
			"kernel";
		remedy = "allow it in the container's or service's filter (kernels need "
			 "CONFIG_CROSS_MEMORY_ATTACH)";
	} else if (error == -ENOENT) {
		cause = "this kernel keeps no scheduling statistics (/proc/PID/schedstat)";
		remedy = "use one with CONFIG_SCHED_INFO";
	} else if (error != -EPERM && error != -EACCES) {
		cause = strerror(-error);
		remedy = "see `cbox-profd doctor`";
	} else if (facts->yama_scope == 3) {
		cause = "kernel.yama.ptrace_scope is 3: no process may read another's memory until the next "
			"boot";
		remedy = "set it to 2 at boot";
	} else if (facts->has_ptrace_capability == 0 && facts->same_user == 1 && facts->yama_scope >= 1) {
		cause = "kernel.yama.ptrace_scope does not allow it and CAP_SYS_PTRACE is missing";
		remedy = "run as root, or give the capability";
	} else if (facts->has_ptrace_capability == 0) {
		cause = facts->same_user == 1 ? "it is not dumpable and CAP_SYS_PTRACE is missing"
					      : "it is another user's, and CAP_SYS_PTRACE is missing";
		remedy = "run as root, or give the capability (AmbientCapabilities=CAP_SYS_PTRACE)";
	} else if (facts->seccomp_filtered == 1) {
		cause = "refused though CAP_SYS_PTRACE is there: most likely by the seccomp filter on this "
			"program";
		remedy = "allow process_vm_readv in it";
	} else {
		cause = "refused though CAP_SYS_PTRACE is there: it is in another user namespace, or a "
			"security "
			"module (SELinux, AppArmor) denies it";
		remedy = "run on the host, or allow ptrace read in the module's policy";
	}
	snprintf(why, why_bytes, "process %d: it can't be read: %s; %s", (int)pid, cause, remedy);
}
