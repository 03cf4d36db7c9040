/* SPDX-License-Identifier: MIT
 *
 * The view and its prediction on a fake address space: how many calls, what is torn, what survives.
 */
#include "reader/view.h"
#include "reader/prediction.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/unit/reader/fake_memory.h"

#define GUARD 0x5000
#define GUARD_BYTES 40
#define STACK 0x100000
#define HEAP 0x200000

struct fixture {
	struct fake_memory memory;
	struct view *view;
};

static int set_up(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	fake_map(&fixture->memory, GUARD, GUARD_BYTES);
	fake_map(&fixture->memory, STACK, 0x1000);
	fake_map(&fixture->memory, HEAP, 0x10000);
	for (unsigned i = 0; i < 0x10000 / 8; i++)
		fake_put64(&fixture->memory, HEAP + 8 * i, i);
	assert_int_equal(view_new(fake_read, &fixture->memory, GUARD, GUARD_BYTES, &fixture->view), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *fixture = *state;

	view_free(fixture->view);
	fake_free(&fixture->memory);
	free(fixture);
	return 0;
}

static uint64_t word(const void *bytes)
{
	uint64_t value;

	assert_non_null(bytes);
	memcpy(&value, bytes, sizeof(value));
	return value;
}

static void the_main_span_and_the_guard_come_with_one_call(void **state)
{
	struct fixture *f = *state;

	fake_put64(&f->memory, STACK + 0x40, 77);
	fake_put64(&f->memory, GUARD + 32, 0xabc);
	assert_int_equal(view_refresh(f->view, STACK, 0x800, VIEW_MAX_REREAD_BYTES), 0);
	assert_int_equal(word(view_at(f->view, STACK + 0x40, 8)), 77);
	assert_int_equal(word((const char *)view_guard(f->view) + 32), 0xabc);
	assert_int_equal(f->memory.calls, 1);
}

static void assert_read(const struct fixture *f, const remote_addr *addrs, size_t count)
{
	assert_int_equal(f->memory.last_spans, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(f->memory.last_addrs[i], addrs[i]);
}

static void the_outer_part_of_a_stack_is_read_between_the_two_copies_of_its_inner_end(void **state)
{
	struct fixture *f = *state;
	const remote_addr order[] = {GUARD, STACK + 0x600, STACK, GUARD, STACK + 0x600, GUARD};
	const struct view_main *main = view_main(f->view);

	fake_put64(&f->memory, STACK + 0x5f8, 0x5f8);
	fake_put64(&f->memory, STACK + 0x600, 0x600);
	assert_int_equal(view_refresh(f->view, STACK, 0x800, 0x200), 0);
	assert_read(f, order, 6);
	assert_int_equal(main->addr, STACK);
	assert_int_equal(main->bytes, 0x800);
	assert_int_equal(main->again_addr, STACK + 0x600);
	assert_int_equal(main->again_bytes, 0x200);
	assert_int_equal(word(main->first + 0x5f8), 0x5f8);
	assert_int_equal(word(main->first + 0x600), 0x600);
	assert_int_equal(word(main->again), 0x600);
	assert_ptr_equal(view_at(f->view, STACK + 0x5f8, 16), main->first + 0x5f8);
}

static void a_retry_reads_all_of_the_stack_twice(void **state)
{
	struct fixture *f = *state;
	const remote_addr order[] = {GUARD, STACK, GUARD, STACK, GUARD};

	assert_int_equal(view_refresh(f->view, STACK, 0x800, 0x200), 0);
	assert_int_equal(view_refresh_again(f->view, STACK, 0x800), 0);
	assert_read(f, order, 5);
}

static void what_lies_just_before_the_guard_comes_with_it(void **state)
{
	struct fixture *f = *state;
	struct view *view = NULL;
	const remote_addr order[] = {
		HEAP + 0x808, HEAP + 0x808, HEAP + 0x800}; /* the guard, and words before it */

	assert_int_equal(view_new(fake_read, &f->memory, HEAP + 0x808, 16, &view), 0);
	assert_int_equal(view_refresh(view, 0, 0, 0), 0);
	view_allow_lasting(view);
	assert_int_equal(word(view_at(view, HEAP + 0x800, 8)), 0x100);
	assert_int_equal(view_refresh(view, 0, 0, 0), 0);
	assert_read(f, order, 3);
	f->memory.calls = 0;
	assert_int_equal(word(view_at(view, HEAP + 0x800, 8)), 0x100);
	assert_int_equal(word(view_at(view, HEAP + 0x808, 8)), 0x101);
	assert_int_equal(f->memory.calls, 0);
	view_free(view);
}

static void what_can_no_longer_be_read_with_the_guard_is_dropped_and_the_guard_read_alone(void **state)
{
	struct fixture *f = *state;

	fake_map(&f->memory, GUARD - 0x100, 0x100); /* another mapping: no vector covers both */
	assert_int_equal(view_refresh(f->view, STACK, 0x100, 0x100), 0);
	view_allow_lasting(f->view);
	assert_non_null(view_at(f->view, GUARD - 0x10, 8));
	assert_int_equal(view_refresh(f->view, STACK, 0x100, 0x100), 0);
	assert_non_null(view_at(f->view, GUARD - 0x10, 8));
}

static void what_is_lasting_is_read_behind_the_instant(void **state)
{
	struct fixture *f = *state;
	const remote_addr order[] = {GUARD, STACK, GUARD, HEAP + 0x8000, STACK, GUARD, HEAP, GUARD};

	assert_int_equal(view_refresh(f->view, STACK, 0x100, 0x100), 0);
	assert_non_null(view_at(f->view, HEAP + 0x8000, 8));
	view_allow_lasting(f->view);
	assert_non_null(view_at(f->view, HEAP, 8));
	assert_int_equal(view_refresh(f->view, STACK, 0x100, 0x100), 0);
	assert_read(f, order, 8);
	assert_false(view_moved(f->view));
}

static void what_is_looked_at_briefly_comes_with_the_next_refresh_alone(void **state)
{
	struct fixture *f = *state;

	view_refresh(f->view, STACK, 0x100, 0x100);
	view_allow_lasting(f->view);
	view_allow_brief(f->view);
	assert_non_null(view_at(f->view, HEAP, 8));
	view_expect_lasting(f->view, HEAP + 0x8000, 8);
	view_refresh(f->view, STACK, 0x100, 0x100);
	assert_true(view_has(f->view, HEAP, 8));
	assert_true(view_has(f->view, HEAP + 0x8000, 8));
	view_refresh(f->view, STACK, 0x100, 0x100);
	assert_false(view_has(f->view, HEAP, 8));
	assert_true(view_has(f->view, HEAP + 0x8000, 8));
}

static void what_was_asked_for_once_comes_with_the_next_single_call(void **state)
{
	struct fixture *f = *state;

	view_refresh(f->view, STACK, 0x800, VIEW_MAX_REREAD_BYTES);
	assert_int_equal(word(view_at(f->view, HEAP + 0x100, 8)), 0x20);
	assert_int_equal(word(view_at(f->view, HEAP + 0x8000, 8)), 0x1000);
	assert_int_equal(f->memory.calls, 3);

	f->memory.calls = 0;
	assert_int_equal(view_refresh(f->view, STACK, 0x800, VIEW_MAX_REREAD_BYTES), 0);
	assert_int_equal(word(view_at(f->view, HEAP + 0x100, 8)), 0x20);
	assert_int_equal(word(view_at(f->view, HEAP + 0x8000, 8)), 0x1000);
	assert_int_equal(f->memory.calls, 1);
}

static void what_is_asked_for_unpredicted_is_not_read_again_unasked(void **state)
{
	struct fixture *f = *state;

	view_refresh(f->view, STACK, 0x800, VIEW_MAX_REREAD_BYTES);
	assert_int_equal(word(view_at_unpredicted(f->view, HEAP + 0x100, 8)), 0x20);
	assert_int_equal(f->memory.calls, 2);
	view_refresh(f->view, STACK, 0x800, VIEW_MAX_REREAD_BYTES);
	assert_false(view_has(f->view, HEAP + 0x100, 8));
}

/* However little each brings. */
static void an_instant_has_so_many_calls_and_no_more(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES);
	before = view_cost_bytes(f->view);
	for (unsigned i = 0; i < VIEW_MAX_FOLLOW_UPS; i++)
		assert_non_null(view_at_unpredicted(f->view, HEAP + 8 * i, 8));
	assert_null(view_at_unpredicted(f->view, HEAP + 8 * VIEW_MAX_FOLLOW_UPS, 8));
	assert_int_equal(view_error(f->view), VIEW_E_FULL);
	/* eight bytes and the guard, each time */
	assert_int_equal(view_cost_bytes(f->view) - before,
		VIEW_MAX_FOLLOW_UPS * (VIEW_CALL_COST_BYTES + 2 * VIEW_SPAN_COST_BYTES + 8 + GUARD_BYTES));
	view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES);
	assert_non_null(view_at_unpredicted(f->view, HEAP, 8));
}

static void what_lies_in_the_guard_needs_no_read_of_its_own(void **state)
{
	struct fixture *f = *state;
	size_t spans;

	fake_put64(&f->memory, GUARD + 32, 0xabc);
	view_refresh(f->view, STACK, 0x800, VIEW_MAX_REREAD_BYTES);
	spans = f->memory.last_spans;
	assert_int_equal(word(view_at(f->view, GUARD + 32, 8)), 0xabc);
	assert_int_equal(f->memory.calls, 1);

	view_refresh(f->view, STACK, 0x800, VIEW_MAX_REREAD_BYTES);
	assert_int_equal(f->memory.last_spans, spans);
}

static void a_pointer_stays_valid_while_follow_up_reads_pour_in(void **state)
{
	struct fixture *f = *state;

	view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES);
	const void *early = view_at(f->view, HEAP + 8, 8);
	const void *main = view_at(f->view, STACK, 8);

	for (unsigned i = 0; i < 0x10000 / 64; i++)
		assert_int_equal(word(view_at(f->view, HEAP + 64 * i, 8)), 8 * i);
	assert_int_equal(word(early), 1);
	assert_int_equal(word(main), 0);
}

static void a_pointer_is_aligned_as_the_target_s_address_is(void **state)
{
	struct fixture *f = *state;

	view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES);
	assert_int_equal((uintptr_t)view_at(f->view, HEAP + 0x104, 4) % 8, 4);
	assert_int_equal((uintptr_t)view_at(f->view, HEAP + 0x308, 24) % 8, 0);
}

static void many_spans_are_prefetched_with_one_call(void **state)
{
	struct fixture *f = *state;
	struct remote_span spans[200];

	for (unsigned i = 0; i < 200; i++)
		spans[i] = (struct remote_span){.addr = HEAP + 0x100 * (199 - i), .bytes = 24};
	view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES);
	f->memory.calls = 0;
	assert_int_equal(view_prefetch(f->view, spans, 200), 0);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(word(view_at(f->view, spans[i].addr, 8)), (spans[i].addr - HEAP) / 8);
	assert_int_equal(f->memory.calls, 1);
}

static void one_unreadable_span_of_a_prefetch_fails_alone(void **state)
{
	struct fixture *f = *state;
	struct remote_span spans[] = {
		{.addr = HEAP, .bytes = 8},
		{.addr = 0xdead0000, .bytes = 8},
		{.addr = HEAP + 0xfff8, .bytes = 8},
	};

	view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES);
	f->memory.calls = 0;
	assert_int_equal(view_prefetch(f->view, spans, 3), 0);
	assert_int_equal(f->memory.calls, 2);
	assert_int_equal(word(view_at(f->view, HEAP + 0xfff8, 8)), 0xfff8 / 8);
	assert_null(view_at(f->view, 0xdead0000, 8));
	assert_int_equal(view_error(f->view), REMOTE_E_FAULT);
	assert_int_equal(f->memory.calls, 2); /* what is known to be unreadable is not tried again */
}

static void an_object_at_the_end_of_its_page_is_not_read_beyond(void **state)
{
	struct fixture *f = *state;

	view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES);
	assert_int_equal(word(view_at(f->view, HEAP + 0xfff8, 8)), 0xfff8 / 8);
	assert_null(view_at(f->view, HEAP + 0xfff8, 16));
	assert_non_null(view_at(f->view, HEAP + 0xfffc, 4));
}

static void a_predicted_span_that_was_unmapped_does_not_cost_the_sample(void **state)
{
	struct fixture *f = *state;

	fake_map(&f->memory, 0x900000, 0x1000);
	view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES);
	view_at(f->view, 0x900000, 8);
	view_at(f->view, HEAP, 8);
	fake_unmap(&f->memory, 0x900000);

	f->memory.calls = 0;
	assert_int_equal(view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES), 0);
	assert_int_equal(f->memory.calls, 2);
	assert_int_equal(word(view_at(f->view, HEAP, 8)), 0);
	assert_int_equal(view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES), 0);
	assert_int_equal(f->memory.calls, 3); /* forgotten: one call again */
}

static void a_main_span_that_was_unmapped_leaves_the_rest(void **state)
{
	struct fixture *f = *state;

	view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES);
	view_at(f->view, HEAP, 8);
	fake_unmap(&f->memory, STACK);
	assert_int_equal(view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES), 0);
	assert_int_equal(word(view_at(f->view, HEAP, 8)), 0);
	assert_null(view_at(f->view, STACK, 8));
}

/* The target runs a PHP call while the last vector is on its way. */
static void move_before_the_last_span(struct fake_memory *memory, size_t span)
{
	if (span == *(size_t *)memory->mover)
		fake_put64(memory, GUARD + 32, 0xffff);
}

static void a_guard_that_changed_between_first_and_last_vector_is_torn(void **state)
{
	struct fixture *f = *state;
	size_t last = 2;

	f->memory.move = move_before_the_last_span;
	f->memory.mover = &last;
	assert_int_equal(view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES), VIEW_E_TORN);
	assert_non_null(view_at(f->view, STACK, 8)); /* to be looked at, at one's own risk */
	assert_null(view_at(f->view, HEAP, 8));
	assert_int_equal(view_error(f->view), VIEW_E_TORN);
	assert_int_equal(view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES), 0);
}

/* What was read on a retry may be of a function that did not exist at the first try. */
static void a_retry_keeps_nothing_that_was_read_before(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES), 0);
	view_allow_lasting(f->view);
	assert_int_equal(word(view_at(f->view, HEAP, 8)), 0);
	fake_put64(&f->memory, HEAP, 0x77);
	assert_int_equal(view_refresh_again(f->view, STACK, 0x100), 0);
	view_allow_lasting(f->view);
	assert_int_equal(word(view_at(f->view, HEAP, 8)), 0x77);
}

static void a_follow_up_read_that_finds_the_guard_changed_is_torn(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES), 0);
	fake_put64(&f->memory, GUARD, 1);
	assert_null(view_at(f->view, HEAP, 8));
	assert_int_equal(view_error(f->view), VIEW_E_TORN);

	unsigned calls = f->memory.calls;
	assert_null(view_at(f->view, HEAP + 0x1000, 8)); /* no further attempt in this instant */
	assert_int_equal(f->memory.calls, calls);

	view_allow_lasting(f->view);
	assert_int_equal(word(view_at(f->view, HEAP + 8, 8)), 1);
}

static void an_unreadable_guard_is_a_fault(void **state)
{
	struct fixture *f = *state;

	fake_unmap(&f->memory, GUARD);
	assert_int_equal(view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES), REMOTE_E_FAULT);
	assert_null(view_at(f->view, STACK, 8));
}

static void an_address_space_s_end_and_absurd_lengths_are_refused(void **state)
{
	struct fixture *f = *state;

	view_refresh(f->view, STACK, 0x100, VIEW_MAX_REREAD_BYTES);
	assert_null(view_at(f->view, UINT64_MAX - 3, 8));
	assert_null(view_at(f->view, HEAP, SIZE_MAX));
	assert_null(view_at(f->view, HEAP, VIEW_MAX_SPAN_BYTES + 1));
	assert_null(view_at(f->view, HEAP, 0));
}

static void neighbours_within_a_page_become_one_predicted_span(void **state)
{
	struct prediction prediction = {0};

	prediction_tick(&prediction, PREDICTION_MAX_AGE);
	prediction_use(&prediction, 0x1000, 24);
	prediction_use(&prediction, 0x1040, 24);
	assert_int_equal(prediction.count, 1);
	assert_int_equal(prediction.spans[0].addr, 0x1000);
	assert_int_equal(prediction.spans[0].bytes, 0x58);
	prediction_use(&prediction, 0x1ff0, 16); /* far away */
	prediction_use(&prediction, 0x2000, 16); /* next to it, on a page that may be unmapped */
	assert_int_equal(prediction.count, 3);
	assert_int_equal(prediction.total_bytes, 0x58 + 16 + 16);
}

static void overlapping_spans_become_one_whatever_their_length(void **state)
{
	struct prediction prediction = {0};

	prediction_tick(&prediction, PREDICTION_MAX_AGE);
	prediction_use(&prediction, 0x10000, 0x8000);
	prediction_use(&prediction, 0x20000, 0x8000);
	prediction_use(&prediction, 0x17000, 0xa000);
	assert_int_equal(prediction.count, 1);
	assert_int_equal(prediction.spans[0].addr, 0x10000);
	assert_int_equal(prediction.spans[0].bytes, 0x18000);
}

static void a_span_nobody_looks_at_is_forgotten_after_a_while(void **state)
{
	struct prediction prediction = {0};

	prediction_tick(&prediction, PREDICTION_MAX_AGE);
	prediction_use(&prediction, 0x1000, 8);
	prediction_use(&prediction, 0x8000, 8);
	for (unsigned i = 0; i < PREDICTION_MAX_AGE; i++) {
		prediction_tick(&prediction, PREDICTION_MAX_AGE);
		prediction_use(&prediction, 0x8000, 8);
	}
	assert_int_equal(prediction.count, 2);
	prediction_tick(&prediction, PREDICTION_MAX_AGE);
	assert_int_equal(prediction.count, 1);
	assert_int_equal(prediction.spans[0].addr, 0x8000);
	assert_int_equal(prediction.total_bytes, 8);
}

static void past_its_bounds_the_prediction_forgets_the_oldest_first(void **state)
{
	struct prediction prediction = {0};

	prediction_tick(&prediction, PREDICTION_MAX_AGE);
	prediction_use(&prediction, 0x1000, 8);
	prediction_tick(&prediction, PREDICTION_MAX_AGE);
	for (unsigned i = 0; i < PREDICTION_MAX_SPANS; i++)
		prediction_use(&prediction, 0x100000 + 0x1000 * i, 8);
	assert_int_equal(prediction.count, PREDICTION_MAX_SPANS);
	assert_int_equal(prediction.spans[0].addr, 0x100000);
	prediction_use(&prediction, 0x1000, 8); /* all others are of this instant: no room */
	assert_int_equal(prediction.count, PREDICTION_MAX_SPANS);
	assert_int_equal(prediction.spans[0].addr, 0x100000);
}

/* Random spans against the three things that must hold: sorted, apart from each other, sums right. */
static void whatever_is_used_the_list_stays_sorted_and_free_of_overlap(void **state)
{
	struct prediction prediction = {0};
	uint32_t random = 12345;

	for (unsigned round = 0; round < 200; round++) {
		prediction_tick(&prediction, PREDICTION_MAX_AGE);
		for (unsigned i = 0; i < 40; i++) {
			random = random * 1664525 + 1013904223;
			remote_addr addr = 0x10000 + (random >> 12) % 0x8000 * 8;
			prediction_use(&prediction, addr, 8 + (random >> 4) % 64 * 8);
		}
		size_t total = 0;
		for (size_t i = 0; i < prediction.count; i++) {
			total += prediction.spans[i].bytes;
			if (i > 0)
				assert_true(prediction.spans[i].addr >=
					    prediction.spans[i - 1].addr + prediction.spans[i - 1].bytes);
		}
		assert_int_equal(total, prediction.total_bytes);
		assert_true(prediction.count <= PREDICTION_MAX_SPANS);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_main_span_and_the_guard_come_with_one_call),
		TEST(what_was_asked_for_once_comes_with_the_next_single_call),
		TEST(the_outer_part_of_a_stack_is_read_between_the_two_copies_of_its_inner_end),
		TEST(a_retry_reads_all_of_the_stack_twice),
		TEST(what_lies_just_before_the_guard_comes_with_it),
		TEST(what_can_no_longer_be_read_with_the_guard_is_dropped_and_the_guard_read_alone),
		TEST(what_is_lasting_is_read_behind_the_instant),
		TEST(what_is_looked_at_briefly_comes_with_the_next_refresh_alone),
		TEST(what_is_asked_for_unpredicted_is_not_read_again_unasked),
		TEST(an_instant_has_so_many_calls_and_no_more),
		TEST(what_lies_in_the_guard_needs_no_read_of_its_own),
		TEST(a_pointer_stays_valid_while_follow_up_reads_pour_in),
		TEST(a_pointer_is_aligned_as_the_target_s_address_is),
		TEST(many_spans_are_prefetched_with_one_call),
		TEST(one_unreadable_span_of_a_prefetch_fails_alone),
		TEST(an_object_at_the_end_of_its_page_is_not_read_beyond),
		TEST(a_predicted_span_that_was_unmapped_does_not_cost_the_sample),
		TEST(a_main_span_that_was_unmapped_leaves_the_rest),
		TEST(a_guard_that_changed_between_first_and_last_vector_is_torn),
		TEST(a_retry_keeps_nothing_that_was_read_before),
		TEST(a_follow_up_read_that_finds_the_guard_changed_is_torn),
		TEST(an_unreadable_guard_is_a_fault),
		TEST(an_address_space_s_end_and_absurd_lengths_are_refused),
		cmocka_unit_test(neighbours_within_a_page_become_one_predicted_span),
		cmocka_unit_test(overlapping_spans_become_one_whatever_their_length),
		cmocka_unit_test(a_span_nobody_looks_at_is_forgotten_after_a_while),
		cmocka_unit_test(past_its_bounds_the_prediction_forgets_the_oldest_first),
		cmocka_unit_test(whatever_is_used_the_list_stays_sorted_and_free_of_overlap),
	};

	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
