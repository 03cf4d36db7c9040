/* SPDX-License-Identifier: MIT
 *
 * Copying a window in pieces while its target is sampled on.
 */
#include "target_fixture.h"

static struct window *copy;

static int set_up_copy(void **state)
{
	if (set_up(state) < 0)
		return -1;
	copy = window_new(target, &sampling, NULL);
	return copy ? 0 : -1;
}

static int tear_down_copy(void **state)
{
	window_free(copy);
	return tear_down(state);
}

/* A request under way, in @functions functions so far. */
static void be_busy(unsigned functions)
{
	char name[16];

	fake_request("/cart", fake.now_ns);
	for (unsigned i = 0; i < functions; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		work(name, 3 * MS);
	}
}

/* @most more nodes; how many it were. */
static uint32_t copy_some(uint32_t most, bool *ret_done)
{
	uint32_t copied = 0;
	int r = window_copy(copy, target, &sampling, most, &copied);

	assert_true(r >= 0);
	*ret_done = r == 1;
	return copied;
}

/* The copy is what a copy made in one go would be now. */
static void assert_true_copy(void)
{
	_cleanup_(window_freep) struct window *whole = window_new(target, &sampling, NULL);
	uint32_t copied;

	assert_int_equal(window_copy(whole, target, &sampling, UINT32_MAX, &copied), 1);
	assert_int_equal(copied, calltree_count(target->window.tree));
	assert_int_equal(copy->tree.count, whole->tree.count);
	assert_memory_equal(
		copy->tree.nodes, whole->tree.nodes, whole->tree.count * sizeof(*whole->tree.nodes));
	assert_memory_equal(&copy->tree.times, &whole->tree.times, sizeof(whole->tree.times));
	assert_memory_equal(&copy->accounting, &whole->accounting, sizeof(whole->accounting));
	assert_ptr_equal(copy->tree.frames, sampling.frames);
	assert_int_equal(copy->begin_ns, target->window_begin_ns);
}

static void a_copy_says_whose_it_is(void **state)
{
	bool done;

	be_busy(1);
	copy_some(100, &done);
	assert_true(done);
	assert_int_equal(copy->pid, 4711);
	assert_int_equal(copy->uid, 33);
	assert_string_equal(copy->pool, "www");
	assert_int_equal(copy->period_ns, 10 * MS);
	assert_int_equal(copy->accounting.taken, 1);
}

static void samples_taken_between_two_pieces_are_in_the_copy(void **state)
{
	bool done = false;
	unsigned pieces = 0;

	be_busy(20);
	for (unsigned i = 0; !done; i++) {
		char name[16];

		assert_true(copy_some(4, &done) <= 4);
		pieces++;
		if (done)
			break;
		/* in what is copied already, in what is not yet, and in what is new */
		snprintf(name, sizeof(name), "f%u", (i * 7) % 23);
		work(name, 2 * MS);
		window_follow(copy, target);
	}
	/* The root, {main} and 20 functions, and three more of the 23. */
	assert_true(pieces >= 6);
	assert_true_copy();
}

static void after_a_reset_it_begins_again(void **state)
{
	bool done;

	be_busy(10);
	copy_some(8, &done);
	target_reset(target, fake.now_ns);
	work("hot", 5 * MS);
	copy_some(100, &done);
	assert_true(done);
	assert_int_equal(copy->tree.count, 3);
	assert_true_copy();
}

static void when_frames_are_numbered_anew_it_begins_again(void **state)
{
	struct calltree *trees[] = {target->window.tree, NULL};
	bool done;

	for (uint32_t line = 1; line < 9; line++)
		frame_table_intern(sampling.frames,
			&(struct function_name){.name = "old", .file = "/srv/a.php", .line = line});
	be_busy(10);
	trees[1] = target->unit.tree;
	copy_some(8, &done);
	assert_int_equal(sampling_prune_frames(&sampling, trees, 2), 0);
	copy_some(100, &done);
	assert_true(done);
	assert_true_copy();
}

static void a_window_that_is_taken_leaves_an_empty_one(void **state)
{
	_cleanup_(window_freep) struct window *taken = NULL;
	bool done;

	be_busy(5);
	copy_some(100, &done);
	assert_int_equal(window_take(target, &sampling, &taken), 0);
	assert_int_equal(calltree_count(target->window.tree), 1);
	assert_int_equal(taken->tree.count, copy->tree.count);
	assert_memory_equal(
		taken->tree.nodes, copy->tree.nodes, copy->tree.count * sizeof(*copy->tree.nodes));
	assert_memory_equal(&taken->tree.times, &copy->tree.times, sizeof(copy->tree.times));
	assert_null(taken->order);
	assert_int_equal(taken->accounting.taken, 5);
}

static void what_was_handed_over_keeps_its_names(void **state)
{
	_cleanup_(profile_freep) struct profile *profile = NULL;
	struct calltree *trees[] = {target->window.tree, NULL};
	bool done;

	be_busy(3);
	trees[1] = target->unit.tree;
	copy_some(100, &done);
	/* Another code base runs now, and takes the numbers. */
	target_reset(target, fake.now_ns);
	calltree_clear(target->unit.tree);
	assert_int_equal(sampling_prune_frames(&sampling, trees, 2), 0);
	work("new", 3 * MS);
	assert_int_equal(weighed_tree_settle(&copy->tree), 0);
	assert_int_equal(weighed_tree_profile(&copy->tree, &profile), 0);
	assert_int_equal(time_of(profile, "f0").samples, 1);
	assert_int_equal(time_of(profile, "f1").samples, 1);
	assert_int_equal(time_of(profile, "f2").samples, 1);
	/* From the first look on. */
	assert_int_equal(profile_sum(profile).wall_ns, 6 * MS);
}

int main(void)
{
#define WINDOW_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_copy, tear_down_copy)
	const struct CMUnitTest tests[] = {
		WINDOW_TEST(a_copy_says_whose_it_is),
		WINDOW_TEST(samples_taken_between_two_pieces_are_in_the_copy),
		WINDOW_TEST(after_a_reset_it_begins_again),
		WINDOW_TEST(when_frames_are_numbered_anew_it_begins_again),
		WINDOW_TEST(a_window_that_is_taken_leaves_an_empty_one),
		WINDOW_TEST(what_was_handed_over_keeps_its_names),
	};

	return cmocka_run_group_tests_name("window", tests, NULL, NULL);
}
