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
	/* capability, same user, same user namespace, Yama's scope, seccomp mode, error of reading ourselves
	 */
	const struct refusal_facts free = {1, 1, 1, -1, 0, 0};

	expect(-EPERM, (struct refusal_facts){0, 0, 1, 1, 0, 0}, "another user's", "CAP_SYS_PTRACE");
	expect(-EACCES, (struct refusal_facts){0, 1, 1, 0, 0, 0}, "not dumpable", "run as root");
	expect(-EPERM, (struct refusal_facts){0, 1, 1, 1, 0, 0}, "ptrace_scope", "run as root");
	expect(-EPERM, (struct refusal_facts){1, 0, 1, 3, 0, 0}, "ptrace_scope is 3", "start the machine");
	expect(-EPERM, (struct refusal_facts){1, 0, 1, 1, 2, -EPERM}, "seccomp", "allow the call");
	expect(-ENOSYS, (struct refusal_facts){1, 1, 1, -1, 2, -ENOSYS}, "seccomp", "allow the call");
	expect(-ENOSYS, (struct refusal_facts){1, 1, 1, -1, 0, -ENOSYS}, "this kernel",
		"CROSS_MEMORY_ATTACH");
	expect(-EPERM, (struct refusal_facts){1, 0, 0, -1, 0, 0}, "user namespace",
		"outside of any container");
	expect(-EPERM, free, "security module", "audit log");
	expect(-ESRCH, free, "no such process", "ps");
	expect(-ENOENT, free, "schedstat", "CONFIG_SCHED_INFO");
	expect(-ENOMEM, free, "memory", "doctor");
}

static void our_own_process_is_ours(void **state)
{
	struct refusal_facts facts;

	refusal_collect(getpid(), &facts);
	assert_int_equal(facts.same_user, 1);
	assert_int_equal(facts.same_user_namespace, 1);
	assert_int_equal(facts.own_read_error, 0);
	assert_true(facts.has_ptrace_capability == 0 || facts.has_ptrace_capability == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cause_is_named_with_its_remedy),
		cmocka_unit_test(our_own_process_is_ours),
	};

	return cmocka_run_group_tests_name("refusal", tests, NULL, NULL);
}
