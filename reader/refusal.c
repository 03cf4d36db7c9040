/* SPDX-License-Identifier: MIT
 *
 * process_vm_readv(2) says EPERM for half a dozen reasons. Which one it was can't be asked, but the things it
 * depends on can be looked at (ptrace(2), "Ptrace access mode checking"): the call itself, our capability,
 * the users, Yama's scope, the namespaces. From them the likeliest cause follows, in the order in which the
 * kernel checks.
 */
#include "reader/refusal.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/cleanup.h"

#define YAMA_SCOPE_PATH "/proc/sys/kernel/yama/ptrace_scope"
#define YAMA_SCOPE_NOBODY 3

static void read_own_status(struct refusal_facts *facts)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/self/status", "re");
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "CapEff:", 7) == 0)
			facts->has_ptrace_capability =
				(strtoull(line + 7, NULL, 16) >> CAP_SYS_PTRACE & 1) != 0;
		else if (strncmp(line, "Seccomp:", 8) == 0)
			facts->seccomp_mode = (int)strtol(line + 8, NULL, 10);
	}
}

static int read_yama_scope(void)
{
	_cleanup_fclose_ FILE *file = fopen(YAMA_SCOPE_PATH, "re");
	char line[16];

	return file && fgets(line, sizeof(line), file) ? (int)strtol(line, NULL, 10) : -1;
}

static int read_ourselves(void)
{
	uint64_t from = 1, into = 0;
	struct iovec remote = {&from, sizeof(from)}, local = {&into, sizeof(into)};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 ? -errno : 0;
}

bool refusal_shares_namespace(pid_t pid, const char *space)
{
	char path[64], own[64], other[64];
	ssize_t own_length, other_length;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", space);
	own_length = readlink(path, own, sizeof(own));
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, space);
	other_length = readlink(path, other, sizeof(other));
	return own_length > 0 && own_length == other_length && memcmp(own, other, (size_t)own_length) == 0;
}

void refusal_collect(pid_t pid, struct refusal_facts *ret_facts)
{
	char path[64];
	struct stat status;

	*ret_facts = (struct refusal_facts){
		.has_ptrace_capability = -1,
		.same_user = -1,
		.same_user_namespace = refusal_shares_namespace(pid, "user"),
		.yama_scope = read_yama_scope(),
		.seccomp_mode = -1,
		.own_read_error = read_ourselves(),
	};
	read_own_status(ret_facts);
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	if (stat(path, &status) == 0)
		ret_facts->same_user = status.st_uid == geteuid();
}

/* The remedy, and the cause of an error that is about permission. */
static const char *explain_permission(const struct refusal_facts *facts, const char **ret_cause)
{
	if (facts->own_read_error == -ENOSYS && facts->seccomp_mode <= 0) {
		*ret_cause = "this kernel has no process_vm_readv";
		return "use one with CONFIG_CROSS_MEMORY_ATTACH";
	}
	if (facts->own_read_error != 0) {
		*ret_cause = "a seccomp filter refuses the call process_vm_readv";
		return "run outside of it, or allow the call in the container's or unit's filter";
	}
	if (facts->yama_scope == YAMA_SCOPE_NOBODY) {
		*ret_cause = "kernel.yama.ptrace_scope is 3, which forbids it to everyone";
		return "set it to at most 2 and start the machine again";
	}
	if (facts->has_ptrace_capability == 0) {
		*ret_cause = facts->same_user != 1    ? "it is another user's, and CAP_SYS_PTRACE is missing"
			     : facts->yama_scope >= 1 ? "kernel.yama.ptrace_scope does not allow it and "
							"CAP_SYS_PTRACE is missing"
						      : "it is not dumpable and CAP_SYS_PTRACE is missing";
		return "run as root, or give the capability to the program or its unit";
	}
	if (!facts->same_user_namespace) {
		*ret_cause = "it is in another user namespace, where this CAP_SYS_PTRACE does not count";
		return "run as root of the machine, outside of any container";
	}
	*ret_cause = "a security module (SELinux, AppArmor) refuses it";
	return "the audit log says which rule";
}

void refusal_explain(pid_t pid, int error, const struct refusal_facts *facts, char *why, size_t why_bytes)
{
	const char *cause, *remedy;

	switch (error) {
	case -ESRCH:
		cause = "there is no such process, or it has ended";
		remedy = "`ps` lists those there are";
		break;
	case -ENOENT:
		cause = "this kernel keeps no scheduling statistics (/proc/PID/schedstat)";
		remedy = "use one with CONFIG_SCHED_INFO";
		break;
	case -EPERM:
	case -EACCES:
	case -ENOSYS:
		remedy = explain_permission(facts, &cause);
		break;
	default:
		cause = strerror(-error);
		remedy = "see `cbox-profd doctor`";
	}
	snprintf(why, why_bytes, "process %d: it can't be read: %s; %s", (int)pid, cause, remedy);
}
