/* SPDX-License-Identifier: MIT
 *
 * Weights into time: every class among those who were found in it, and not a nanosecond lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "daemon/profile/weighed_tree.h"

static struct weighed_tree tree;

static int set_up(void **state)
{
	tree = (struct weighed_tree){.nodes = calloc(4, sizeof(*tree.nodes)), .count = 4, .room = 4};
	if (!tree.nodes)
		return -1;
	tree.nodes[CALLTREE_ROOT] = (struct calltree_node){.parent = CALLTREE_NONE, .frame = FRAME_ROOT};
	for (uint32_t i = 1; i < 4; i++)
		tree.nodes[i].frame = FRAME_FIRST_PHP + i;
	return 0;
}

static int tear_down(void **state)
{
	weighed_tree_deinit(&tree);
	return 0;
}

static void give(uint32_t node, uint64_t running, uint64_t queued, uint64_t waiting)
{
	tree.nodes[node].cpu_ns = running;
	tree.nodes[node].queue_ns = queued;
	tree.nodes[node].wall_ns = waiting;
}

static void assert_time(uint32_t node, uint64_t wall_ns, uint64_t cpu_ns, uint64_t queue_ns)
{
	assert_int_equal(tree.nodes[node].wall_ns, wall_ns);
	assert_int_equal(tree.nodes[node].cpu_ns, cpu_ns);
	assert_int_equal(tree.nodes[node].queue_ns, queue_ns);
}

static void each_class_is_divided_among_those_found_in_it(void **state)
{
	/* 1 works, 2 is woken up and queues, 3 waits and works a little */
	give(1, 30, 10, 0);
	give(2, 0, 30, 0);
	give(3, 10, 0, 5);
	tree.times = (struct weighed_times){.cpu_ns = 400, .queue_ns = 800, .off_ns = 77};
	assert_int_equal(weighed_tree_settle(&tree), 0);
	assert_int_equal(tree.count, 4);
	assert_time(1, 300 + 200, 300, 200);
	assert_time(2, 600, 0, 600);
	assert_time(3, 100 + 77, 100, 0);
	assert_time(CALLTREE_ROOT, 0, 0, 0);
}

static void what_rounding_leaves_over_is_the_heaviests(void **state)
{
	/* 100 / 7 = 14.28 */
	give(1, 2, 1, 0);
	give(2, 4, 1, 0);
	give(3, 1, 5, 0);
	tree.times = (struct weighed_times){.cpu_ns = 100, .queue_ns = 100};
	assert_int_equal(weighed_tree_settle(&tree), 0);
	assert_time(1, 28 + 14, 28, 14);
	assert_time(2, 57 + 1 + 14, 58, 14);
	assert_time(3, 14 + 71 + 1, 14, 72);
}

static void queue_time_nobody_was_found_in_is_divided_like_cpu_time(void **state)
{
	give(1, 1, 0, 0);
	give(2, 3, 0, 9);
	tree.times = (struct weighed_times){.cpu_ns = 400, .queue_ns = 40};
	assert_int_equal(weighed_tree_settle(&tree), 0);
	assert_time(1, 110, 100, 10);
	assert_time(2, 330, 300, 30);
}

static void cpu_time_nobody_was_found_in_is_divided_like_queue_time(void **state)
{
	give(1, 0, 1, 0);
	give(2, 0, 3, 9);
	tree.times = (struct weighed_times){.cpu_ns = 400, .queue_ns = 40};
	assert_int_equal(weighed_tree_settle(&tree), 0);
	assert_time(1, 110, 100, 10);
	assert_time(2, 330, 300, 30);
}

static void time_of_a_class_without_samples_and_time_nobody_watched_is_unread(void **state)
{
	give(1, 5, 0, 0);
	tree.times = (struct weighed_times){
		.cpu_ns = 10, .off_ns = 7, .unseen_ns = 100, .unseen_cpu_ns = 30, .unseen_queue_ns = 20};
	assert_int_equal(weighed_tree_settle(&tree), 0);
	assert_time(1, 10, 10, 0);
	assert_int_equal(tree.count, 5);
	assert_int_equal(tree.nodes[4].frame, FRAME_UNREAD);
	assert_int_equal(tree.nodes[4].parent, CALLTREE_ROOT);
	assert_time(4, 107, 30, 20);
}

static void what_is_settled_stays_as_it_is(void **state)
{
	give(1, 5, 5, 5);
	tree.times = (struct weighed_times){.cpu_ns = 10, .queue_ns = 20, .off_ns = 30};
	assert_int_equal(weighed_tree_settle(&tree), 0);
	assert_int_equal(weighed_tree_settle(&tree), 0);
	assert_time(1, 60, 10, 20);
}

int main(void)
{
#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TREE_TEST(each_class_is_divided_among_those_found_in_it),
		TREE_TEST(what_rounding_leaves_over_is_the_heaviests),
		TREE_TEST(queue_time_nobody_was_found_in_is_divided_like_cpu_time),
		TREE_TEST(cpu_time_nobody_was_found_in_is_divided_like_queue_time),
		TREE_TEST(time_of_a_class_without_samples_and_time_nobody_watched_is_unread),
		TREE_TEST(what_is_settled_stays_as_it_is),
	};

	return cmocka_run_group_tests_name("weighed_tree", tests, NULL, NULL);
}
