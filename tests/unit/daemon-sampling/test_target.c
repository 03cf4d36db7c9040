/* SPDX-License-Identifier: MIT
 *
 * Ticks: what each of them finds, proves, charges and accounts for; and what is neither ticked nor charged.
 */
#include "target_fixture.h"

static void begin_request(const char *path)
{
	fake_request(path, fake.now_ns);
	work("hot", 10 * MS);
}

/* ---- has it run? ---- */

static void a_process_that_did_not_run_is_not_looked_at_again(void **state)
{
	tick();
	begin_request("/cart");
	fake_in_function(&sampling, "usleep");
	fake_sleep(10 * MS);
	tick();
	assert_int_equal(fake.looks, 3);
	fake_sleep(10 * MS);
	tick();
	fake_sleep(10 * MS);
	tick();
	assert_int_equal(fake.looks, 3);
	assert_int_equal(target->accounting.taken, 2);
	assert_int_equal(target->accounting.unchanged, 2);
	fake_run(1 * MS);
	fake_idle();
	tick();
	assert_int_equal(fake.looks, 4);
	assert_int_equal(time_of(ended()->profile, "usleep").samples, 3);
	assert_conserved(ended());
}

static void one_that_was_switched_in_meanwhile_is_looked_at_again(void **state)
{
	tick();
	begin_request("/cart");
	fake_sleep(10 * MS);
	tick();
	fake.clocks.switch_ins++;
	fake_sleep(10 * MS);
	tick();
	assert_int_equal(target->accounting.unchanged, 0);
	assert_int_equal(target->accounting.taken, 3);
}

static void how_often_in_a_row_it_was_disturbed_is_known(void **state)
{
	begin_request("/cart");
	for (unsigned i = 0; i < 3; i++)
		work("hot", 10 * MS);
	assert_int_equal(target->disturbed, 4);
	fake.now_ns += 10 * MS; /* it runs on */
	tick();
	assert_int_equal(target->disturbed, 0);
	work("hot", 10 * MS);
	assert_int_equal(target->disturbed, 1);
	fake_sleep(10 * MS);
	tick();
	assert_int_equal(target->disturbed, 0);
	work("hot", 10 * MS); /* it has woken up, which is nobody's doing */
	assert_int_equal(target->disturbed, 0);
}

static void one_that_queues_is_not_looked_at_again_and_its_cpu_time_is_who_had_it(void **state)
{
	_cleanup_(profile_freep) struct profile *seen = NULL;

	target->presence.queues_until_ns = UINT64_MAX; /* it has queued before */
	begin_request("/cart");
	work("hot", 10 * MS);
	fake_in_function(&sampling, "usleep");
	fake.clocks.run_ns += 1000; /* noted when it left the CPU */
	for (unsigned i = 0; i < 3; i++) {
		fake_queue(10 * MS);
		tick();
	}
	assert_int_equal(fake.looks, 3);
	assert_int_equal(target->accounting.unchanged, 2);
	fake.clocks.queue_ns += 30 * MS - 1000;
	work("hot", 10 * MS);
	seen = window();
	assert_int_equal(time_of(seen, "hot").cpu_ns, 20 * MS + 1000);
	assert_int_equal(time_of(seen, "hot").queue_ns, 0);
	assert_int_equal(time_of(seen, "usleep").cpu_ns, 0);
	assert_int_equal(time_of(seen, "usleep").queue_ns, 30 * MS - 1000);
	assert_int_equal(time_of(seen, "usleep").wall_ns, 30 * MS - 1000);
}

static void what_the_sampler_made_it_wait_is_charged_where_it_was(void **state)
{
	_cleanup_(profile_freep) struct profile *seen = NULL;

	target->presence.queues_until_ns = UINT64_MAX; /* it has queued before */
	begin_request("/cart");
	/* Each time it is driven off for 1 ms; how long it was is known from the second time on. */
	for (unsigned i = 0; i < 5; i++) {
		fake.driven_off = true;
		work("hot", 9 * MS);
		fake.now_ns += MS;
		fake.clocks.queue_ns += MS;
	}
	fake.driven_off = false;
	fake_in_function(&sampling, "usleep");
	fake_run(0);
	fake_queue(4 * MS);
	tick();
	seen = window();
	/* 5 ms had come to an end. Of the weights usleep has the 5 ms of its only sample, hot 4 times 1 ms.
	 */
	assert_in_range(time_of(seen, "hot").queue_ns, 5 * MS * 4 / 9 - 10, 5 * MS * 4 / 9 + 10);
	assert_int_equal(time_of(seen, "hot").queue_ns + time_of(seen, "usleep").queue_ns, 5 * MS);
	assert_int_equal(time_of(seen, "hot").cpu_ns, 45 * MS);
}

static void an_idle_one_that_did_not_run_is_idle(void **state)
{
	fake_sleep(0);
	tick();
	fake_sleep(10 * MS);
	tick();
	assert_int_equal(fake.looks, 1);
	assert_int_equal(target->accounting.idle, 2);
	assert_false(target->window.open);
}

static void what_could_not_be_read_of_a_blocked_process_is_tried_again(void **state)
{
	tick();
	begin_request("/cart");
	fake.answer = PHP_PROCESS_E_UNREADABLE;
	fake_sleep(10 * MS);
	tick();
	fake_sleep(10 * MS);
	tick();
	assert_int_equal(target->accounting.unreadable, 2);
	assert_int_equal(target->accounting.unchanged, 0);
	fake_in_function(&sampling, "usleep");
	fake_sleep(10 * MS);
	tick();
	fake_run(1 * MS);
	fake_idle();
	tick();
	assert_int_equal(time_of(ended()->profile, "<unread>").samples, 0);
	assert_int_equal(time_of(ended()->profile, "usleep").samples, 1);
	assert_conserved(ended());
}

static void what_has_not_changed_since_the_last_sample_is_not_looked_up_again(void **state)
{
	tick();
	begin_request("/cart");
	fake_in_function(&sampling, "hot");
	fake.sample.serial = 1;
	fake_run(10 * MS);
	tick();
	fake_in_function(&sampling, "warm");
	fake.sample.since = fake.sample.same_outer = 1;
	fake.sample.serial = 2;
	fake.frames[1] = fake.frames[0]; /* a wrong name shows that nobody reads it */
	fake_run(10 * MS);
	tick();
	assert_int_equal(calltree_count(target->window.tree), 4); /* the root, {main}, hot and warm */
}

/* ---- classes ---- */

static void every_tick_is_of_one_class(void **state)
{
	struct cadence_due late = {.expected = 4, .late_ns = 6 * MS, .period_ns = 10 * MS};

	tick();
	begin_request("/cart");
	fake.answer = PHP_PROCESS_E_TORN;
	fake_run(10 * MS);
	tick();
	fake.answer = PHP_PROCESS_E_UNREADABLE;
	fake_run(10 * MS);
	tick();
	fake_in_function(&sampling, "hot");
	fake.sample.retries = 2;
	fake.sample.omitted = 5;
	fake_run(40 * MS);
	assert_int_equal(target_tick(target, &sampling, &late), TARGET_LIVES);

	assert_int_equal(target->accounting.expected, 8);
	assert_int_equal(target->accounting.idle, 1);
	assert_int_equal(target->accounting.taken, 2);
	assert_int_equal(target->accounting.torn_lost, 1);
	assert_int_equal(target->accounting.unreadable, 1);
	assert_int_equal(target->accounting.missed, 3);
	assert_int_equal(target->accounting.torn_retried, 1);
	assert_int_equal(target->accounting.truncated, 1);
	assert_int_equal(target->accounting.late, 1);
	assert_true(accounting_is_balanced(&target->accounting));
	assert_int_equal(sampling.accounting.expected, 8);
	assert_int_equal(target->unit.labels.accounting.expected, 7);
	assert_true(accounting_is_balanced(&target->unit.labels.accounting));
}

static void deadlines_before_it_joined_are_not_its_own(void **state)
{
	struct cadence_due late = {.expected = 5, .period_ns = 10 * MS};

	target->not_its_deadlines = 2;
	fake_sleep(40 * MS);
	assert_int_equal(target_tick(target, &sampling, &late), TARGET_LIVES);
	assert_int_equal(target->accounting.expected, 3);
	assert_int_equal(target->accounting.missed, 2);
	fake_sleep(10 * MS);
	tick();
	assert_int_equal(target->accounting.expected, 4);
}

static void a_tick_for_deadlines_before_it_joined_is_none(void **state)
{
	struct cadence_due due = {.expected = 2, .period_ns = 10 * MS};

	target->not_its_deadlines = 2;
	assert_int_equal(target_tick(target, &sampling, &due), TARGET_LIVES);
	assert_int_equal(target->accounting.expected, 0);
	assert_int_equal(fake.looks, 0);
}

/* A stretched deadline is late by half of the period in force, not of the one that was asked for. */
static void lateness_is_measured_by_the_period_in_force(void **state)
{
	struct cadence_due due = {.expected = 1, .late_ns = 6 * MS, .period_ns = 20 * MS};

	assert_int_equal(target_tick(target, &sampling, &due), TARGET_LIVES);
	assert_int_equal(target->accounting.late, 0);
	assert_int_equal(target->accounting.late_histogram[3], 1); /* a quarter to a half */
	due.late_ns = 11 * MS;
	assert_int_equal(target_tick(target, &sampling, &due), TARGET_LIVES);
	assert_int_equal(target->accounting.late, 1);
}

static void a_unit_says_the_longest_period_that_was_in_force(void **state)
{
	struct cadence_due due = {.expected = 1, .period_ns = 25 * MS};

	begin_request("/cart");
	work("hot", 10 * MS);
	assert_int_equal(target->unit.labels.period_ns, 10 * MS);
	fake_run(25 * MS);
	assert_int_equal(target_tick(target, &sampling, &due), TARGET_LIVES);
	work("hot", 10 * MS);
	fake_idle();
	tick();
	assert_int_equal(ended()->period_ns, 25 * MS);
	assert_int_equal(ended()->asked_period_ns, 10 * MS);
}

/* Its memory is gone a while before its pidfd says that it has ended: longest where a busy machine lets it
 * wait. */
static void ticks_while_a_process_is_about_to_end_are_not_its_own(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = NULL;

	begin_request("/cart");
	work("hot", 10 * MS);
	fake.answer = PHP_PROCESS_E_GONE;
	for (int i = 0; i < 3; i++) {
		fake_run(1 * MS);
		tick();
	}
	assert_int_equal(target->accounting.expected, 2);
	assert_int_equal(target->accounting.taken, 2);
	assert_int_equal(target->accounting.unreadable, 0);
	profile = window();
	assert_int_equal(time_of(profile, "<unread>").wall_ns, 0);
}

static void a_process_that_makes_no_sense_for_long_is_lost(void **state)
{
	fake.answer = PHP_PROCESS_E_UNREADABLE;
	for (int i = 0; i < TARGET_MAX_UNREADABLE_TICKS; i++) {
		fake_sleep(10 * MS);
		tick();
	}
	assert_int_equal(fake_tick(target, &sampling), TARGET_LOST);
}

static void a_process_that_has_ended_is_gone_and_one_that_cant_be_followed_lost(void **state)
{
	fake.clocks_error = -ESRCH;
	assert_int_equal(fake_tick(target, &sampling), TARGET_GONE);
	fake.clocks_error = -EPROTO;
	assert_int_equal(fake_tick(target, &sampling), TARGET_LOST);
	assert_int_equal(target->accounting.expected, 0);
}

static void a_unit_past_its_limit_is_not_charged_and_the_window_is(void **state)
{
	sampling.options.auto_max_ns = 25 * MS;
	tick();
	begin_request("/cart");
	for (int i = 0; i < 3; i++) {
		fake_run(10 * MS);
		tick();
	}
	fake_idle();
	tick();
	assert_true(ended()->capped);
	/* 40 ms: two samples in the first 25; what came after the tick at 30 is unseen */
	assert_int_equal(ended()->accounting.taken, 2);
	assert_int_equal(time_of(ended()->profile, "hot").samples, 2);
	assert_int_equal(time_of(ended()->profile, "<unread>").wall_ns, 10 * MS);
	assert_int_equal(ended()->cpu_ns, 40 * MS);
	assert_conserved(ended());
	assert_int_equal(target->window_accounting.taken, 4);
}

/* ---- the window ---- */

static void a_window_holds_requests_and_nothing_between_them(void **state)
{
	tick();
	begin_request("/one");
	fake_run(4 * MS);
	fake_idle();
	fake_sleep(6 * MS);
	tick();
	fake_sleep(1000 * MS);
	tick();
	begin_request("/two");

	_cleanup_(profile_freep) struct profile *profile = window();
	assert_int_equal(profile_sum(profile).wall_ns, 24 * MS);
	assert_int_equal(profile_sum(profile).cpu_ns, 24 * MS);
	assert_int_equal(profile_sum(profile).samples, 2);
}

static void a_window_of_a_request_seen_in_its_middle_begins_with_the_look(void **state)
{
	fake_request("/slow", START_NS - 50 * MS);
	fake_in_function(&sampling, "hot");
	tick();
	fake_run(10 * MS);
	tick();

	_cleanup_(profile_freep) struct profile *profile = window();
	assert_int_equal(profile_sum(profile).wall_ns, 10 * MS);
}

static void a_reset_empties_the_window_and_leaves_the_unit(void **state)
{
	tick();
	begin_request("/cart");
	fake_sleep(10 * MS);
	tick();
	target_reset(target, fake.now_ns);
	assert_int_equal(target->window_accounting.expected, 0);
	/* The process has not run, yet its place in the window has to be found anew. */
	fake_sleep(10 * MS);
	tick();

	_cleanup_(profile_freep) struct profile *profile = window();
	assert_int_equal(profile_sum(profile).wall_ns, 10 * MS);
	assert_int_equal(profile_sum(profile).cpu_ns, 0);
	assert_int_equal(time_of(profile, "hot").samples, 1);
	fake_run(1 * MS);
	fake_idle();
	tick();
	assert_int_equal(time_of(ended()->profile, "hot").samples, 3);
	assert_int_equal(ended()->duration_ns, 31 * MS);
	assert_conserved(ended());
}

/* ---- over any history ---- */

static uint64_t draw(uint64_t *random, uint64_t below)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random % below;
}

static void step_at_random(uint64_t *random)
{
	static const char *const functions[] = {"a", "b", "c"};
	struct unit_result *unit = NULL;
	char text[200];

	draw(random, 2) ? fake_run(draw(random, 20 * MS)) : fake_sleep(draw(random, 20 * MS));
	switch (draw(random, 12)) {
	case 0:
		fake_request("/next", draw(random, 2) ? fake.now_ns - draw(random, 10 * MS) : 0);
		fake_in_function(&sampling, "a");
		break;
	case 1:
		fake_idle();
		break;
	case 2:
		snprintf(text, sizeof(text),
			"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0%d;h=%llu;p=%d",
			(int)draw(random, 4) > 0, (unsigned long long)(fake.now_ns - draw(random, 2 * MS)),
			(int)draw(random, 4) > 0);
		fake_set_global(text);
		break;
	case 3:
		if (target_finish(target, &sampling, &(struct finish_call){.asked_ns = fake.now_ns}, &unit) ==
			ORDER_OK) {
			sampling_retain(&sampling, unit, fake.now_ns);
			unit_result_free(unit);
		}
		break;
	case 4:
		target_suspend(target);
		break;
	case 5:
		target_resume(target, &sampling);
		break;
	case 6:
		target_reset(target, fake.now_ns);
		break;
	case 7:
		fake.answer = PHP_PROCESS_E_UNREADABLE;
		break;
	default:
		if (fake.sample.request.active)
			fake_in_function(&sampling, functions[draw(random, 3)]);
		break;
	}
	if (!target->suspended)
		tick();
}

static void over_any_history_all_units_add_up(void **state)
{
	uint64_t random = 20240607;
	size_t units = 0;

	sampling.options.auto_max_ns = 100 * MS;
	sampling.options.retained_units = 4096;
	sampling.options.retained_bytes = 1u << 30;
	for (int i = 0; i < 20000; i++) {
		step_at_random(&random);
		if (i % 1000 != 999)
			continue;
		for (size_t n = 0; n < retention_count(sampling.retention); n++, units++) {
			struct unit_result *unit = retention_nth(sampling.retention, n);

			assert_int_equal(unit_result_settle(unit), 0);
			if (unit->profile)
				assert_conserved(unit);
		}
		sampling_expire(&sampling, fake.now_ns + 1000000 * MS);
	}
	assert_in_range(units, 1000, 20000);
}

int main(void)
{
#define TARGET_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TARGET_TEST(a_process_that_did_not_run_is_not_looked_at_again),
		TARGET_TEST(one_that_was_switched_in_meanwhile_is_looked_at_again),
		TARGET_TEST(how_often_in_a_row_it_was_disturbed_is_known),
		TARGET_TEST(one_that_queues_is_not_looked_at_again_and_its_cpu_time_is_who_had_it),
		TARGET_TEST(what_the_sampler_made_it_wait_is_charged_where_it_was),
		TARGET_TEST(an_idle_one_that_did_not_run_is_idle),
		TARGET_TEST(what_could_not_be_read_of_a_blocked_process_is_tried_again),
		TARGET_TEST(what_has_not_changed_since_the_last_sample_is_not_looked_up_again),
		TARGET_TEST(every_tick_is_of_one_class),
		TARGET_TEST(deadlines_before_it_joined_are_not_its_own),
		TARGET_TEST(a_tick_for_deadlines_before_it_joined_is_none),
		TARGET_TEST(lateness_is_measured_by_the_period_in_force),
		TARGET_TEST(a_unit_says_the_longest_period_that_was_in_force),
		TARGET_TEST(ticks_while_a_process_is_about_to_end_are_not_its_own),
		TARGET_TEST(a_process_that_makes_no_sense_for_long_is_lost),
		TARGET_TEST(a_process_that_has_ended_is_gone_and_one_that_cant_be_followed_lost),
		TARGET_TEST(a_unit_past_its_limit_is_not_charged_and_the_window_is),
		TARGET_TEST(a_window_holds_requests_and_nothing_between_them),
		TARGET_TEST(a_window_of_a_request_seen_in_its_middle_begins_with_the_look),
		TARGET_TEST(a_reset_empties_the_window_and_leaves_the_unit),
		TARGET_TEST(over_any_history_all_units_add_up),
	};

	return cmocka_run_group_tests_name("target", tests, NULL, NULL);
}
