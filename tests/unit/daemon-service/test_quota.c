/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "daemon/service/quota.h"

#define SECOND_NS UINT64_C(1000000000)

static const struct quota_limits limits = {
	.connections = 2, .requests_per_second = 10, .pending_bytes = 1000};

static int set_up(void **state)
{
	struct quota *quota;

	if (quota_new(&limits, &quota) < 0)
		return -1;
	*state = quota;
	return 0;
}

static int tear_down(void **state)
{
	quota_free(*state);
	return 0;
}

static void a_user_has_so_many_connections_and_no_more(void **state)
{
	struct quota *quota = *state;
	struct quota_user *first, *second, *third, *other;

	assert_int_equal(quota_connect(quota, 33, 0, &first), 0);
	assert_int_equal(quota_connect(quota, 33, 0, &second), 0);
	assert_ptr_equal(first, second);
	assert_int_equal(quota_connect(quota, 33, 0, &third), QUOTA_E_CONNECTIONS);
	assert_int_equal(quota_connect(quota, 34, 0, &other), 0);
	quota_disconnect(second);
	assert_int_equal(quota_connect(quota, 33, 0, &third), 0);
}

static unsigned take_all(struct quota *quota, struct quota_user *user, uint64_t now_ns)
{
	unsigned taken = 0;

	while (taken < 1000 && quota_take_request(quota, user, 1, now_ns))
		taken++;
	return taken;
}

static void a_seconds_worth_of_requests_may_come_at_once(void **state)
{
	struct quota *quota = *state;
	struct quota_user *user;

	quota_connect(quota, 33, 5 * SECOND_NS, &user);
	assert_int_equal(take_all(quota, user, 5 * SECOND_NS), 10);
	/* one comes back every 100 ms */
	assert_int_equal(take_all(quota, user, 5 * SECOND_NS + 99999999), 0);
	assert_int_equal(take_all(quota, user, 5 * SECOND_NS + 100000000), 1);
	assert_int_equal(take_all(quota, user, 5 * SECOND_NS + 350000000), 2);
	/* and no more than a second's worth is saved up */
	assert_int_equal(take_all(quota, user, 500 * SECOND_NS), 10);
	/* a clock that stands still gives nothing */
	assert_int_equal(take_all(quota, user, 500 * SECOND_NS), 0);
}

static void reconnecting_does_not_refill(void **state)
{
	struct quota *quota = *state;
	struct quota_user *user;

	quota_connect(quota, 33, 0, &user);
	assert_int_equal(take_all(quota, user, 0), 10);
	quota_disconnect(user);
	assert_int_equal(quota_connect(quota, 33, 0, &user), 0);
	assert_int_equal(take_all(quota, user, 0), 0);
}

static void a_new_rate_holds_at_once_and_zero_is_none(void **state)
{
	struct quota *quota = *state;
	struct quota_user *user;

	quota_connect(quota, 33, 0, &user);
	assert_int_equal(take_all(quota, user, 0), 10);
	quota_set_limits(quota, &(struct quota_limits){2, 0, 1000});
	assert_int_equal(take_all(quota, user, 0), 1000);
	quota_set_limits(quota, &(struct quota_limits){2, 100, 1000});
	assert_int_equal(take_all(quota, user, SECOND_NS / 10), 10);
}

static void unread_bytes_are_bounded_over_all_connections_of_a_user(void **state)
{
	struct quota *quota = *state;
	struct quota_user *user, *same, *other;

	quota_connect(quota, 33, 0, &user);
	quota_connect(quota, 33, 0, &same);
	quota_connect(quota, 34, 0, &other);
	assert_true(quota_take_bytes(quota, user, 600));
	assert_false(quota_take_bytes(quota, same, 401));
	assert_true(quota_take_bytes(quota, same, 400));
	assert_true(quota_take_bytes(quota, other, 1000));
	quota_return_bytes(user, 600);
	assert_true(quota_take_bytes(quota, same, 600));
	assert_false(quota_take_bytes(quota, same, SIZE_MAX));
}

static void users_of_whom_nothing_is_to_be_remembered_make_place(void **state)
{
	struct quota *quota = *state;
	struct quota_user *user;

	for (uid_t uid = 1; uid <= QUOTA_MAX_USERS; uid++) {
		assert_int_equal(quota_connect(quota, uid, 0, &user), 0);
		assert_true(quota_take_request(quota, user, 1, 0));
		/* Uid 1 stays connected, the others go. */
		if (uid > 1)
			quota_disconnect(user);
	}
	/* They have asked something, which is not forgotten at once: a table that is full turns the next user
	 * away, */
	assert_int_equal(quota_connect(quota, 5000, 0, &user), QUOTA_E_USERS);
	/* but a moment later all but the connected one can be replaced. */
	for (uid_t uid = 5001; uid < 5000 + QUOTA_MAX_USERS; uid++)
		assert_int_equal(quota_connect(quota, uid, SECOND_NS / 10, &user), 0);
	assert_int_equal(quota_connect(quota, 9999, SECOND_NS / 10, &user), QUOTA_E_USERS);
	/* A user who is known needs no place. */
	assert_int_equal(quota_connect(quota, 1, SECOND_NS / 10, &user), 0);
	assert_int_equal(quota_connect(quota, 1, SECOND_NS / 10, &user), QUOTA_E_CONNECTIONS);
}

static void what_costs_more_is_had_less_often(void **state)
{
	struct quota *quota = *state;
	struct quota_user *user;

	quota_connect(quota, 33, 0, &user);
	assert_true(quota_take_request(quota, user, 4, 0));
	assert_true(quota_take_request(quota, user, 4, 0));
	assert_false(quota_take_request(quota, user, 4, 0));
	assert_true(quota_take_request(quota, user, 2, 0));
	/* What costs more than there ever is takes all there is. */
	assert_false(quota_take_request(quota, user, 100, SECOND_NS - 1));
	assert_true(quota_take_request(quota, user, 100, SECOND_NS));
	assert_false(quota_take_request(quota, user, 1, SECOND_NS));
}

static void a_user_has_one_long_answer_at_a_time(void **state)
{
	struct quota *quota = *state;
	struct quota_user *user, *other;

	quota_connect(quota, 33, 0, &user);
	quota_connect(quota, 34, 0, &other);
	assert_true(quota_begin_long(user));
	assert_false(quota_begin_long(user));
	assert_true(quota_begin_long(other));
	/* Who leaves meanwhile is not forgotten. */
	quota_disconnect(user);
	for (uid_t uid = 100; uid < 100 + QUOTA_MAX_USERS - 2; uid++)
		assert_int_equal(quota_connect(quota, uid, SECOND_NS, &other), 0);
	assert_int_equal(quota_connect(quota, 99, SECOND_NS, &other), QUOTA_E_USERS);
	quota_end_long(user);
	assert_int_equal(quota_connect(quota, 99, SECOND_NS, &other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_user_has_so_many_connections_and_no_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_seconds_worth_of_requests_may_come_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(reconnecting_does_not_refill, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_new_rate_holds_at_once_and_zero_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			unread_bytes_are_bounded_over_all_connections_of_a_user, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			users_of_whom_nothing_is_to_be_remembered_make_place, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_costs_more_is_had_less_often, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_user_has_one_long_answer_at_a_time, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
