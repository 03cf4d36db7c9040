/* SPDX-License-Identifier: MIT
 *
 * The calltree: same stacks meet in the same node, full trees lose no time, and a long random run agrees with
 * a plain list of paths.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/profile/calltree.h"
#include "daemon/profile/frame_table.h"

#define A (FRAME_FIRST_PHP + 0)
#define B (FRAME_FIRST_PHP + 1)
#define C (FRAME_FIRST_PHP + 2)
#define D (FRAME_FIRST_PHP + 3)

#define STACK(...) \
	((struct frame[]){__VA_ARGS__}), sizeof((struct frame[]){__VA_ARGS__}) / sizeof(struct frame)
#define F(id, at)                             \
	{                                     \
		.name_id = (id), .line = (at) \
	}

static struct calltree *new_tree(uint32_t max_nodes)
{
	struct calltree *tree = NULL;

	assert_int_equal(calltree_new(max_nodes, &tree), 0);
	return tree;
}

static uint32_t descend(struct calltree *tree, const struct frame *frames, size_t count)
{
	const struct calltree_stack stack = {.frames = frames, .count = count, .outer = count};
	bool overflow = true;
	uint32_t node = calltree_descend(tree, &stack, &overflow);

	assert_false(overflow);
	return node;
}

static void the_same_stack_ends_in_the_same_node(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000);
	uint32_t first = descend(tree, STACK(F(C, 3), F(B, 2), F(A, 1)));
	uint32_t other = descend(tree, STACK(F(D, 3), F(B, 2), F(A, 1)));
	uint32_t again = descend(tree, STACK(F(C, 3), F(B, 2), F(A, 1)));

	assert_int_equal(first, again);
	assert_int_not_equal(first, other);
	assert_int_equal(calltree_count(tree), 5); /* root, A, B, C, D */
	assert_int_equal(calltree_node(tree, first)->frame, C);
	assert_int_equal(calltree_node(tree, first)->parent, calltree_node(tree, other)->parent);
}

static void another_line_is_another_node(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000);
	uint32_t at_3 = descend(tree, STACK(F(B, 3), F(A, 1)));
	uint32_t at_4 = descend(tree, STACK(F(B, 4), F(A, 1)));

	assert_int_not_equal(at_3, at_4);
	assert_int_equal(calltree_node(tree, at_4)->line, 4);
}

static void a_shorter_stack_ends_at_the_ancestor(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000);
	uint32_t leaf = descend(tree, STACK(F(C, 3), F(B, 2), F(A, 1)));
	uint32_t middle = descend(tree, STACK(F(B, 2), F(A, 1)));
	uint32_t leaf_again = descend(tree, STACK(F(C, 3), F(B, 2), F(A, 1)));

	assert_int_equal(calltree_node(tree, leaf)->parent, middle);
	assert_int_equal(leaf, leaf_again);
	assert_int_equal(calltree_count(tree), 4);
}

static void no_frames_are_the_root(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000);
	struct frame none;

	assert_int_equal(descend(tree, &none, 0), CALLTREE_ROOT);
}

static void left_out_frames_are_marked_where_they_were(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000);
	/* D called C, C called many, the last of which called B, B called A. */
	const struct frame frames[] = {F(A, 1), F(B, 2), F(C, 3), F(D, 4)};
	const struct calltree_stack stack = {
		.frames = frames, .count = 4, .inner = 2, .outer = 2, .truncated = true};
	bool overflow;
	uint32_t leaf = calltree_descend(tree, &stack, &overflow);
	const uint32_t expected[] = {A, B, FRAME_TRUNCATED, C, D, FRAME_ROOT};

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(calltree_node(tree, leaf)->frame, expected[i]);
		leaf = calltree_node(tree, leaf)->parent;
	}
	assert_int_equal(leaf, CALLTREE_NONE);
}

static void cleared_it_forgets_and_keeps_its_memory(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(100000);
	struct frame stack[2] = {F(B, 0), F(A, 1)};

	for (uint32_t line = 1; line <= 5000; line++) {
		stack[0].line = line;
		descend(tree, stack, 2);
	}
	size_t bytes = calltree_bytes(tree);
	calltree_clear(tree);
	assert_int_equal(calltree_count(tree), 1);
	assert_int_equal(calltree_bytes(tree), bytes);
	assert_int_equal(calltree_node(tree, descend(tree, stack, 2))->line, 5000);
	assert_int_equal(calltree_count(tree), 3);
}

static void a_full_tree_sends_new_paths_to_other_below_the_deepest_known_node(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(CALLTREE_MIN_NODES);
	struct frame stack[2] = {F(B, 0), F(A, 1)};
	bool overflow = false;
	uint32_t node = 0;

	for (uint32_t line = 1; !overflow; line++) {
		assert_in_range(line, 1, CALLTREE_MIN_NODES);
		stack[0].line = line;
		node = calltree_descend(
			tree, &(struct calltree_stack){.frames = stack, .count = 2, .outer = 2}, &overflow);
	}
	assert_int_equal(calltree_node(tree, node)->frame, FRAME_OTHER);
	uint32_t parent = calltree_node(tree, node)->parent;
	assert_int_equal(calltree_node(tree, parent)->frame, A);
	/* What is known is still found. */
	stack[0].line = 1;
	assert_int_equal(calltree_node(tree, descend(tree, stack, 2))->line, 1);
}

static void other_always_has_room_and_no_sample_is_lost(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(CALLTREE_MIN_NODES);
	const uint64_t samples = 20000;
	bool overflow;

	srandom(1);
	for (uint64_t i = 0; i < samples; i++) {
		struct frame stack[6];

		for (size_t depth = 0; depth < 6; depth++)
			stack[depth] = (struct frame)F(A + (uint32_t)random() % 5, (uint32_t)random() % 3);
		uint32_t node = calltree_descend(
			tree, &(struct calltree_stack){.frames = stack, .count = 6, .outer = 6}, &overflow);
		assert_in_range(node, 1, CALLTREE_MIN_NODES - 1);
		calltree_node(tree, node)->samples++;
	}
	assert_in_range(calltree_count(tree), 1, CALLTREE_MIN_NODES);
	assert_int_equal(calltree_sum(tree).samples, samples);
}

static void hundred_thousand_random_stacks_agree_with_a_list_of_paths(void **state)
{
	enum { DEPTH = 8, PATHS = 512, ROUNDS = 100000 };
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(65536);
	static struct frame paths[PATHS][DEPTH];
	static uint32_t node_of_path[PATHS];
	static uint64_t samples_of_path[PATHS];

	srandom(2);
	for (size_t i = 0; i < PATHS; i++) {
		/* The leaf's line is the path's number: no two paths are the same. */
		paths[i][0] = (struct frame)F(A, (uint32_t)i + 1);
		for (size_t depth = 1; depth < DEPTH; depth++)
			paths[i][depth] = (struct frame)F(A + (uint32_t)random() % 4, (uint32_t)random() % 2);
	}
	for (size_t round = 0; round < ROUNDS; round++) {
		size_t i = (size_t)random() % PATHS;
		uint32_t node = descend(tree, paths[i], DEPTH);

		if (samples_of_path[i]++ == 0)
			node_of_path[i] = node;
		assert_int_equal(node, node_of_path[i]);
		calltree_node(tree, node)->samples++;
	}
	for (size_t i = 0; i < PATHS; i++) {
		uint32_t node = node_of_path[i];

		assert_int_equal(calltree_node(tree, node)->samples, samples_of_path[i]);
		for (size_t depth = 0; depth < DEPTH; depth++) {
			assert_int_equal(calltree_node(tree, node)->frame, paths[i][depth].name_id);
			assert_int_equal(calltree_node(tree, node)->line, paths[i][depth].line);
			node = calltree_node(tree, node)->parent;
		}
		assert_int_equal(node, CALLTREE_ROOT);
	}
	assert_int_equal(calltree_sum(tree).samples, ROUNDS);
}

static void descending_known_stacks_takes_no_more_memory(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(65536);
	static struct frame stack[STACK_MAX_FRAMES];

	for (size_t i = 0; i < STACK_MAX_FRAMES; i++)
		stack[i] = (struct frame)F(A + (uint32_t)i, 1);
	descend(tree, stack, STACK_MAX_FRAMES);
	descend(tree, stack, 1);
	size_t bytes = calltree_bytes(tree);
	for (size_t i = 0; i < 1000; i++)
		descend(tree, stack + i, STACK_MAX_FRAMES - i);
	assert_int_equal(calltree_bytes(tree), bytes);
	assert_int_equal(calltree_count(tree), 1 + STACK_MAX_FRAMES + 1);
}

static void bounds_that_make_no_tree_are_refused(void **state)
{
	struct calltree *tree = NULL;

	assert_int_equal(calltree_new(CALLTREE_MIN_NODES - 1, &tree), -EINVAL);
	assert_int_equal(calltree_new(CALLTREE_MAX_NODES + 1, &tree), -EINVAL);
	assert_null(tree);
}

static void renumbered_frames_are_found_by_their_new_numbers(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000);
	uint32_t leaf = descend(tree, STACK(F(D, 3), F(B, 2), F(B, 1)));
	/* B becomes A, D becomes B */
	uint32_t numbers[] = {[FRAME_ROOT] = FRAME_ROOT, [B] = A, [D] = B};

	calltree_node(tree, leaf)->samples = 7;
	calltree_renumber_frames(tree, numbers);
	assert_int_equal(descend(tree, STACK(F(B, 3), F(A, 2), F(A, 1))), leaf);
	assert_int_equal(calltree_node(tree, leaf)->samples, 7);
	assert_int_equal(calltree_count(tree), 4);
	descend(tree, STACK(F(D, 3), F(B, 2), F(B, 1)));
	assert_int_equal(calltree_count(tree), 7);
}

static void nodes_are_taken_whole_and_leave_an_empty_tree(void **state)
{
	/* few, and many: those are not copied */
	static const uint32_t counts[] = {3, 5000};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		_cleanup_(calltree_freep) struct calltree *tree = new_tree(10000), *sum = new_tree(10000);
		_cleanup_free_ struct calltree_node *nodes = NULL;
		uint32_t count = 0;

		for (uint32_t line = 1; line <= counts[i]; line++)
			calltree_node(tree, descend(tree, STACK(F(B, line), F(A, 1))))->samples = line;
		assert_int_equal(calltree_take_nodes(tree, &nodes, &count), 0);
		assert_int_equal(count, 2 + counts[i]);
		assert_int_equal(calltree_count(tree), 1);
		assert_int_equal(calltree_sum(tree).samples, 0);
		assert_int_equal(calltree_add(sum, nodes, count), 0);
		assert_int_equal(calltree_sum(sum).samples, counts[i] * (counts[i] + 1) / 2);
		/* It is as good as new. */
		descend(tree, STACK(F(B, 7), F(A, 1)));
		assert_int_equal(calltree_count(tree), 3);
	}
}

/* ---- a descent that begins where the stacks part ---- */

/* The stack of @count frames as sample number @serial, of which so many are those of number @since. */
static uint32_t descend_numbered(struct calltree *tree, const struct frame *frames, size_t count,
	size_t same_outer, uint64_t since, uint64_t serial)
{
	const struct calltree_stack stack = {.frames = frames,
		.count = count,
		.outer = count,
		.same_outer = same_outer,
		.since = since,
		.serial = serial};
	bool overflow = true;
	uint32_t node = calltree_descend(tree, &stack, &overflow);

	assert_false(overflow);
	return node;
}

static void what_is_known_to_be_the_same_is_not_looked_at(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000);
	const struct frame first[] = {F(C, 3), F(B, 2), F(A, 1)};
	/* A wrong name in the outer part shows that nobody read it. */
	const struct frame second[] = {F(D, 4), F(D, 9), F(D, 9)};
	uint32_t c = descend_numbered(tree, first, 3, 0, 0, 1);
	uint32_t d = descend_numbered(tree, second, 3, 2, 1, 2);

	assert_int_equal(calltree_node(tree, d)->parent, calltree_node(tree, c)->parent);
	assert_int_equal(calltree_count(tree), 5);
}

static void a_tree_that_missed_the_sample_before_compares_all(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000);
	const struct frame first[] = {F(C, 3), F(B, 2), F(A, 1)};
	const struct frame third[] = {F(C, 3), F(D, 2), F(A, 1)};
	uint32_t node;

	descend_numbered(tree, first, 3, 0, 0, 1);
	/* Number 2, whose outer frames number 3 has, never came here. */
	node = descend_numbered(tree, third, 3, 2, 2, 3);
	assert_int_equal(calltree_node(tree, calltree_node(tree, node)->parent)->frame, D);
}

static void a_tree_that_was_emptied_or_renumbered_compares_all(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000);
	const struct frame frames[] = {F(C, 3), F(B, 2), F(A, 1)};
	uint32_t numbers[D + 1];
	uint32_t node;

	descend_numbered(tree, frames, 3, 0, 0, 1);
	calltree_clear(tree);
	node = descend_numbered(tree, frames, 3, 2, 1, 2);
	assert_int_equal(calltree_count(tree), 4);
	assert_int_equal(calltree_node(tree, calltree_node(tree, node)->parent)->frame, B);

	for (uint32_t i = 0; i <= D; i++)
		numbers[i] = i;
	numbers[B] = D;
	numbers[D] = B;
	calltree_renumber_frames(tree, numbers);
	node = descend_numbered(tree, frames, 3, 2, 2, 3);
	assert_int_equal(calltree_node(tree, calltree_node(tree, node)->parent)->frame, B);
}

static void no_more_is_known_than_what_lies_outside_of_a_gap(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000);
	const struct frame frames[] = {F(D, 4), F(C, 3), F(B, 2), F(A, 1)};
	struct calltree_stack stack = {
		.frames = frames, .count = 4, .inner = 1, .outer = 1, .truncated = true, .serial = 1};
	bool overflow;
	uint32_t node;

	calltree_descend(tree, &stack, &overflow);
	node = descend_numbered(tree, frames, 4, 3, 1, 2);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(calltree_node(tree, node)->frame, frames[i].name_id);
		node = calltree_node(tree, node)->parent;
	}
	assert_int_equal(node, CALLTREE_ROOT);
}

/* Does the way from @node to the root show @frames? */
static void assert_path(struct calltree *tree, uint32_t node, const struct frame *frames, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(calltree_node(tree, node)->frame, frames[i].name_id);
		assert_int_equal(calltree_node(tree, node)->line, frames[i].line);
		node = calltree_node(tree, node)->parent;
	}
	assert_int_equal(node, CALLTREE_ROOT);
}

static void whatever_is_said_to_be_the_same_a_stack_ends_where_it_belongs(void **state)
{
	_cleanup_(calltree_freep) struct calltree *tree = new_tree(1000000);
	struct frame stack[40];
	size_t count = 0;

	srandom(3);
	for (uint64_t serial = 1; serial <= 20000; serial++) {
		/* Some of the outer frames, which stand at the end, stay; others are called inside of them.
		 */
		size_t same = count > 0 ? (size_t)random() % (count < 40 ? count + 1 : count) : 0;
		size_t inner = 1 + (size_t)random() % (40 - same);

		memmove(stack + inner, stack + count - same, same * sizeof(*stack));
		for (size_t i = 0; i < inner; i++)
			stack[i] = (struct frame)F(A + (uint32_t)random() % 3, (uint32_t)random() % 2);
		count = inner + same;
		if (random() % 4 == 0)
			continue; /* the tree misses it */
		assert_path(
			tree, descend_numbered(tree, stack, count, same, serial - 1, serial), stack, count);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_stack_ends_in_the_same_node),
		cmocka_unit_test(what_is_known_to_be_the_same_is_not_looked_at),
		cmocka_unit_test(a_tree_that_missed_the_sample_before_compares_all),
		cmocka_unit_test(a_tree_that_was_emptied_or_renumbered_compares_all),
		cmocka_unit_test(no_more_is_known_than_what_lies_outside_of_a_gap),
		cmocka_unit_test(whatever_is_said_to_be_the_same_a_stack_ends_where_it_belongs),
		cmocka_unit_test(another_line_is_another_node),
		cmocka_unit_test(a_shorter_stack_ends_at_the_ancestor),
		cmocka_unit_test(no_frames_are_the_root),
		cmocka_unit_test(left_out_frames_are_marked_where_they_were),
		cmocka_unit_test(cleared_it_forgets_and_keeps_its_memory),
		cmocka_unit_test(a_full_tree_sends_new_paths_to_other_below_the_deepest_known_node),
		cmocka_unit_test(other_always_has_room_and_no_sample_is_lost),
		cmocka_unit_test(hundred_thousand_random_stacks_agree_with_a_list_of_paths),
		cmocka_unit_test(descending_known_stacks_takes_no_more_memory),
		cmocka_unit_test(bounds_that_make_no_tree_are_refused),
		cmocka_unit_test(renumbered_frames_are_found_by_their_new_numbers),
		cmocka_unit_test(nodes_are_taken_whole_and_leave_an_empty_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
