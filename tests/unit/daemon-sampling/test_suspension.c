/* SPDX-License-Identifier: MIT
 *
 * Time in which nobody watches: no ticks, nothing in the window, <unread> in the unit; and nothing lost.
 */
#include "target_fixture.h"

static void begin_request(const char *path)
{
	fake_request(path, fake.now_ns);
	work("hot", 10 * MS);
}

static void suspended_time_is_unread_in_the_unit_and_not_in_the_window(void **state)
{
	tick();
	begin_request("/cart");
	fake_run(2 * MS);
	target_suspend(target);
	target_suspend(target);
	fake_run(30 * MS);
	fake_sleep(20 * MS);
	target_resume(target, &sampling);
	target_resume(target, &sampling);
	fake_run(10 * MS);
	tick();
	fake_idle();
	tick();

	assert_int_equal(ended()->duration_ns, 72 * MS);
	assert_int_equal(ended()->cpu_ns, 52 * MS);
	assert_int_equal(time_of(ended()->profile, "<unread>").wall_ns, 50 * MS);
	assert_int_equal(time_of(ended()->profile, "<unread>").cpu_ns, 30 * MS);
	assert_int_equal(time_of(ended()->profile, "hot").wall_ns, 22 * MS);
	assert_int_equal(ended()->accounting.expected, 2);
	assert_conserved(ended());
	_cleanup_(profile_freep) struct profile *profile = window();
	assert_int_equal(profile_sum(profile).wall_ns, 22 * MS);
	assert_int_equal(time_of(profile, "<unread>").wall_ns, 0);
}

static void a_process_that_ends_while_suspended_leaves_a_unit_that_adds_up(void **state)
{
	tick();
	begin_request("/cart");
	fake_run(5 * MS);
	target_suspend(target);
	fake_sleep(100 * MS);
	target_free(target, &sampling);
	target = NULL;
	assert_int_equal(ended()->duration_ns, 15 * MS);
	assert_int_equal(ended()->cpu_ns, 15 * MS);
	assert_conserved(ended());
}

static void requests_that_come_and_go_while_suspended_are_not_one(void **state)
{
	tick();
	begin_request("/one");
	fake_run(5 * MS);
	target_suspend(target);
	fake_run(15 * MS);
	fake_request("/three", fake.now_ns);
	fake_run(20 * MS);
	target_resume(target, &sampling);
	assert_string_equal(ended()->path, "/one");
	assert_int_equal(ended()->duration_ns, 30 * MS);
	assert_conserved(ended());
	fake_run(10 * MS);
	tick();
	fake_idle();
	tick();
	assert_string_equal(ended()->path, "/three");
	assert_int_equal(ended()->duration_ns, 30 * MS);
	assert_int_equal(ended()->cpu_ns, 30 * MS);
	assert_int_equal(time_of(ended()->profile, "<unread>").wall_ns, 20 * MS);
	assert_conserved(ended());
	_cleanup_(profile_freep) struct profile *profile = window();
	assert_int_equal(profile_sum(profile).wall_ns, 25 * MS);
}

static enum order_error finish(uint64_t handle, struct unit_result **ret_unit)
{
	return finish_target(&(struct finish_call){.handle = handle, .asked_ns = fake.now_ns}, ret_unit);
}

static void a_finish_is_answered_while_suspended(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit = NULL, *next = NULL;

	tick();
	begin_request("/cart");
	target_suspend(target);
	fake_run(20 * MS);
	assert_int_equal(finish(0, &unit), ORDER_OK);
	assert_int_equal(unit->duration_ns, 30 * MS);
	assert_int_equal(unit->cpu_ns, 30 * MS);
	assert_int_equal(time_of(unit->profile, "<unread>").cpu_ns, 20 * MS);
	assert_conserved(unit);
	/* Another request begins, which finish is the first to see. */
	fake_request("/next", fake.now_ns);
	fake_run(4 * MS);
	assert_int_equal(finish(77, &next), ORDER_E_NO_UNIT);
	assert_true(target->unit.open);
	assert_false(target->window.open);
	fake_run(6 * MS);
	target_resume(target, &sampling);
	fake_idle();
	tick();
	assert_string_equal(ended()->path, "/next");
	assert_int_equal(time_of(ended()->profile, "<unread>").wall_ns, 10 * MS);
	assert_conserved(ended());
	_cleanup_(profile_freep) struct profile *profile = window();
	assert_int_equal(profile_sum(profile).wall_ns, 10 * MS);
}

static void a_declined_unit_that_was_suspended_knows_its_cpu(void **state)
{
	tick();
	begin_request("/cart");
	fake_set_global("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
	fake_run(10 * MS);
	tick();
	target_suspend(target);
	fake_run(10 * MS);
	target_resume(target, &sampling);
	fake_run(10 * MS);
	tick();
	fake_idle();
	tick();
	assert_null(ended()->profile);
	assert_int_equal(ended()->duration_ns, 40 * MS);
	assert_int_equal(ended()->cpu_ns, 40 * MS);
	assert_int_equal(ended()->accounting.expected, 0);
}

int main(void)
{
#define SUSPENSION_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		SUSPENSION_TEST(suspended_time_is_unread_in_the_unit_and_not_in_the_window),
		SUSPENSION_TEST(a_process_that_ends_while_suspended_leaves_a_unit_that_adds_up),
		SUSPENSION_TEST(requests_that_come_and_go_while_suspended_are_not_one),
		SUSPENSION_TEST(a_finish_is_answered_while_suspended),
		SUSPENSION_TEST(a_declined_unit_that_was_suspended_knows_its_cpu),
	};

	return cmocka_run_group_tests_name("suspension", tests, NULL, NULL);
}
