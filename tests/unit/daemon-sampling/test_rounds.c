/* SPDX-License-Identifier: MIT
 *
 * Orders about many targets, carried out step by step, and the sums that the bookkeeper makes of it, without
 * their threads.
 */
#include "daemon/sampling/sampler.h"
#include "fake_process.h"

#define TARGETS 5
#define FUNCTIONS 3000 /* their nodes are more than a step copies */

static struct sampler *sampler;
static struct bookkeeper *bookkeeper;
static struct mailbox *replies;
static struct engine_options options;

/* What the windows are filled with. */
static uint32_t frames[FUNCTIONS];

static void intern_functions(void)
{
	char name[16];

	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		frames[i] = frame_table_intern(sampler->sampling.frames,
			&(struct function_name){.name = name, .file = "/srv/a.php", .line = i});
	}
}

static struct target *add_target(pid_t pid, const char *pool)
{
	struct target *target = fake_target(&sampler->sampling);

	target->identity.pid = pid;
	snprintf(target->identity.pool, sizeof(target->identity.pool), "%s", pool);
	target->serial = ++sampler->last_serial;
	sampler->targets[sampler->target_count++] = target;
	return target;
}

/* A sample in each function, 1 us of CPU apiece. */
static void fill(struct target *target)
{
	struct activity_clocks clocks = {0};
	uint64_t now_ns = fake.now_ns;
	bool overflow;

	ledger_open(&target->window, now_ns, &clocks);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		uint32_t node = calltree_child(target->window.tree, CALLTREE_ROOT, frames[i], 1, &overflow);

		calltree_node(target->window.tree, node)->samples++;
		ledger_sample(&target->window, node, true, now_ns += 1000);
	}
	clocks.run_ns = FUNCTIONS * 1000;
	ledger_close(&target->window, now_ns, &clocks);
	target->window_accounting = (struct accounting){.expected = FUNCTIONS, .taken = FUNCTIONS};
}

static int set_up(void **state)
{
	options = fake_options();
	options.max_nodes = 20000;
	options.max_frames = 10000;
	options.max_targets = 16;
	memset(&fake, 0, sizeof(fake));
	fake.now_ns = START_NS;
	fake_idle();
	if (sampler_new(&options, 0, &sampler) < 0 || bookkeeper_new(&options, &bookkeeper) < 0 ||
		mailbox_new(&replies) < 0)
		return -1;
	sampler->bookkeeper = bookkeeper;
	intern_functions();
	for (pid_t pid = 1; pid <= TARGETS; pid++)
		fill(add_target(pid, pid == TARGETS ? "api" : "www"));
	return 0;
}

static int tear_down(void **state)
{
	rounds_end(sampler);
	while (sampler->target_count)
		target_free(sampler->targets[--sampler->target_count], &sampler->sampling);
	bookkeeper_free(bookkeeper);
	sampler_free(sampler);
	for (struct message *mail = mailbox_take_all(replies), *next; mail; mail = next) {
		next = mail->next;
		order_free((struct order *)mail);
	}
	mailbox_free(replies);
	return 0;
}

static struct order *begin(enum order_verb verb, const char *pool)
{
	struct order *order = NULL;

	assert_int_equal(order_new(verb, &order), 0);
	snprintf(order->pool, sizeof(order->pool), "%s", pool);
	order->reply_to = replies;
	order->limit = 1000;
	sampler_answer(sampler, order);
	return order;
}

/* One step. The bookkeeper has time. */
static void turn(void)
{
	rounds_turn(sampler, false);
	bookkeeper_turn(bookkeeper);
}

/* Goes on until @order is back; the steps it took. */
static unsigned finish(const struct order *order)
{
	struct message *mail;
	unsigned steps = 0;

	for (; !(mail = mailbox_take_all(replies)); steps++) {
		assert_true(steps < 1000);
		turn();
	}
	assert_ptr_equal(mail, &order->message);
	return steps;
}

/* Its target ends. */
static void leave(pid_t pid)
{
	struct target *target = sampler_find(sampler, pid);
	struct window *window;
	size_t place = 0;

	while (sampler->targets[place] != target)
		place++;
	rounds_forget(sampler, target);
	assert_int_equal(window_take(target, &sampler->sampling, &window), 0);
	bookkeeper_add(bookkeeper, window);
	memmove(sampler->targets + place, sampler->targets + place + 1,
		(--sampler->target_count - place) * sizeof(struct target *));
	target_free(target, &sampler->sampling);
}

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

	/* 15,005 nodes in steps of at most 2,048 */
	assert_in_range(finish(order), 8, 9);
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
	rounds_turn(sampler, false);
	assert_ptr_equal(mailbox_take_all(replies), &targets->message);
	for (int i = 0; i < 10; i++)
		rounds_turn(sampler, false);
	bookkeeper_turn(bookkeeper);
	assert_false(bookkeeper_is_behind(bookkeeper));
	/* It rests a millisecond before it looks again. */
	fake.now_ns += 2 * MS;
	finish(profile);
	assert_sum(profile, TARGETS + 100);
	order_free(profile);
	order_free(targets);
}

static void what_is_under_way_goes_back_when_the_sampler_stops(void **state)
{
	_cleanup_(order_freep) struct order *order = begin(ORDER_PROFILE, "");

	turn();
	rounds_end(sampler);
	bookkeeper_turn(bookkeeper);
	assert_ptr_equal(mailbox_take_all(replies), &order->message);
	assert_int_equal(order->error, ORDER_E_STOPPING);
	assert_null(order->profile);
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
		ROUNDS_TEST(no_step_is_made_when_a_deadline_is_near),
		ROUNDS_TEST(copies_wait_while_the_bookkeeper_is_behind),
		ROUNDS_TEST(what_is_under_way_goes_back_when_the_sampler_stops),
	};

	return cmocka_run_group_tests_name("rounds", tests, NULL, NULL);
}
