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
#include "reader/prediction.h"

/* The list of what one instant has read grows in steps of this. */
#define LOADED_STEP 64
/* Guards in front and behind, and the main span twice. */
#define FIXED_SPANS 4

/* One piece of memory of this instant. */
struct loaded {
	remote_addr addr, end;
	remote_addr max_end; /* of this and all before it: where a search backwards may stop */
	const uint8_t *bytes;
};

struct view {
	view_read_fn read;
	void *context;

	remote_addr guard_addr;
	size_t guard_bytes;
	uint8_t guard[VIEW_MAX_GUARD_BYTES] __attribute__((aligned(8)));
	uint8_t guard_again[VIEW_MAX_GUARD_BYTES];
	bool moved; /* the guard changed within this instant */
	bool accept_torn;
	int broken; /* why nothing more is read in this instant; 0 */
	int error;

	remote_addr main_addr;
	size_t main_bytes;
	const uint8_t *main;
	remote_addr again_addr; /* the part of the main span that was read twice */
	size_t again_bytes;
	const uint8_t *again;

	struct loaded *loaded; /* by address; may overlap */
	size_t loaded_count, loaded_capacity;
	struct remote_span faults[VIEW_MAX_FAULTS]; /* known unreadable in this instant */
	size_t fault_count;

	struct arena arena;
	size_t follow_up_bytes;

	struct prediction prediction;
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
	*ret_view = view;
	return 0;
}

void view_free(struct view *view)
{
	if (!view)
		return;
	arena_deinit(&view->arena);
	free(view->loaded);
	free(view);
}

static struct remote_span widened(remote_addr addr, size_t bytes)
{
	remote_addr start = addr & ~(remote_addr)7;

	return (struct remote_span){.addr = start, .bytes = (addr + bytes - start + 7) & ~(size_t)7};
}

static bool torn(struct view *view)
{
	view->moved = view->moved || memcmp(view->guard, view->guard_again, view->guard_bytes) != 0;
	return view->moved && !view->accept_torn;
}

static bool in_main(const struct view *view, remote_addr addr, size_t bytes)
{
	return addr >= view->main_addr && bytes <= view->main_bytes &&
	       addr - view->main_addr <= view->main_bytes - bytes;
}

/* The bytes at @addr among those of this instant, or NULL. */
static const void *look_up(const struct view *view, remote_addr addr, size_t bytes)
{
	size_t low = 0, high = view->loaded_count;

	if (in_main(view, addr, bytes))
		return view->main + (addr - view->main_addr);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (view->loaded[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	while (low-- > 0) {
		const struct loaded *span = &view->loaded[low];

		if (span->max_end < addr + bytes)
			return NULL;
		if (span->end >= addr + bytes)
			return span->bytes + (addr - span->addr);
	}
	return NULL;
}

bool view_main_changed(const struct view *view, remote_addr addr, size_t bytes)
{
	if (addr < view->again_addr || bytes > view->again_bytes ||
		addr - view->again_addr > view->again_bytes - bytes)
		return false;
	return memcmp(view->main + (addr - view->main_addr), view->again + (addr - view->again_addr),
		       bytes) != 0;
}

bool view_has(const struct view *view, remote_addr addr, size_t bytes)
{
	return look_up(view, addr, bytes) != NULL;
}

static int loaded_add(struct view *view, remote_addr addr, size_t bytes, const void *data)
{
	size_t at = view->loaded_count;

	if (view->loaded_count == view->loaded_capacity) {
		size_t capacity = view->loaded_capacity + LOADED_STEP;
		struct loaded *grown = realloc(view->loaded, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		view->loaded = grown;
		view->loaded_capacity = capacity;
	}
	while (at > 0 && view->loaded[at - 1].addr > addr)
		at--;
	memmove(&view->loaded[at + 1], &view->loaded[at],
		(view->loaded_count - at) * sizeof(view->loaded[0]));
	view->loaded[at] = (struct loaded){.addr = addr, .end = addr + bytes, .bytes = data};
	view->loaded_count++;
	for (; at < view->loaded_count; at++) {
		struct loaded *span = &view->loaded[at];

		span->max_end = span->end;
		if (at > 0 && span[-1].max_end > span->max_end)
			span->max_end = span[-1].max_end;
	}
	return 0;
}

/* Guard, main span, predicted spans, main span and guard as vectors. Returns their number. */
static size_t refresh_spans(struct view *view, struct remote_span *spans)
{
	size_t count = 0;

	spans[count++] = (struct remote_span){view->guard_addr, view->guard, view->guard_bytes};
	if (view->main_bytes > 0)
		spans[count++] = (struct remote_span){view->main_addr, NULL, view->main_bytes};
	for (size_t i = 0; i < view->prediction.count; i++) {
		const struct prediction_span *predicted = &view->prediction.spans[i];

		if (!in_main(view, predicted->addr, predicted->bytes))
			spans[count++] = (struct remote_span){predicted->addr, NULL, predicted->bytes};
	}
	if (view->main_bytes > 0)
		spans[count++] = (struct remote_span){view->again_addr, NULL, view->again_bytes};
	spans[count++] = (struct remote_span){view->guard_addr, view->guard_again, view->guard_bytes};
	return count;
}

static int read_instant(struct view *view, size_t *ret_failed, remote_addr *ret_failed_addr)
{
	struct remote_span spans[PREDICTION_MAX_SPANS + FIXED_SPANS];
	size_t count, needed = 0, failed = 0;
	uint8_t *into;
	int r;

	view->loaded_count = 0;
	count = refresh_spans(view, spans);
	for (size_t i = 1; i + 1 < count; i++)
		needed += spans[i].bytes;
	r = arena_reset(&view->arena, needed);
	if (r < 0)
		return r;
	into = arena_take(&view->arena, needed);
	for (size_t i = 1; i + 1 < count; i++) {
		spans[i].into = into;
		into += spans[i].bytes;
	}

	r = view->read(view->context, spans, count, &failed);
	if (r == REMOTE_E_FAULT) {
		*ret_failed = failed;
		*ret_failed_addr = spans[failed].addr;
	}
	if (r != 0)
		return r;

	count--; /* the guard */
	if (view->main_bytes > 0) {
		view->main = spans[1].into;
		view->again = spans[--count].into;
	}
	for (size_t i = view->main_bytes > 0 ? 2 : 1; i < count; i++) {
		r = loaded_add(view, spans[i].addr, spans[i].bytes, spans[i].into);
		if (r < 0)
			return r;
	}
	return 0;
}

int view_refresh(struct view *view, remote_addr main_addr, size_t main_bytes)
{
	struct remote_span main = widened(main_addr, main_bytes);
	int r = REMOTE_E_FAULT;

	prediction_tick(&view->prediction);
	view->main_addr = main.addr;
	view->main_bytes = main_bytes > 0 && main.bytes <= VIEW_MAX_SPAN_BYTES ? main.bytes : 0;
	view->fault_count = 0;
	view->follow_up_bytes = 0;
	view->accept_torn = view->moved = false;
	view->broken = 0;
	view->again_bytes =
		view->main_bytes < VIEW_MAX_REREAD_BYTES ? view->main_bytes : VIEW_MAX_REREAD_BYTES;
	view->again_addr = view->main_addr + view->main_bytes - view->again_bytes;

	for (unsigned attempt = 0; r == REMOTE_E_FAULT && attempt <= VIEW_MAX_FAULTS; attempt++) {
		size_t failed = 0;
		remote_addr failed_addr = 0;

		if (attempt == VIEW_MAX_FAULTS) /* much has been unmapped: start afresh */
			view->prediction.count = view->prediction.total_bytes = view->main_bytes =
				view->again_bytes = 0;
		r = read_instant(view, &failed, &failed_addr);
		if (r != REMOTE_E_FAULT)
			break;
		if (failed == 0)
			break;
		if ((failed == 1 && view->main_bytes > 0) || !prediction_drop(&view->prediction, failed_addr))
			view->main_bytes = view->again_bytes = 0;
	}
	if (r == 0 && torn(view))
		r = VIEW_E_TORN;
	if (r != 0 && r != VIEW_E_TORN)
		view->loaded_count = view->main_bytes = view->again_bytes = 0;
	view->broken = r;
	return r;
}

void view_accept_torn(struct view *view)
{
	view->accept_torn = true;
	if (view->broken == VIEW_E_TORN)
		view->broken = 0;
}

bool view_moved(const struct view *view)
{
	return view->moved;
}

const void *view_guard(const struct view *view)
{
	return view->guard;
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
	size_t failed = 0;
	int r;

	for (;;) {
		spans[count] = (struct remote_span){view->guard_addr, view->guard_again, view->guard_bytes};
		r = view->read(view->context, spans, count + 1, &failed);
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
	if (r == 0 && torn(view))
		r = VIEW_E_TORN;
	for (size_t i = 0; i < count && r == 0; i++)
		r = loaded_add(view, spans[i].addr, spans[i].bytes, spans[i].into);
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

const void *view_at(struct view *view, remote_addr addr, size_t bytes)
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
		if (!found) {
			view->error = REMOTE_E_FAULT;
			return NULL;
		}
	}
	if (!in_main(view, addr, bytes))
		prediction_use(&view->prediction, span.addr, span.bytes);
	return found;
}

static int memory_of_view(void *context, remote_addr addr, void *into, size_t bytes)
{
	struct view *view = context;
	const void *found = view_at(view, addr, bytes);

	if (!found)
		return view->error;
	memcpy(into, found, bytes);
	return 0;
}

struct memory view_memory(struct view *view)
{
	return (struct memory){.read = memory_of_view, .context = view};
}
