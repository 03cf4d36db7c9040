/* SPDX-License-Identifier: MIT
 *
 * Orders about many targets, carried out step by step, and the sums that the bookkeeper makes of it: with one
 * sampler, and with several, through which they pass.
 */
#include "rounds_fixture.h"

/* Each of @windows windows is in it once. */
static void assert_sum(const struct order *order, unsigned windows)
{
	struct profile_node sum;

	assert_int_equal(order->error, ORDER_OK);
	sum = profile_sum(order->profile);
	assert_int_equal(sum.samples, windows * FUNCTIONS);
	assert_int_equal(sum.cpu_ns, windows * FUNCTIONS * 1000);
	assert_int_equal(sum.wall_ns, windows * FUNCTIONS * 1000);
	assert_int_equal(order->profile->node_count, FUNCTIONS + 1);
	assert_int_equal(time_of(order->profile, "f0").samples, windows);
	assert_int_equal(time_of(order->profile, "f2999").cpu_ns, windows * 1000);
	assert_int_equal(order->profile->accounting.taken, windows * FUNCTIONS);
	assert_true(accounting_is_balanced(&order->profile->accounting));
}

static void a_profile_made_in_steps_is_the_sum_of_all_windows(void **state)
{
	_cleanup_(order_freep) struct order *order = begin(ORDER_PROFILE, "");

	/* 15,005 nodes in steps of at most 2,048. The next sampler's first step is in the turn of the last
	 * one of the one before. */
	assert_in_range(finish(order), 8 - (threads - 1), 9);
	assert_sum(order, TARGETS);
	assert_int_equal(order->profile->period_ns, 10 * MS);
}

static void only_what_is_asked_for_is_copied(void **state)
{
	_cleanup_(order_freep) struct order *order = begin(ORDER_PROFILE, "api");

	assert_int_equal(finish(order), 2);
	assert_sum(order, 1);
}

static void who_goes_before_its_copy_and_who_goes_after_are_both_in_it_once(void **state)
{
	struct order *order;

	for (unsigned steps = 0; steps < 2 * TARGETS; steps++) {
		tear_down(NULL);
		set_up(NULL);
		leave(2);
		order = begin(ORDER_PROFILE, "");
		for (unsigned i = 0; i < steps; i++)
			turn();
		leave(1);
		leave(4);
		finish(order);
		assert_sum(order, TARGETS);
		order_free(order);
		/* And once in what stays of them. */
		order = begin(ORDER_PROFILE, "www");
		finish(order);
		assert_sum(order, TARGETS - 1);
		order_free(order);
	}
}

static void rounds_take_turns(void **state)
{
	struct order *profile = begin(ORDER_PROFILE, ""), *targets = begin(ORDER_TARGETS, "");

	/* The second step is the other's, which needs no more. */
	turn();
	turn();
	struct message *first = mailbox_take_all(replies);
	assert_ptr_equal(first, &targets->message);
	assert_int_equal(targets->target_count, TARGETS);
	finish(profile);
	assert_sum(profile, TARGETS);
	order_free(targets);
	order_free(profile);
}

static void two_profiles_at_a_time_are_both_whole(void **state)
{
	struct order *all = begin(ORDER_PROFILE, ""), *some;

	turn();
	some = begin(ORDER_PROFILE, "www");
	leave(3);
	for (int i = 0; i < 100; i++)
		turn();
	assert_sum(all, TARGETS);
	assert_sum(some, TARGETS - 1);
	struct message *mail = mailbox_take_all(replies);
	assert_non_null(mail->next);
	order_free(all);
	order_free(some);
}

static void a_reset_covers_those_who_are_gone(void **state)
{
	struct order *order;

	leave(1);
	order = begin(ORDER_RESET, "www");
	finish(order);
	assert_int_equal(order->affected, 3);
	order_free(order);
	order = begin(ORDER_PROFILE, "www");
	finish(order);
	assert_int_equal(profile_sum(order->profile).samples, 0);
	order_free(order);
	/* Nobody is left in it: it is not there any more. */
	leave(5);
	order = begin(ORDER_RESET, "api");
	finish(order);
	assert_int_equal(order->error, ORDER_OK);
	order_free(order);
	order = begin(ORDER_RESET, "api");
	finish(order);
	assert_int_equal(order->error, ORDER_E_NOT_FOUND);
	assert_string_equal(order->why, "no pool \"api\"; there are: www");
	order_free(order);
}

static void no_step_is_made_when_a_deadline_is_near(void **state)
{
	struct order *order = begin(ORDER_TARGETS, "");
	struct sampler *sampler = samplers.items[0];
	struct cadences *cadences = &sampler->cadences;

	cadences_join(cadences, 1 * MS, fake.now_ns);
	fake.now_ns = cadences_deadline_ns(cadences) - MS / 20;
	assert_int_equal(rounds_due_ns(sampler), 0);
	turn();
	assert_null(mailbox_take_all(replies));
	/* Not even right after a tick, while it has not waited for long. */
	sampler->rounds.stepped_ns = fake.now_ns;
	rounds_turn(sampler, true);
	assert_null(mailbox_take_all(replies));
	/* There is never time: one step is made all the same. */
	sampler->rounds.stepped_ns = fake.now_ns - 1000 * MS;
	rounds_turn(sampler, true);
	assert_ptr_equal(mailbox_take_all(replies), &order->message);
	order_free(order);
}

static void copies_wait_while_the_bookkeeper_is_behind(void **state)
{
	struct order *profile, *targets;

	/* 100 windows of 3,001 nodes are more than may be on their way. */
	for (int i = 0; i < 100; i++) {
		fill(add_target(100, "www"));
		leave(100);
	}
	assert_true(bookkeeper_is_behind(bookkeeper));
	profile = begin(ORDER_PROFILE, "");
	targets = begin(ORDER_TARGETS, "");
	rounds_turn(samplers.items[0], false);
	assert_ptr_equal(mailbox_take_all(replies), &targets->message);
	for (int i = 0; i < 10; i++)
		rounds_turn(samplers.items[0], false);
	bookkeeper_turn(bookkeeper);
	assert_false(bookkeeper_is_behind(bookkeeper));
	/* It rests a millisecond before it looks again. */
	fake.now_ns += 2 * MS;
	finish(profile);
	assert_sum(profile, TARGETS + 100);
	order_free(profile);
	order_free(targets);
}

static void what_is_under_way_goes_back_when_the_samplers_stop(void **state)
{
	/* Wherever it is: on a round of one of them, or on its way to the next. */
	for (unsigned steps = 0; steps < 8; steps++) {
		struct order *order = begin(ORDER_PROFILE, "");

		for (unsigned i = 0; i < steps; i++) {
			struct sampler *sampler = samplers.items[i % threads];

			rounds_turn(sampler, false);
			read_mail(sampler);
		}
		for (unsigned i = 0; i < threads; i++)
			rounds_end(samplers.items[i]);
		samplers_empty(&samplers);
		bookkeeper_turn(bookkeeper);
		assert_ptr_equal(mailbox_take_all(replies), &order->message);
		assert_int_equal(order->error, ORDER_E_STOPPING);
		assert_null(order->profile);
		order_free(order);
	}
}

int main(void)
{
#define ROUNDS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		ROUNDS_TEST(a_profile_made_in_steps_is_the_sum_of_all_windows),
		ROUNDS_TEST(only_what_is_asked_for_is_copied),
		ROUNDS_TEST(who_goes_before_its_copy_and_who_goes_after_are_both_in_it_once),
		ROUNDS_TEST(rounds_take_turns),
		ROUNDS_TEST(two_profiles_at_a_time_are_both_whole),
		ROUNDS_TEST(a_reset_covers_those_who_are_gone),
		ROUNDS_TEST(what_is_under_way_goes_back_when_the_samplers_stop),
	};
	const struct CMUnitTest tests_of_one[] = {
		ROUNDS_TEST(no_step_is_made_when_a_deadline_is_near),
		ROUNDS_TEST(copies_wait_while_the_bookkeeper_is_behind),
	};
	int failed = cmocka_run_group_tests_name("rounds of one sampler", tests_of_one, NULL, NULL);

	for (threads = 1; threads <= 3; threads++)
		failed += cmocka_run_group_tests_name("rounds", tests, NULL, NULL);
	return failed;
}
