/* SPDX-License-Identifier: MIT
 *
 * The heart of "one system call a sample". A view reads a guard (the words of executor_globals that change
 * with every PHP call), the stack, all that the last samples looked at, and the guard again, in one
 * process_vm_readv(). The kernel copies in order, so an unchanged guard behind everything proves that what
 * lies between belongs to one instant. What the sample then asks for and did not get is read at once, with
 * the guard as last vector, and is part of the next refresh.
 *
 * Knows addresses and bytes, nothing of PHP. The bytes of one instant lie in an arena, so that nothing moves
 * while a sample is being interpreted; the arena is sized by what the last instants needed, and shrinks again
 * when a deep stack has gone. Spans are widened to multiples of 8 bytes, which never crosses a page: pointers
 * given out are aligned as in the target, and the spans lie gap-free in the arena, one vector for the kernel.
 */
#include "reader/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/arena.h"
#include "reader/loaded.h"
#include "reader/prediction.h"
#include "reader/view_plan.h"

struct view {
	view_read_fn read;
	void *context;

	remote_addr guard_addr;
	size_t guard_bytes;
	uint8_t guard[VIEW_MAX_GUARD_BYTES] __attribute__((aligned(8)));
	uint8_t guard_between[VIEW_MAX_GUARD_BYTES], guard_behind[VIEW_MAX_GUARD_BYTES];
	bool moved;         /* the guard changed within this instant */
	bool allow_lasting; /* what is looked at need not belong to the instant */
	int broken;         /* why nothing more is read in this instant; 0 */
	int error;

	struct view_main main;

	struct loaded loaded;
	struct remote_span faults[VIEW_MAX_FAULTS]; /* known unreadable in this instant */
	size_t fault_count;

	struct arena arena;
	size_t follow_up_bytes;
	unsigned follow_ups;
	uint64_t cost_bytes; /* of its life */

	struct prediction exact, lasting, brief;
	struct prediction *noted; /* the one of these in which what is looked at is noted */
};

int view_new(view_read_fn read, void *context, remote_addr guard, size_t guard_bytes, struct view **ret_view)
{
	struct view *view;

	if (guard_bytes == 0 || guard_bytes > VIEW_MAX_GUARD_BYTES)
		return -EINVAL;
	view = calloc(1, sizeof(*view));
	if (!view)
		return -ENOMEM;
	view->read = read;
	view->context = context;
	view->guard_addr = guard;
	view->guard_bytes = guard_bytes;
	view->noted = &view->exact;
	*ret_view = view;
	return 0;
}

void view_free(struct view *view)
{
	if (!view)
		return;
	arena_deinit(&view->arena);
	loaded_deinit(&view->loaded);
	free(view);
}

static struct remote_span widened(remote_addr addr, size_t bytes)
{
	remote_addr start = addr & ~(remote_addr)7;

	return (struct remote_span){.addr = start, .bytes = (addr + bytes - start + 7) & ~(size_t)7};
}

static bool in_main(const struct view *view, remote_addr addr, size_t bytes)
{
	return addr >= view->main.addr && bytes <= view->main.bytes &&
	       addr - view->main.addr <= view->main.bytes - bytes;
}

static bool in_guard(const struct view *view, remote_addr addr, size_t bytes)
{
	return addr >= view->guard_addr && bytes <= view->guard_bytes &&
	       addr - view->guard_addr <= view->guard_bytes - bytes;
}

/* The bytes at @addr among those of this instant, or NULL. */
static const void *look_up(const struct view *view, remote_addr addr, size_t bytes)
{
	if (in_main(view, addr, bytes))
		return view->main.first + (addr - view->main.addr);
	return loaded_find(&view->loaded, addr, bytes, view->moved && !view->allow_lasting);
}

const struct view_main *view_main(const struct view *view)
{
	return &view->main;
}

bool view_has(const struct view *view, remote_addr addr, size_t bytes)
{
	return look_up(view, addr, bytes) != NULL;
}

static int read_spans(
	struct view *view, const struct remote_span *spans, size_t count, size_t *ret_failed_span)
{
	view->cost_bytes += VIEW_CALL_COST_BYTES;
	for (size_t i = 0; i < count; i++)
		view->cost_bytes += VIEW_SPAN_COST_BYTES + spans[i].bytes;
	return view->read(view->context, spans, count, ret_failed_span);
}

/* Instants after which a span that was looked at briefly and not again is forgotten. What proves functions is
 * needed once a request: a short one after the other has use for it in every sample, a longer one pays for a
 * call of 2 us, as against 0.35 us a vector in all its samples. */
#define BRIEF_MAX_AGE 1

/* Forgets the span that could not be read. False: it was a guard, without which there is nothing. */
static bool drop_span(struct view *view, const struct view_plan *plan, size_t failed)
{
	remote_addr addr = plan->spans[failed].addr;

	if (addr == view->guard_addr)
		return false;
	if (failed >= plan->lasting)
		(void)(prediction_drop(&view->lasting, addr) || prediction_drop(&view->brief, addr));
	else if (failed >= plan->exact && failed < plan->exact_end)
		prediction_drop(&view->exact, addr);
	else
		view->main = (struct view_main){0};
	return true;
}

static int read_plan(struct view *view, struct view_plan *plan)
{
	size_t failed = 0;
	int r = view_plan_place(plan, &view->main, &view->arena);

	if (r == 0)
		r = read_spans(view, plan->spans, plan->count, &failed);
	if (r == REMOTE_E_FAULT && drop_span(view, plan, failed))
		return -EAGAIN;
	return r;
}

static int note_loaded(struct view *view, const struct view_plan *plan)
{
	const struct remote_span *guard = &plan->spans[plan->last_guard];
	int r = loaded_add(&view->loaded, view->guard_addr, view->guard_bytes, view->guard, true);

	if (view->main.bytes > 0) {
		view->main.first = (const uint8_t *)plan->spans[plan->main].into -
				   (view->main.again_addr - view->main.addr);
		view->main.again = plan->spans[plan->again].into;
	}
	for (size_t i = plan->exact; i < plan->exact_end && r == 0; i++)
		r = loaded_add(
			&view->loaded, plan->spans[i].addr, plan->spans[i].bytes, plan->spans[i].into, true);
	for (size_t i = plan->lasting; i < plan->lasting_end && r == 0; i++)
		r = loaded_add(
			&view->loaded, plan->spans[i].addr, plan->spans[i].bytes, plan->spans[i].into, false);
	if (r == 0 && guard->addr != view->guard_addr)
		r = loaded_add(
			&view->loaded, guard->addr, view->guard_addr - guard->addr, guard->into, false);
	return r;
}

static bool is_guard(const struct view *view, const uint8_t *guard)
{
	return memcmp(view->guard, guard, view->guard_bytes) == 0;
}

/* Sets what is to be read as main span, and of it twice. */
static void set_main(struct view *view, remote_addr addr, size_t bytes, size_t again_bytes)
{
	struct remote_span span = widened(addr, bytes);
	remote_addr again;

	view->main = (struct view_main){0};
	if (bytes == 0 || span.bytes > VIEW_MAX_SPAN_BYTES)
		return;
	if (again_bytes > VIEW_MAX_REREAD_BYTES)
		again_bytes = VIEW_MAX_REREAD_BYTES;
	again = again_bytes < span.bytes ? (span.addr + span.bytes - again_bytes) & ~(remote_addr)7
					 : span.addr;
	view->main = (struct view_main){
		.addr = span.addr,
		.bytes = span.bytes,
		.again_addr = again,
		.again_bytes = span.addr + span.bytes - again,
	};
}

static int refresh(struct view *view)
{
	const struct view_plan_parts parts = {
		.guard_addr = view->guard_addr,
		.guard_bytes = view->guard_bytes,
		.guard = view->guard,
		.guard_between = view->guard_between,
		.guard_behind = view->guard_behind,
		.main = &view->main,
		.exact = &view->exact,
		.lasting = &view->lasting,
		.brief = &view->brief,
	};
	struct view_plan plan;
	int r = -EAGAIN;

	view->fault_count = 0;
	view->follow_up_bytes = 0;
	view->follow_ups = 0;
	view->allow_lasting = false;
	view->noted = &view->exact;
	view->broken = 0;

	for (unsigned attempt = 0; r == -EAGAIN; attempt++) {
		if (attempt == VIEW_MAX_FAULTS) { /* much has been unmapped: start afresh */
			prediction_clear(&view->exact);
			prediction_clear(&view->lasting);
			prediction_clear(&view->brief);
			view->main = (struct view_main){0};
		}
		view_plan_make(&plan, &parts);
		r = read_plan(view, &plan);
	}
	if (r == 0)
		r = note_loaded(view, &plan);
	if (r != 0) {
		loaded_clear(&view->loaded);
		view->main = (struct view_main){0};
	} else {
		const struct remote_span *last = &plan.spans[plan.last_guard];
		bool torn = !is_guard(view, view->guard_behind) ||
			    (view->main.bytes > 0 && !is_guard(view, view->guard_between));

		view->moved = torn ||
			      !is_guard(view, (const uint8_t *)last->into + (view->guard_addr - last->addr));
		r = torn ? VIEW_E_TORN : 0;
	}
	view->broken = r;
	return r;
}

int view_refresh(struct view *view, remote_addr main_addr, size_t main_bytes, size_t again_bytes)
{
	prediction_tick(&view->exact, PREDICTION_MAX_AGE);
	prediction_tick(&view->lasting, PREDICTION_MAX_AGE);
	prediction_tick(&view->brief, BRIEF_MAX_AGE);
	loaded_clear(&view->loaded);
	set_main(view, main_addr, main_bytes, again_bytes);
	return refresh(view);
}

int view_refresh_again(struct view *view, remote_addr main_addr, size_t main_bytes)
{
	loaded_clear(&view->loaded);
	set_main(view, main_addr, main_bytes, VIEW_MAX_REREAD_BYTES);
	return refresh(view);
}

void view_allow_lasting(struct view *view)
{
	view->allow_lasting = true;
	view->noted = &view->lasting;
	if (view->broken == VIEW_E_TORN)
		view->broken = 0;
}

void view_allow_brief(struct view *view)
{
	view_allow_lasting(view);
	view->noted = &view->brief;
}

bool view_moved(const struct view *view)
{
	return view->moved;
}

const void *view_guard(const struct view *view)
{
	return view->guard;
}

uint64_t view_cost_bytes(const struct view *view)
{
	return view->cost_bytes;
}

int view_error(const struct view *view)
{
	return view->error;
}

/* Is it known that not all of this can be read? */
static bool known_unreadable(const struct view *view, const struct remote_span *span)
{
	for (size_t i = 0; i < view->fault_count; i++)
		if (view->faults[i].addr >= span->addr &&
			view->faults[i].addr + view->faults[i].bytes <= span->addr + span->bytes)
			return true;
	return view->fault_count == VIEW_MAX_FAULTS; /* enough attempts for one instant */
}

/* Reads @spans, whose @into is set and which have room for one more, and the guard behind them. Leaves out
 * what can't be read: since the guard did not arrive then, what did is read again with the rest. */
static int read_follow_up(struct view *view, struct remote_span *spans, size_t count)
{
	uint8_t guard[VIEW_MAX_GUARD_BYTES] = {0};
	size_t failed = 0;
	int r;

	for (;;) {
		spans[count] = (struct remote_span){view->guard_addr, guard, view->guard_bytes};
		r = read_spans(view, spans, count + 1, &failed);
		if (r != REMOTE_E_FAULT)
			break;
		if (failed >= count)
			return r; /* the guard itself */
		if (view->fault_count == VIEW_MAX_FAULTS)
			return 0;
		view->faults[view->fault_count++] = spans[failed];
		memmove(&spans[failed], &spans[failed + 1], (count - failed - 1) * sizeof(*spans));
		if (--count == 0)
			return 0;
	}
	bool torn = r == 0 && !is_guard(view, guard);

	view->moved = view->moved || torn;
	if (torn && !view->allow_lasting)
		r = VIEW_E_TORN;
	for (size_t i = 0; i < count && r == 0; i++)
		r = loaded_add(&view->loaded, spans[i].addr, spans[i].bytes, spans[i].into, !torn);
	return r;
}

static int by_address(const void *a, const void *b)
{
	const struct remote_span *left = a, *right = b;

	return left->addr < right->addr ? -1 : left->addr > right->addr;
}

/* Sorts and joins what overlaps. Returns the new number. */
static size_t join_overlapping(struct remote_span *spans, size_t count)
{
	size_t kept = 0;

	qsort(spans, count, sizeof(*spans), by_address);
	for (size_t i = 0; i < count; i++) {
		struct remote_span *last = kept > 0 ? &spans[kept - 1] : NULL;
		remote_addr end = spans[i].addr + spans[i].bytes;

		if (last && spans[i].addr < last->addr + last->bytes &&
			(end > last->addr ? end : last->addr) - last->addr <= VIEW_MAX_SPAN_BYTES) {
			if (end > last->addr + last->bytes)
				last->bytes = end - last->addr;
		} else {
			spans[kept++] = spans[i];
		}
	}
	return kept;
}

static int fetch(struct view *view, struct remote_span *spans, size_t count)
{
	int r;

	count = join_overlapping(spans, count);
	if (++view->follow_ups > VIEW_MAX_FOLLOW_UPS)
		return VIEW_E_FULL;
	for (size_t i = 0; i < count; i++) {
		view->follow_up_bytes += spans[i].bytes;
		if (view->follow_up_bytes > VIEW_MAX_FOLLOW_UP_BYTES)
			return VIEW_E_FULL;
		spans[i].into = arena_take(&view->arena, spans[i].bytes);
		if (!spans[i].into)
			return -ENOMEM;
	}
	r = read_follow_up(view, spans, count);
	if (r != 0)
		view->broken = r;
	return r;
}

int view_prefetch(struct view *view, const struct remote_span *spans, size_t span_count)
{
	struct remote_span missing[REMOTE_MAX_SPANS];
	size_t missing_count = 0;
	int r = 0;

	for (size_t i = 0; i < span_count && r == 0; i++) {
		struct remote_span span = widened(spans[i].addr, spans[i].bytes);

		if (spans[i].bytes == 0 || spans[i].bytes > VIEW_MAX_SPAN_BYTES ||
			span.addr + span.bytes < span.addr || look_up(view, span.addr, span.bytes) ||
			known_unreadable(view, &span))
			continue;
		if (view->broken)
			return view->error = view->broken;
		missing[missing_count++] = span;
		if (missing_count == REMOTE_MAX_SPANS - 1) { /* the guard is one more */
			r = fetch(view, missing, missing_count);
			missing_count = 0;
		}
	}
	if (r == 0 && missing_count > 0)
		r = fetch(view, missing, missing_count);
	if (r != 0)
		view->error = r;
	return r;
}

const void *view_at_unpredicted(struct view *view, remote_addr addr, size_t bytes)
{
	struct remote_span wanted = {.addr = addr, .bytes = bytes};
	struct remote_span span = widened(addr, bytes);
	const void *found;
	int r;

	if (bytes == 0 || bytes > VIEW_MAX_SPAN_BYTES || span.addr + span.bytes < span.addr) {
		view->error = REMOTE_E_FAULT;
		return NULL;
	}
	found = look_up(view, addr, bytes);
	if (!found) {
		r = view_prefetch(view, &wanted, 1);
		if (r != 0)
			return NULL;
		found = look_up(view, addr, bytes);
		if (!found)
			view->error = REMOTE_E_FAULT;
	}
	return found;
}

/* The main span and the guard are read in any case. */
static void expect(struct view *view, struct prediction *prediction, remote_addr addr, size_t bytes)
{
	struct remote_span span = widened(addr, bytes);

	if (!in_main(view, addr, bytes) && !in_guard(view, addr, bytes))
		prediction_use(prediction, span.addr, span.bytes);
}

void view_expect_lasting(struct view *view, remote_addr addr, size_t bytes)
{
	expect(view, &view->lasting, addr, bytes);
}

const void *view_at(struct view *view, remote_addr addr, size_t bytes)
{
	const void *found = view_at_unpredicted(view, addr, bytes);

	if (found)
		expect(view, view->noted, addr, bytes);
	return found;
}
