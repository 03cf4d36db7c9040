/* SPDX-License-Identifier: MIT
 *
 * On a CPU, queued, or waiting: what a look makes of what the kernel says, and what it asks for.
 */
#include "fake_process.h"

static struct presence_watch watch;
static struct presence_observer observer;

static int set_up(void **state)
{
	memset(&fake, 0, sizeof(fake));
	watch = (struct presence_watch){
		.queues_until_ns = UINT64_MAX}; /* its clocks have shown it to queue */
	fake.now_ns = START_NS;
	fake.clocks = (struct activity_clocks){.run_ns = 500 * MS, .queue_ns = 5 * MS, .switch_ins = 10};
	presence_observer_init(&observer);
	fake.pages = 0;
	return 0;
}

static int tear_down(void **state)
{
	presence_observer_deinit(&observer);
	return 0;
}

static enum presence look(void)
{
	return presence_look(&watch, &observer, NULL, &fake.clocks, fake.now_ns);
}

/* Its CPU time is noted when it leaves. */
static void leave_cpu(void)
{
	fake.clocks.run_ns += MS;
	fake_queue(MS);
}

static void who_is_ready_and_was_switched_in_once_more_than_out_runs(void **state)
{
	assert_int_equal(look(), PRESENCE_RUNNING);
	assert_int_equal(fake.pages, 1);
	assert_false(presence_is_unmoved(&watch, &fake.clocks));
}

static void who_is_ready_and_was_switched_in_as_often_as_out_queues(void **state)
{
	fake_queue(MS);
	assert_int_equal(look(), PRESENCE_QUEUED);
	fake_queue(MS);
	assert_true(presence_is_unmoved(&watch, &fake.clocks));
	assert_int_equal(presence_look_again(&watch, NULL, fake.now_ns), PRESENCE_QUEUED);
	fake_run(MS);
	assert_false(presence_is_unmoved(&watch, &fake.clocks));
}

static void who_was_driven_off_by_the_look_was_running(void **state)
{
	fake.driven_off = true;
	assert_int_equal(look(), PRESENCE_RUNNING);
	/* Since then it queues. */
	assert_true(presence_is_unmoved(&watch, &fake.clocks));
	assert_int_equal(presence_look_again(&watch, NULL, fake.now_ns + MS), PRESENCE_QUEUED);
}

static void how_long_the_look_kept_it_off_is_the_queue_time_that_it_began(void **state)
{
	struct activity_clocks before = fake.clocks;

	fake.driven_off = true;
	look();
	assert_true(watch.driven_off);
	fake.clocks.switch_ins++;
	fake.clocks.queue_ns += 60000;
	presence_note_clocks(&watch, &before, &fake.clocks, 10 * MS, fake.now_ns);
	assert_int_equal(watch.kept_off_ns, 60000);
	/* It queued by itself now: that says nothing of looks. */
	before = fake.clocks;
	fake.clocks.switch_ins++;
	fake.clocks.queue_ns += MS;
	presence_note_clocks(&watch, &before, &fake.clocks, 10 * MS, fake.now_ns);
	assert_int_equal(watch.kept_off_ns, 60000);
	/* Twice, of which one is the look's. */
	look();
	before = fake.clocks;
	fake.clocks.switch_ins += 2;
	fake.clocks.queue_ns += 100000;
	presence_note_clocks(&watch, &before, &fake.clocks, 10 * MS, fake.now_ns);
	assert_int_equal(watch.kept_off_ns, 50000);
}

static void who_waits_is_off_the_cpu_and_its_page_is_not_read(void **state)
{
	fake_sleep(MS);
	assert_int_equal(look(), PRESENCE_WAITING);
	/* The clocks that were read before did not have the last of its CPU time. */
	fake.clocks.run_ns += 1000;
	assert_true(presence_is_unmoved(&watch, &fake.clocks));
	assert_int_equal(presence_look_again(&watch, NULL, fake.now_ns), PRESENCE_WAITING);
	assert_int_equal(fake.pages, 0);
}

static void who_waited_and_is_ready_but_was_not_switched_in_queues(void **state)
{
	fake_queue(MS);
	look();
	fake_run(MS);
	fake_sleep(MS);
	assert_int_equal(look(), PRESENCE_WAITING);
	fake_queue(MS);
	assert_true(presence_is_unmoved(&watch, &fake.clocks));
	assert_int_equal(presence_look_again(&watch, NULL, fake.now_ns), PRESENCE_QUEUED);
	/* It used no CPU; it is not thought to have been on one. */
	fake_queue(MS);
	assert_true(presence_is_unmoved(&watch, &fake.clocks));
	assert_int_equal(watch.outs_ahead, 0);
}

static void who_falls_asleep_while_the_page_is_read_was_running(void **state)
{
	fake.blocks_soon = true;
	assert_int_equal(look(), PRESENCE_RUNNING);
	assert_true(presence_is_unmoved(&watch, &fake.clocks));
	assert_int_equal(presence_look_again(&watch, NULL, fake.now_ns), PRESENCE_WAITING);
}

static void note_queue_time(uint64_t ns)
{
	struct activity_clocks before = fake.clocks;

	fake.clocks.queue_ns += ns;
	presence_note_clocks(&watch, &before, &fake.clocks, MS, fake.now_ns);
}

static void only_who_has_queued_is_asked_about_for_a_second(void **state)
{
	watch.queues_until_ns = 0;
	look();
	/* Of 1 ms: no more than the sampler itself may have done to it, and 1/64 of the time. */
	note_queue_time(265000);
	look();
	assert_int_equal(fake.pages, 0);
	note_queue_time(266000);
	look();
	assert_int_equal(fake.pages, 1);
	fake_run(999 * MS);
	look();
	assert_int_equal(fake.pages, 2);
	fake_run(MS);
	look();
	assert_int_equal(fake.pages, 2);
}

static void who_was_on_a_cpu_is_still_there_while_no_clock_moves(void **state)
{
	for (unsigned ms = 0; ms < 3; ms++) {
		assert_int_equal(look(), PRESENCE_RUNNING);
		fake.now_ns += MS;
	}
	assert_int_equal(fake.pages, 1);
	leave_cpu();
	assert_int_equal(look(), PRESENCE_QUEUED);
	assert_int_equal(fake.pages, 3); /* its own, and the thread's */
	/* It came to a CPU, and has left it again. */
	fake_run(MS);
	fake.queued = true;
	assert_int_equal(look(), PRESENCE_QUEUED);
	assert_int_equal(fake.pages, 5);
}

static void who_has_slept_is_asked_about_anew(void **state)
{
	assert_int_equal(look(), PRESENCE_RUNNING);
	fake.blocked = true;
	assert_int_equal(look(), PRESENCE_WAITING);
	fake.blocked = false;
	fake.queued = true;
	assert_int_equal(look(), PRESENCE_QUEUED);
}

static void switches_in_that_were_not_counted_are_made_up_for(void **state)
{
	fake.outs_ahead = 3;
	fake_queue(MS);
	assert_int_equal(look(), PRESENCE_QUEUED);
	assert_int_equal(watch.outs_ahead, 3);
	fake_run(MS);
	assert_int_equal(look(), PRESENCE_RUNNING);
	leave_cpu();
	assert_int_equal(look(), PRESENCE_QUEUED);
}

static void who_uses_cpu_and_seems_to_be_off_it_is_on_it(void **state)
{
	fake.outs_ahead = 1;
	assert_int_equal(look(), PRESENCE_QUEUED);
	fake.now_ns += 4 * MS;
	fake.clocks.run_ns += 4 * MS;
	assert_false(presence_is_unmoved(&watch, &fake.clocks));
	assert_int_equal(look(), PRESENCE_RUNNING);
	leave_cpu();
	assert_int_equal(look(), PRESENCE_QUEUED);
}

static void without_the_page_who_is_ready_runs(void **state)
{
	fake.page_is_not_there = true;
	fake_queue(MS);
	assert_int_equal(look(), PRESENCE_RUNNING);
	assert_false(presence_is_unmoved(&watch, &fake.clocks));
}

int main(void)
{
#define PRESENCE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		PRESENCE_TEST(who_is_ready_and_was_switched_in_once_more_than_out_runs),
		PRESENCE_TEST(who_is_ready_and_was_switched_in_as_often_as_out_queues),
		PRESENCE_TEST(who_was_driven_off_by_the_look_was_running),
		PRESENCE_TEST(how_long_the_look_kept_it_off_is_the_queue_time_that_it_began),
		PRESENCE_TEST(who_waits_is_off_the_cpu_and_its_page_is_not_read),
		PRESENCE_TEST(who_waited_and_is_ready_but_was_not_switched_in_queues),
		PRESENCE_TEST(who_falls_asleep_while_the_page_is_read_was_running),
		PRESENCE_TEST(only_who_has_queued_is_asked_about_for_a_second),
		PRESENCE_TEST(who_was_on_a_cpu_is_still_there_while_no_clock_moves),
		PRESENCE_TEST(who_has_slept_is_asked_about_anew),
		PRESENCE_TEST(switches_in_that_were_not_counted_are_made_up_for),
		PRESENCE_TEST(who_uses_cpu_and_seems_to_be_off_it_is_on_it),
		PRESENCE_TEST(without_the_page_who_is_ready_runs),
	};

	return cmocka_run_group_tests_name("presence", tests, NULL, NULL);
}
