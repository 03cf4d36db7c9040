/* SPDX-License-Identifier: MIT
 *
 * From a pid on the command line to something that can be sampled.
 */
#include <errno.h>

#include "reader/remote.h"
#include "daemon/cli/cli.h"
#include "daemon/cli/process.h"
#include "daemon/sampling/fpm_master.h"
#include "daemon/sampling/proc_read.h"

static bool is_permission(int error)
{
	return error == -EPERM || error == -EACCES || error == -ENOSYS;
}

int process_exit_status(int error)
{
	/* REMOTE_E_GONE has the number of PHP_BINARY_E_NOT_PHP; both are no target. */
	_Static_assert((int)REMOTE_E_GONE == (int)PHP_BINARY_E_NOT_PHP, "told apart below");

	if (is_permission(error))
		return EXIT_NO_PERMISSION;
	switch (error) {
	case 0:
		return EXIT_OK;
	case -ESRCH:
	case PHP_BINARY_E_NOT_PHP:
	case PHP_PROCESS_E_GONE:
		return EXIT_NO_TARGET;
	case PHP_BINARY_E_UNKNOWN_VERSION:
	case PHP_BINARY_E_ZTS:
	case PHP_BINARY_E_DEBUG:
	case PHP_BINARY_E_SELF_TEST:
	case PHP_BINARY_E_NOT_X86_64:
		return EXIT_UNSUPPORTED;
	default:
		return EXIT_FAILED;
	}
}

bool process_is_kernel_thread(pid_t pid)
{
	struct proc_identity identity;

	return proc_identify(pid, &identity) == 0 && identity.is_kernel_thread;
}

bool process_is_master(pid_t pid)
{
	return fpm_title_of(pid) == FPM_TITLE_MASTER && fpm_is_believable_master(pid) &&
	       !fpm_is_newborn_worker(pid);
}

int process_means(
	pid_t pid, struct discovery *discovery, const struct discovered **ret_processes, size_t *ret_count)
{
	const struct selector selector = {.kind = SELECT_PID, .pid = pid};

	int r = discovery_select(discovery, &selector, 1);
	return r < 0 ? r : discovery_scan(discovery, 1, ret_processes, ret_count);
}
