/* SPDX-License-Identifier: MIT
 *
 * PHP's own counters: in synthetic images, and against what a live php says of itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reader/counters.h"
#include "tests/unit/reader/fake_zval.h"

#define EG_AT 0x555500000000ULL
#define POINTER_AT 0x555500010000ULL
#define GC_AT 0x555500020000ULL
#define CHUNK_AT 0x7f0000200000ULL /* a multiple of 2 MiB */
#define HEAP_AT (CHUNK_AT + 0x40)
#define PAGE 4096

struct image {
	struct fake_memory memory;
	struct php_binary binary;
	struct view *view;
};

static void image_init(struct image *image)
{
	const struct layout *layout = layout_for_version(80236);

	memset(image, 0, sizeof(*image));
	fake_map(&image->memory, EG_AT, PAGE);
	fake_map(&image->memory, POINTER_AT, PAGE);
	fake_map(&image->memory, GC_AT, PAGE);
	fake_map(&image->memory, CHUNK_AT, PAGE);
	image->binary = (struct php_binary){.layout = layout, .executor_globals = EG_AT, .gc_globals = GC_AT};
	assert_int_equal(view_new(fake_read, &image->memory, EG_AT, 8, &image->view), 0);
	assert_int_equal(view_refresh(image->view, 0, 0, 0), 0);

	fake_put64(&image->memory, EG_AT + layout->eg_vm_stack, CHUNK_AT + 0x45000);
	fake_put64(&image->memory, CHUNK_AT, HEAP_AT);
	fake_put64(&image->memory, HEAP_AT + layout->mm_heap_size, 400000);
	fake_put64(&image->memory, HEAP_AT + layout->mm_heap_peak, 500000);
	fake_put64(&image->memory, HEAP_AT + layout->mm_heap_real_size, 2097152);
	fake_put64(&image->memory, HEAP_AT + layout->mm_heap_real_peak, 4194304);
	fake_put32(&image->memory, GC_AT + layout->gc_gc_runs, 3);
	fake_put32(&image->memory, GC_AT + layout->gc_collected, 4711);
}

static void image_deinit(struct image *image)
{
	view_free(image->view);
	fake_free(&image->memory);
}

static struct counters counters_of(struct image *image)
{
	struct counters counters;

	assert_int_equal(counters_read(&image->binary, image->view, &counters), 0);
	return counters;
}

static void assert_image_counters(const struct counters *counters)
{
	assert_true(counters->has_memory);
	assert_int_equal(counters->memory_bytes, 400000);
	assert_int_equal(counters->memory_peak_bytes, 500000);
	assert_int_equal(counters->memory_real_bytes, 2097152);
	assert_int_equal(counters->memory_real_peak_bytes, 4194304);
	assert_true(counters->has_gc);
	assert_int_equal(counters->gc_runs, 3);
	assert_int_equal(counters->gc_collected, 4711);
}

static void heap_is_found_through_its_variable(void **state)
{
	struct image image;
	struct counters counters;

	image_init(&image);
	image.binary.mm_heap_pointer = POINTER_AT;
	fake_put64(&image.memory, POINTER_AT, HEAP_AT);
	fake_put64(&image.memory, CHUNK_AT, 0);
	counters = counters_of(&image);
	assert_image_counters(&counters);
	image_deinit(&image);
}

static void heap_is_found_through_the_vm_stacks_chunk(void **state)
{
	struct image image;
	struct counters counters;

	image_init(&image);
	counters = counters_of(&image);
	assert_image_counters(&counters);
	image_deinit(&image);
}

static void what_can_not_be_read_is_absent(void **state)
{
	struct image image;

	image_init(&image);
	fake_put64(&image.memory, CHUNK_AT, 0x666600000000ULL);
	image.binary.gc_globals = 0x777700000000ULL;
	assert_false(counters_of(&image).has_memory);
	assert_false(counters_of(&image).has_gc);
	image_deinit(&image);

	image_init(&image); /* a worker that was only just forked has no VM stack */
	fake_put64(&image.memory, EG_AT + image.binary.layout->eg_vm_stack, 0);
	image.binary.gc_globals = 0;
	assert_false(counters_of(&image).has_memory);
	assert_false(counters_of(&image).has_gc);
	image_deinit(&image);
}

static void numbers_that_are_no_heaps_are_absent(void **state)
{
	struct image image;

	image_init(&image);
	fake_put64(
		&image.memory, HEAP_AT + image.binary.layout->mm_heap_size, 2097153); /* more than it has */
	assert_false(counters_of(&image).has_memory);
	image_deinit(&image);

	image_init(&image);
	fake_put64(&image.memory, HEAP_AT + image.binary.layout->mm_heap_real_size, 2097151);
	assert_false(counters_of(&image).has_memory);
	image_deinit(&image);
}

static void peak_is_at_least_the_present(void **state)
{
	struct image image;

	image_init(&image);
	fake_put64(&image.memory, HEAP_AT + image.binary.layout->mm_heap_peak, 399999);
	assert_int_equal(counters_of(&image).memory_peak_bytes, 400000);
	image_deinit(&image);
}

static int read_of_process(void *context, const struct remote_span *spans, size_t count, size_t *ret_failed)
{
	return remote_read(*(pid_t *)context, spans, count, ret_failed);
}

static void live_php_says_the_same_of_itself(void **state)
{
	static const char code[] =
		"for ($i = 0; $i < 30000; $i++) { $o = new stdClass; $o->o = $o; } unset($o);"
		"$text = str_repeat('x', 5000000); $text = null; gc_collect_cycles();"
		"$s = gc_status();"
		"printf('%d %d %d %d\n', memory_get_usage(true), memory_get_peak_usage(true), $s['runs'], "
		"$s['collected']);"
		"sleep(60);";
	_cleanup_(php_binary_freep) struct php_binary *binary = NULL;
	_cleanup_(view_freep) struct view *view = NULL;
	uint64_t real_bytes, real_peak_bytes;
	uint32_t gc_runs, gc_collected;
	struct counters counters;
	char why[256] = "", line[128];
	struct memory memory;
	int fds[2];
	FILE *out;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		execl("/usr/bin/php8.2", "php8.2", "-n", "-r", code, NULL);
		_exit(127);
	}
	close(fds[1]);
	out = fdopen(fds[0], "r");
	assert_non_null(out);
	assert_non_null(fgets(line, sizeof(line), out));
	assert_int_equal(sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu32, &real_bytes,
				 &real_peak_bytes, &gc_runs, &gc_collected),
		4);
	assert_true(gc_runs >= 3); /* 30,000 cycles, a run each 10,001 roots, and the one asked for */

	memory = remote_memory(&pid);
	if (php_binary_examine(pid, &memory, &binary, why, sizeof(why)) != 0)
		fail_msg("%s", why);
	assert_int_equal(view_new(read_of_process, &pid, binary->executor_globals, 8, &view), 0);
	for (int way = 0; way < 2; way++) {
		assert_int_equal(view_refresh(view, 0, 0, 0), 0);
		assert_int_equal(counters_read(binary, view, &counters), 0);
		assert_true(counters.has_memory);
		assert_int_equal(counters.memory_real_bytes, real_bytes);
		assert_int_equal(counters.memory_real_peak_bytes, real_peak_bytes);
		assert_in_range(counters.memory_peak_bytes, 5000000, real_peak_bytes);
		assert_in_range(counters.memory_bytes, 100000, 2000000);
		assert_true(counters.has_gc);
		assert_int_equal(counters.gc_runs, gc_runs);
		assert_int_equal(counters.gc_collected, gc_collected);
		binary->mm_heap_pointer = 0; /* and the second way to the heap */
	}
	fclose(out);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap_is_found_through_its_variable),
		cmocka_unit_test(heap_is_found_through_the_vm_stacks_chunk),
		cmocka_unit_test(what_can_not_be_read_is_absent),
		cmocka_unit_test(numbers_that_are_no_heaps_are_absent),
		cmocka_unit_test(peak_is_at_least_the_present),
		cmocka_unit_test(live_php_says_the_same_of_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
