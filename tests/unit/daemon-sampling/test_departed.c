/* SPDX-License-Identifier: MIT
 *
 * The windows of targets that are gone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "daemon/profile/frame_table.h"
#include "daemon/sampling/departed.h"

static struct departed departed;
static struct calltree *window;

static int set_up(void **state)
{
	return calltree_new(1000, &window);
}

static int tear_down(void **state)
{
	departed_reset(&departed, "");
	calltree_free(window);
	return 0;
}

static uint32_t child(struct calltree *tree, uint32_t parent, uint32_t frame)
{
	bool overflow;

	return calltree_child(tree, parent, FRAME_FIRST_PHP + frame, 1, &overflow);
}

static void windows_of_one_pool_and_user_are_one_group(void **state)
{
	struct departed_group *www = departed_group(&departed, "www", 33, 1000);

	assert_string_equal(www->pool, "www");
	assert_int_equal(www->begin_ns, UINT64_MAX);
	assert_ptr_equal(departed_group(&departed, "www", 33, 1000), www);
	assert_ptr_not_equal(departed_group(&departed, "www", 34, 1000), www);
	assert_ptr_not_equal(departed_group(&departed, "api", 33, 1000), www);
	assert_int_equal(departed.count, 3);
}

static void times_and_samples_of_the_same_path_add_up(void **state)
{
	struct calltree *sum = departed_group(&departed, "www", 33, 1000)->tree;
	uint32_t main = child(window, CALLTREE_ROOT, 0), hot = child(window, main, 1);

	*calltree_node(window, hot) = (struct calltree_node){.parent = main,
		.frame = FRAME_FIRST_PHP + 1,
		.line = 1,
		.samples = 3,
		.line_approximate_samples = 2,
		.wall_ns = 30,
		.cpu_ns = 20,
		.queue_ns = 5};
	/* In the sum the path is met in another order. */
	child(sum, CALLTREE_ROOT, 9);
	assert_int_equal(calltree_add(sum, calltree_nodes(window), calltree_count(window)), 0);
	assert_int_equal(calltree_add(sum, calltree_nodes(window), calltree_count(window)), 0);

	const struct calltree_node *node = calltree_node(sum, child(sum, child(sum, CALLTREE_ROOT, 0), 1));
	assert_int_equal(node->samples, 6);
	assert_int_equal(node->line_approximate_samples, 4);
	assert_int_equal(node->wall_ns, 60);
	assert_int_equal(node->cpu_ns, 40);
	assert_int_equal(node->queue_ns, 10);
	assert_int_equal(calltree_count(sum), 4);
}

static void what_finds_no_room_is_counted_and_its_time_kept(void **state)
{
	struct calltree *sum = departed_group(&departed, "www", 33, 64)->tree;
	int without_room;

	for (uint32_t i = 0; i < 100; i++)
		calltree_node(window, child(window, CALLTREE_ROOT, i))->wall_ns = 10;
	/* 64 nodes: the root, 61 of the 100, and two kept back for <other> */
	without_room = calltree_add(sum, calltree_nodes(window), calltree_count(window));
	assert_int_equal(without_room, 39);
	assert_int_equal(calltree_sum(sum).wall_ns, 1000);
}

static void past_the_bound_a_window_goes_with_its_target(void **state)
{
	char pool[64];

	for (int i = 0; i < DEPARTED_MAX_GROUPS; i++) {
		snprintf(pool, sizeof(pool), "pool%d", i);
		assert_non_null(departed_group(&departed, pool, 33, 64));
	}
	assert_null(departed_group(&departed, "one more", 33, 64));
	assert_non_null(departed_group(&departed, "pool7", 33, 64));
}

static void a_reset_forgets_one_pool_or_all(void **state)
{
	departed_group(&departed, "www", 33, 64);
	departed_group(&departed, "api", 33, 64);
	departed_group(&departed, "www", 34, 64);
	assert_int_equal(departed_reset(&departed, "shop"), 0);
	assert_int_equal(departed_reset(&departed, "www"), 2);
	assert_int_equal(departed.count, 1);
	assert_string_equal(departed.groups[0].pool, "api");
	assert_int_equal(departed_reset(&departed, ""), 1);
	assert_int_equal(departed.count, 0);
}

int main(void)
{
#define DEPARTED_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		DEPARTED_TEST(windows_of_one_pool_and_user_are_one_group),
		DEPARTED_TEST(times_and_samples_of_the_same_path_add_up),
		DEPARTED_TEST(what_finds_no_room_is_counted_and_its_time_kept),
		DEPARTED_TEST(past_the_bound_a_window_goes_with_its_target),
		DEPARTED_TEST(a_reset_forgets_one_pool_or_all),
	};

	return cmocka_run_group_tests_name("departed", tests, NULL, NULL);
}
