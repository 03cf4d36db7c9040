/* SPDX-License-Identifier: MIT
 *
 * A frame table full of code that nobody runs any more.
 */
#include "fake_process.h"

static struct sampling sampling;
static struct target *target;

static int set_up(void **state)
{
	struct engine_options options = fake_options();

	/* The fixed frames, {main}, and nine more. */
	options.max_frames = FRAME_FIRST_PHP + 10;
	memset(&fake, 0, sizeof(fake));
	fake.now_ns = START_NS;
	if (sampling_init(&sampling, &options) < 0)
		return -1;
	target = fake_target(&sampling);
	fake_request("/cart", fake.now_ns);
	return 0;
}

static int tear_down(void **state)
{
	target_free(target, &sampling);
	sampling_deinit(&sampling);
	return 0;
}

static void work(const char *function)
{
	fake_in_function(&sampling, function);
	fake_run(10 * MS);
	assert_int_equal(fake_tick(target, &sampling), TARGET_LIVES);
}

static void prune(void)
{
	struct calltree *trees[] = {target->window.tree, target->unit.tree};

	assert_int_equal(sampling_prune_frames(&sampling, trees, 2), 0);
}

static uint64_t samples_of(const struct calltree *tree, const char *function)
{
	uint64_t samples = 0;

	for (uint32_t i = 0; i < calltree_count(tree); i++)
		if (strcmp(frame_table_get(sampling.frames, calltree_nodes(tree)[i].frame)->name, function) ==
			0)
			samples += calltree_nodes(tree)[i].samples;
	return samples;
}

static void names_in_use_stay_and_others_make_room(void **state)
{
	struct function_name old = {.file = "/srv/releases/41/a.php", .line = 1};
	char name[16];

	old.name = name;
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "old%d", i);
		frame_table_intern(sampling.frames, &old);
	}
	work("hot");
	assert_int_equal(samples_of(target->window.tree, "<other>"), 1);
	target_reset(target, fake.now_ns);
	prune();
	work("hot");
	assert_int_equal(samples_of(target->window.tree, "hot"), 1);
	/* The unit's tree remembers what it could not name. */
	assert_int_equal(samples_of(target->unit.tree, "<other>"), 1);
	assert_int_equal(samples_of(target->unit.tree, "hot"), 1);
}

static void trees_keep_their_names_and_readers_name_anew(void **state)
{
	for (uint32_t line = 1; line <= 4; line++)
		frame_table_intern(sampling.frames,
			&(struct function_name){.name = "unused", .file = "/srv/a.php", .line = line});
	work("hot");
	work("cold");
	prune();
	assert_int_equal(frame_table_count(sampling.frames), FRAME_FIRST_PHP + 3);
	assert_int_equal(sampling.names.epoch, 1);
	work("hot");
	assert_int_equal(samples_of(target->window.tree, "hot"), 2);
	assert_int_equal(samples_of(target->window.tree, "cold"), 1);
	assert_int_equal(samples_of(target->unit.tree, "hot"), 2);
	/* {main}, hot, cold and the root: no path is there twice. */
	assert_int_equal(calltree_count(target->window.tree), 4);
}

static void a_place_that_is_proved_stays_proved(void **state)
{
	work("hot");
	fake_in_function(&sampling, "usleep");
	fake_sleep(10 * MS);
	assert_int_equal(fake_tick(target, &sampling), TARGET_LIVES);
	prune();
	fake_sleep(10 * MS);
	assert_int_equal(fake_tick(target, &sampling), TARGET_LIVES);
	assert_int_equal(target->accounting.unchanged, 1);
	assert_int_equal(samples_of(target->window.tree, "usleep"), 2);
}

int main(void)
{
#define PRUNING_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		PRUNING_TEST(names_in_use_stay_and_others_make_room),
		PRUNING_TEST(trees_keep_their_names_and_readers_name_anew),
		PRUNING_TEST(a_place_that_is_proved_stays_proved),
	};

	return cmocka_run_group_tests_name("frame_pruning", tests, NULL, NULL);
}
