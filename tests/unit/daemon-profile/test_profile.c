/* SPDX-License-Identifier: MIT
 *
 * Profiles: self and total, recursion, independence of what they were made from.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/profile/profile.h"

#define MS 1000000ull

struct fixture {
	struct frame_table *frames;
	struct calltree *tree;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_int_equal(frame_table_new(1000, 1 << 20, &fixture->frames), 0);
	assert_int_equal(calltree_new(1000, &fixture->tree), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	frame_table_free(fixture->frames);
	calltree_free(fixture->tree);
	free(fixture);
	return 0;
}

/* Charges a path given as "main>a>b", outermost first. */
static void charge(
	struct fixture *fixture, const char *path, uint64_t samples, uint64_t wall_ms, uint64_t cpu_ms)
{
	_cleanup_free_ char *copy = strdup(path);
	uint32_t node = CALLTREE_ROOT;
	char *rest = NULL;

	for (char *name = strtok_r(copy, ">", &rest); name; name = strtok_r(NULL, ">", &rest)) {
		struct function_name function = {.name = name, .file = "/app.php", .line = 1};
		bool overflow;

		node = calltree_child(
			fixture->tree, node, frame_table_intern(fixture->frames, &function), 5, &overflow);
		assert_false(overflow);
	}
	calltree_node(fixture->tree, node)->samples += samples;
	calltree_node(fixture->tree, node)->wall_ns += wall_ms * MS;
	calltree_node(fixture->tree, node)->cpu_ns += cpu_ms * MS;
}

static struct profile *made_of(struct fixture *fixture)
{
	struct profile *profile = NULL;

	assert_int_equal(profile_from_calltree(fixture->tree, fixture->frames, &profile), 0);
	return profile;
}

static struct profile_function function_of(const struct profile *profile, const char *name)
{
	_cleanup_free_ struct profile_function *functions = NULL;
	size_t count;

	assert_int_equal(profile_functions(profile, PROFILE_BY_SELF_WALL, &functions, &count), 0);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(profile->frames[functions[i].frame].name, name) == 0)
			return functions[i];
	}
	fail_msg("no function %s", name);
	abort();
}

static void a_caller_has_its_callees_time_in_total_and_not_in_self(void **state)
{
	charge(*state, "main", 1, 10, 5);
	charge(*state, "main>hot", 30, 300, 290);
	charge(*state, "main>wait>usleep", 20, 200, 1);
	_cleanup_(profile_freep) struct profile *profile = made_of(*state);

	struct profile_function caller = function_of(profile, "main");
	assert_int_equal(caller.self_samples, 1);
	assert_int_equal(caller.self_wall_ns, 10 * MS);
	assert_int_equal(caller.total_samples, 51);
	assert_int_equal(caller.total_wall_ns, 510 * MS);
	assert_int_equal(caller.total_cpu_ns, 296 * MS);
	struct profile_function wait = function_of(profile, "wait");
	assert_int_equal(wait.self_samples, 0);
	assert_int_equal(wait.total_wall_ns, 200 * MS);
	assert_int_equal(wait.total_cpu_ns, 1 * MS);
}

static void recursion_counts_once_in_total(void **state)
{
	/* fib calls itself three deep, directly and through another. */
	charge(*state, "main>fib", 1, 10, 10);
	charge(*state, "main>fib>fib", 2, 20, 20);
	charge(*state, "main>fib>fib>fib", 4, 40, 40);
	charge(*state, "main>fib>other>fib", 8, 80, 80);
	charge(*state, "fib", 16, 160, 160);
	_cleanup_(profile_freep) struct profile *profile = made_of(*state);

	struct profile_function fib = function_of(profile, "fib");
	assert_int_equal(fib.self_samples, 31);
	assert_int_equal(fib.total_samples, 31);
	assert_int_equal(fib.total_wall_ns, 310 * MS);
	assert_int_equal(function_of(profile, "other").total_samples, 8);
	assert_int_equal(function_of(profile, "main").total_samples, 15);
}

static void functions_come_in_the_order_asked_for(void **state)
{
	static const struct {
		enum profile_order order;
		const char *names[4];
	} cases[] = {
		{PROFILE_BY_SELF_WALL, {"sleep", "hot", "main", "wait"}},
		{PROFILE_BY_TOTAL_WALL, {"main", "sleep", "wait", "hot"}},
		{PROFILE_BY_SELF_CPU, {"hot", "main", "sleep", "wait"}},
		{PROFILE_BY_TOTAL_CPU, {"main", "hot", "sleep", "wait"}},
		{PROFILE_BY_SELF_SAMPLES, {"hot", "sleep", "main", "wait"}},
	};
	charge(*state, "main", 1, 10, 9);
	charge(*state, "main>hot", 25, 100, 90);
	charge(*state, "main>wait>sleep", 20, 200, 1);
	_cleanup_(profile_freep) struct profile *profile = made_of(*state);

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ struct profile_function *functions = NULL;
		size_t count;

		assert_int_equal(profile_functions(profile, cases[i].order, &functions, &count), 0);
		assert_int_equal(count, 4);
		for (size_t k = 0; k < count; k++)
			assert_string_equal(profile->frames[functions[k].frame].name, cases[i].names[k]);
	}
}

static void a_profile_outlives_what_it_was_made_of(void **state)
{
	struct fixture *fixture = *state;

	charge(fixture, "main>hot", 3, 30, 20);
	_cleanup_(profile_freep) struct profile *profile = made_of(fixture);
	calltree_clear(fixture->tree);
	frame_table_free(fixture->frames);
	assert_int_equal(frame_table_new(1000, 1 << 20, &fixture->frames), 0);
	charge(fixture, "something>else>there", 1, 1, 1);

	assert_int_equal(profile->node_count, 3);
	assert_int_equal(profile->frame_count, 3);
	assert_string_equal(profile->frames[0].name, "{root}");
	assert_string_equal(profile->frames[profile->nodes[2].frame].name, "hot");
	assert_string_equal(profile->frames[profile->nodes[2].frame].file, "/app.php");
	assert_int_equal(profile->nodes[0].parent, 0);
	assert_int_equal(profile->nodes[2].parent, 1);
	assert_int_equal(profile->nodes[2].line, 5);
	assert_int_equal(profile_sum(profile).wall_ns, 30 * MS);
}

static void only_frames_in_use_are_copied(void **state)
{
	struct fixture *fixture = *state;

	charge(fixture, "yesterday>long>gone", 1, 1, 1);
	calltree_clear(fixture->tree);
	charge(fixture, "today", 1, 1, 1);
	_cleanup_(profile_freep) struct profile *profile = made_of(fixture);

	assert_int_equal(profile->frame_count, 2);
	assert_string_equal(profile->frames[1].name, "today");
}

static void an_empty_tree_makes_a_profile_of_the_root_alone(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = made_of(*state);
	_cleanup_free_ struct profile_function *functions = NULL;
	size_t count = 99;

	assert_int_equal(profile->node_count, 1);
	assert_int_equal(profile_functions(profile, PROFILE_BY_SELF_WALL, &functions, &count), 0);
	assert_int_equal(count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_caller_has_its_callees_time_in_total_and_not_in_self, set_up, tear_down),
		cmocka_unit_test_setup_teardown(recursion_counts_once_in_total, set_up, tear_down),
		cmocka_unit_test_setup_teardown(functions_come_in_the_order_asked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_profile_outlives_what_it_was_made_of, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_frames_in_use_are_copied, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			an_empty_tree_makes_a_profile_of_the_root_alone, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
