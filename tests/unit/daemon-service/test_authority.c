/* SPDX-License-Identifier: MIT */
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/service/authority.h"

#define WWW_DATA 33
#define READERS 4242
#define ADMINS 4343

static const struct authority_rules rules = {.group = READERS, .admin_group = ADMINS};

/* Runs @body in a child and gives its exit status. */
static int in_child(int (*body)(void))
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(body());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The role of this process, as the other end of a connection it makes now sees it; 100 on failure. */
static int role_of_self(const struct authority_rules *by)
{
	struct peer peer;
	enum role role;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || authority_identify(pair[0], &peer) < 0 ||
		authority_role(pair[0], &peer, by, &role) < 0 || peer.uid != geteuid() ||
		peer.pid != getpid())
		return 100;
	return (int)role;
}

static int become(gid_t gid, size_t count, const gid_t *groups)
{
	return setgroups(count, groups) || setresgid(gid, gid, gid) ||
	       setresuid(WWW_DATA, WWW_DATA, WWW_DATA);
}

static int as_root(void)
{
	return role_of_self(&rules);
}

static int as_anybody(void)
{
	return become(WWW_DATA, 0, NULL) ? 101 : role_of_self(&rules);
}

static int as_reader(void)
{
	return become(READERS, 0, NULL) ? 101 : role_of_self(&rules);
}

/* The group that counts is the last of more than a fixed buffer would have held. */
static int as_admin_among_a_thousand_groups(void)
{
	gid_t groups[1000];

	for (gid_t i = 0; i < 1000; i++)
		groups[i] = 10000 + i;
	groups[999] = ADMINS;
	return become(WWW_DATA, 1000, groups) ? 101 : role_of_self(&rules);
}

static int as_member_of_everything_where_no_group_is_configured(void)
{
	const struct authority_rules none = {(gid_t)-1, (gid_t)-1};
	gid_t groups[] = {READERS, ADMINS};

	return become(READERS, 2, groups) ? 101 : role_of_self(&none);
}

static void the_role_is_the_highest_that_uid_and_groups_give(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(in_child(as_root), ROLE_CONTROL);
	assert_int_equal(in_child(as_anybody), ROLE_READER_OWN);
	assert_int_equal(in_child(as_reader), ROLE_READER);
	assert_int_equal(in_child(as_admin_among_a_thousand_groups), ROLE_CONTROL);
	assert_int_equal(in_child(as_member_of_everything_where_no_group_is_configured), ROLE_READER_OWN);
}

/* What a peer gives up after it has connected does not change who it is. */
static int connects_as_root_then_drops(void)
{
	struct peer peer;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || become(WWW_DATA, 0, NULL) ||
		authority_identify(pair[0], &peer) < 0)
		return 100;
	return peer.uid == 0 ? 0 : 1;
}

static void what_counts_is_who_it_was_when_it_connected(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(in_child(connects_as_root_then_drops), 0);
}

/* The child of a new pid namespace looks at a socket that was made outside. */
static int looks_out_of_a_pid_namespace(void)
{
	struct peer peer;
	int pair[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || unshare(CLONE_NEWPID) < 0)
		return 100;
	child = fork();
	if (child == 0)
		_exit(authority_identify(pair[0], &peer) == 0 && peer.pid == 0 ? 0 : 1);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return 101;
	return WEXITSTATUS(status);
}

static void a_peer_outside_our_pid_namespace_has_pid_0(void **state)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(in_child(looks_out_of_a_pid_namespace), 0);
}

static void a_descriptor_that_is_no_socket_has_no_peer(void **state)
{
	struct peer peer;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_true(authority_identify(ends[0], &peer) < 0);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_role_is_the_highest_that_uid_and_groups_give),
		cmocka_unit_test(what_counts_is_who_it_was_when_it_connected),
		cmocka_unit_test(a_peer_outside_our_pid_namespace_has_pid_0),
		cmocka_unit_test(a_descriptor_that_is_no_socket_has_no_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
