/* SPDX-License-Identifier: MIT
 *
 * A unit's result: its profile is made once, whoever asks first.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/profile/unit.h"

#define FUNCTIONS 1000

/* 3 us on a CPU and 1 us asleep in each of FUNCTIONS functions, and 7 ns nobody saw. */
static struct unit_result *make_unit(struct frame_table **ret_frames)
{
	struct weighed_tree tree = {
		.nodes = calloc(FUNCTIONS + 1, sizeof(*tree.nodes)),
		.count = FUNCTIONS + 1,
		.room = FUNCTIONS + 1,
		.times = {.cpu_ns = FUNCTIONS * 3000, .off_ns = FUNCTIONS * 1000, .unseen_ns = 7},
	};
	struct unit_result value = {.period_ns = 5, .duration_ns = FUNCTIONS * 4000 + 7, .has_tree = true};
	char name[16];

	assert_int_equal(frame_table_new(2 * FUNCTIONS, 1 << 20, ret_frames), 0);
	for (uint32_t i = 1; i <= FUNCTIONS; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		tree.nodes[i] = (struct calltree_node){.parent = CALLTREE_ROOT,
			.frame = frame_table_intern(
				*ret_frames, &(struct function_name){.name = name, .file = ""}),
			.samples = 2,
			.cpu_ns = 10,
			.wall_ns = 10};
	}
	tree.frames = frame_table_ref(*ret_frames);
	value.tree = tree;
	return unit_result_new(&value);
}

static void its_profile_outlives_the_frame_table_and_adds_up(void **state)
{
	struct frame_table *frames = NULL;
	_cleanup_(unit_result_freep) struct unit_result *unit = make_unit(&frames);
	size_t bytes = unit_result_bytes(unit);

	frame_table_free(frames);
	assert_null(unit->profile);
	assert_int_equal(bytes, sizeof(*unit) + (FUNCTIONS + 1) * sizeof(struct calltree_node));
	assert_int_equal(unit_result_settle(unit), 0);
	assert_int_equal(profile_sum(unit->profile).wall_ns, FUNCTIONS * 4000 + 7);
	assert_int_equal(profile_sum(unit->profile).cpu_ns, FUNCTIONS * 3000);
	/* The root, the functions, and <unread>. */
	assert_int_equal(unit->profile->node_count, FUNCTIONS + 2);
	assert_string_equal(unit->profile->frames[FUNCTIONS].name, "f1000");
	assert_int_equal(unit->profile->nodes[FUNCTIONS].cpu_ns, 3000);
	assert_int_equal(unit->profile->nodes[FUNCTIONS].wall_ns, 4000);
	assert_string_equal(unit->profile->frames[FUNCTIONS + 1].name, "<unread>");
	assert_int_equal(unit->profile->nodes[FUNCTIONS + 1].wall_ns, 7);
	assert_int_equal(unit->profile->period_ns, 5);
	assert_int_equal(unit_result_bytes(unit), sizeof(*unit) + profile_bytes(unit->profile));
}

static void *settle(void *context)
{
	struct unit_result *unit = context;

	assert_int_equal(unit_result_settle(unit), 0);
	return unit->profile;
}

static void threads_that_ask_at_the_same_time_get_the_same(void **state)
{
	for (int round = 0; round < 20; round++) {
		struct frame_table *frames = NULL;
		_cleanup_(unit_result_freep) struct unit_result *unit = make_unit(&frames);
		pthread_t threads[4];
		void *seen;

		for (int i = 0; i < 4; i++)
			pthread_create(&threads[i], NULL, settle, unit);
		for (int i = 0; i < 4; i++) {
			pthread_join(threads[i], &seen);
			assert_ptr_equal(seen, unit->profile);
		}
		frame_table_free(frames);
	}
}

static void a_unit_that_collected_nothing_has_no_profile(void **state)
{
	_cleanup_(unit_result_freep) struct unit_result *unit =
		unit_result_new(&(struct unit_result){.duration_ns = 5});

	assert_int_equal(unit_result_settle(unit), 0);
	assert_null(unit->profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_profile_outlives_the_frame_table_and_adds_up),
		cmocka_unit_test(threads_that_ask_at_the_same_time_get_the_same),
		cmocka_unit_test(a_unit_that_collected_nothing_has_no_profile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
