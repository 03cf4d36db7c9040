/* SPDX-License-Identifier: MIT
 *
 * The kernel answers EPERM for half a dozen reasons. Each has a place where it can be read, and only one
 * remedy.
 */
#include <errno.h>
#include <linux/capability.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "symbols/cleanup.h"
#include "daemon/cli/permission.h"

/* The number behind "@field:" in /proc/self/status, in @base. */
static bool read_status(const char *field, int base, unsigned long long *ret_value)
{
	_cleanup_fclose_ FILE *status = fopen("/proc/self/status", "re");
	size_t length = strlen(field);
	char line[256];

	while (status && fgets(line, sizeof(line), status)) {
		if (strncmp(line, field, length) != 0 || line[length] != ':')
			continue;
		*ret_value = strtoull(line + length + 1, NULL, base);
		return true;
	}
	return false;
}

bool permission_has_ptrace(void)
{
	unsigned long long effective;

	return read_status("CapEff", 16, &effective) && effective >> CAP_SYS_PTRACE & 1;
}

int permission_yama_scope(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope;

	return file && fscanf(file, "%d", &scope) == 1 ? scope : -1;
}

int permission_seccomp_mode(void)
{
	unsigned long long mode;

	return read_status("Seccomp", 10, &mode) ? (int)mode : -1;
}

int permission_try_readv(void)
{
	uint64_t from = 1, into = 0;
	struct iovec remote = {&from, sizeof(from)}, local = {&into, sizeof(into)};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) < 0 ? -errno : 0;
}

bool permission_shares_namespace(pid_t pid, const char *space)
{
	char path[64], own[64], other[64];
	ssize_t own_length, other_length;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", space);
	own_length = readlink(path, own, sizeof(own));
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, space);
	other_length = readlink(path, other, sizeof(other));
	return own_length > 0 && own_length == other_length && memcmp(own, other, (size_t)own_length) == 0;
}

void permission_explain(pid_t pid, char *ret_why, size_t why_bytes)
{
	int error = permission_try_readv();

	if (error != 0)
		snprintf(ret_why, why_bytes,
			"a seccomp filter refuses the call process_vm_readv (%s); run outside of it, or "
			"allow the call "
			"in the container's or unit's filter",
			strerror(-error));
	else if (!permission_has_ptrace())
		snprintf(ret_why, why_bytes,
			"CAP_SYS_PTRACE is missing; run as root, or give the capability to the program or "
			"its unit");
	else if (permission_yama_scope() == 3)
		snprintf(ret_why, why_bytes,
			"kernel.yama.ptrace_scope is 3, which forbids it to everyone; set it lower and start "
			"the "
			"machine again");
	else if (!permission_shares_namespace(pid, "user"))
		snprintf(ret_why, why_bytes,
			"it is in another user namespace, where this CAP_SYS_PTRACE does not count; run as "
			"root of "
			"the machine, outside of any container");
	else
		snprintf(ret_why, why_bytes,
			"a security module (SELinux, AppArmor) refuses it; the audit log says which rule");
}
