/* SPDX-License-Identifier: MIT
 *
 * Why a process may not be read: each cause has its sentence.
 */
#include "reader/refusal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void expect(int error, struct refusal_facts facts, const char *cause, const char *remedy)
{
	char why[512];

	refusal_explain(4711, error, &facts, why, sizeof(why));
	assert_memory_equal(why, "process 4711: ", 14);
	if (!strstr(why, cause) || !strstr(why, remedy))
		fail_msg("%s", why);
	assert_null(strchr(why, '\n'));
}

static void every_cause_is_named_with_its_remedy(void **state)
{
	expect(-EPERM, (struct refusal_facts){0, 0, 1, 0}, "another user's", "CAP_SYS_PTRACE");
	expect(-EACCES, (struct refusal_facts){0, 1, 0, 0}, "not dumpable", "run as root");
	expect(-EPERM, (struct refusal_facts){0, 1, 1, 0}, "ptrace_scope", "run as root");
	expect(-EPERM, (struct refusal_facts){1, 0, 3, 0}, "ptrace_scope is 3", "at boot");
	expect(-EPERM, (struct refusal_facts){1, 0, 1, 1}, "seccomp", "process_vm_readv");
	expect(-EPERM, (struct refusal_facts){1, 0, -1, 0}, "user namespace", "on the host");
	expect(-ENOSYS, (struct refusal_facts){1, 1, -1, 1}, "seccomp", "allow it");
	expect(-ESRCH, (struct refusal_facts){1, 1, -1, 0}, "no such process", "ps");
	expect(-ENOENT, (struct refusal_facts){1, 1, -1, 0}, "schedstat", "CONFIG_SCHED_INFO");
	expect(-ENOMEM, (struct refusal_facts){1, 1, -1, 0}, "memory", "doctor");
}

static void our_own_process_is_the_same_user_s(void **state)
{
	struct refusal_facts facts;

	refusal_collect(getpid(), &facts);
	assert_int_equal(facts.same_user, 1);
	assert_true(facts.has_ptrace_capability == 0 || facts.has_ptrace_capability == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cause_is_named_with_its_remedy),
		cmocka_unit_test(our_own_process_is_the_same_user_s),
	};

	return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
