/* SPDX-License-Identifier: MIT
 *
 * The chain of zend_execute_data (Zend/zend_compile.h), followed by prev_execute_data from the leaf outwards.
 *
 * Most frames lie on the VM stack page that the view's main span brought. Others are on older pages of the
 * same stack (a page is 256 KiB, in fibers 16; the pages are linked by their headers), on another stack (a
 * fiber's caller), or by themselves on the heap (generators). The first two are fetched by the stretch and
 * never frame by frame; where a stretch starts is known from the page's header, or guessed: PHP's allocator
 * maps chunks of 2 MiB, so down to such a boundary everything is readable.
 *
 * Past some thousand frames the walk leaves out the middle: it goes on at the outermost page
 * (reader/stack_pages.h). Where that can't be found the outer end is missing, and the stack says so.
 *
 * Nothing of this is trusted: addresses are checked before use, the chain may not run in a circle, and its
 * length and what is read for it are bounded. Names are another file's matter.
 */
#include "reader/stack.h"

#include "reader/copies.h"
#include "reader/delegation.h"
#include "reader/load.h"
#include "reader/outer_frames.h"

/* Zend/zend_alloc.h, ZEND_MM_CHUNK_SIZE (all versions): what a VM stack page lies in. */
#define MM_CHUNK_BYTES (UINT64_C(2) << 20)
/* The first guess of how much of an unknown stack is in use below a frame, and the last:
 * ZEND_VM_STACK_PAGE_SIZE. */
#define WINDOW_MIN_BYTES (16u << 10)
#define WINDOW_MAX_BYTES (256u << 10)
/* Older pages that may have no called frame on them: what lies there is arguments of a pending call. */
#define MAX_PAGES_SKIPPED 2

#define HALF (STACK_MAX_FRAMES / 2)

enum { WALK_TOO_DEEP = 63 }; /* what may be walked or read is used up */

struct walk {
	struct view *view;
	const struct layout *layout;
	struct stack_pages *known_pages;
	struct raw_stack *stack;
	size_t seen;        /* frames so far, kept or not, but not those that were left out with the middle */
	size_t inner;       /* how many of them are kept in order; the rest is a ring */
	remote_addr inside; /* the frame walked last */
	remote_addr stopped_at;           /* the one that was too many */
	const struct outer_frames *outer; /* NULL: none */
	size_t joinable;                  /* of the verified ones, those that may still be met */

	struct copies copies;

	remote_addr page, top; /* the page the walk has come to: where it starts, where its use ends */
	const uint8_t *data;   /* what was read of it, from its start on */
	size_t data_bytes;
	remote_addr older; /* the next page outwards; 0: none, or not known */
	size_t page_bytes; /* EG(vm_stack_page_size) */
	unsigned pages;    /* that the walk has come to, and what is in use of them */
	size_t bytes;
	bool to_the_end; /* what remains is no more than that */
	unsigned fetches;
	size_t fetched_bytes;
	remote_addr unknown; /* the last frame found on no known page */
	size_t window_bytes;
};

/* Keeps the innermost half in order, and the outermost half as a ring. */
static void keep_frame(struct walk *walk, const struct raw_frame *frame)
{
	size_t at = walk->seen++;

	if (at >= walk->inner)
		at = walk->inner + (at - walk->inner) % HALF;
	walk->stack->frames[at] = *frame;
}

static void reverse(struct raw_frame *frames, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct raw_frame swapped = frames[i];

		frames[i] = frames[count - 1 - i];
		frames[count - 1 - i] = swapped;
	}
}

/* Brings the ring into order and says what was left out. */
static void finish(struct walk *walk)
{
	struct raw_stack *stack = walk->stack;
	struct raw_frame *ring = stack->frames + walk->inner;
	size_t outer = walk->seen > walk->inner ? walk->seen - walk->inner : 0;

	if (outer > HALF) {
		size_t oldest = outer % HALF;

		reverse(ring, oldest);
		reverse(ring + oldest, HALF - oldest);
		reverse(ring, HALF);
		stack->omitted += outer - HALF;
	}
	stack->count = walk->seen - (outer > HALF ? outer - HALF : 0);
	if (stack->omitted > 0)
		stack->omitted_after = walk->inner - 1;
}

/* Forgets the middle as far as it was walked: from here on the outer end is kept. */
static void leave_out_middle(struct walk *walk)
{
	size_t kept = walk->seen < walk->inner ? walk->seen : walk->inner;

	walk->stack->omitted += walk->seen - kept;
	if (walk->stack->omitted == 0)
		walk->stack->omitted = 1;
	walk->stack->omitted_at_least = true;
	walk->inner = walk->seen = kept;
}

/* May the walk read this much more? */
static bool may_fetch(struct walk *walk, size_t bytes)
{
	walk->fetches++;
	walk->fetched_bytes += bytes;
	return walk->fetches <= STACK_MAX_FETCHES && walk->fetched_bytes <= STACK_MAX_FETCHED_BYTES;
}

/* Fetches [@start, @end) as one stretch, and has it predicted as one. Failure shows when a frame is looked
 * at. */
static int fetch_stretch(struct walk *walk, remote_addr start, remote_addr end)
{
	if (end <= start || end - start > VIEW_MAX_SPAN_BYTES)
		return 0;
	if (!may_fetch(walk, end - start))
		return WALK_TOO_DEEP;
	view_at(walk->view, start, end - start);
	return 0;
}

static bool on_page(const struct walk *walk, remote_addr addr)
{
	return addr >= walk->page && addr < walk->top;
}

/* Has the walk gone as far as it may go page by page? A stack that was too deep a moment ago is so still: all
 * that is wanted of it is its two ends. */
static bool is_far_enough(const struct walk *walk)
{
	if (walk->to_the_end)
		return false;
	return walk->pages >= STACK_MAX_WALKED_PAGES || walk->bytes >= STACK_MAX_WALKED_BYTES ||
	       (walk->known_pages->deep && walk->seen >= walk->inner);
}

/* Comes to the older page that the frame at @addr is on, if it is on one. */
static int enter_page(struct walk *walk, remote_addr addr)
{
	size_t bytes = walk->layout->ex_sizeof;
	remote_addr older = walk->older;

	for (unsigned i = 0; i <= MAX_PAGES_SKIPPED && older != 0; i++) {
		struct stack_page page;

		if (addr >= older && addr - older < walk->page_bytes) {
			int r = 0;

			if (is_far_enough(walk))
				return WALK_TOO_DEEP;
			if (!view_has(walk->view, addr, bytes))
				r = fetch_stretch(walk, older, addr + bytes);
			if (r != 0)
				return r;
		}
		if (stack_page_read(walk->view, walk->layout, older, &page) != 0)
			return 0;
		if (addr >= page.start && addr < page.top) {
			walk->page = page.start;
			walk->top = page.top;
			walk->data_bytes = 0;
			walk->older = page.prev;
			walk->pages++;
			walk->bytes += page.top - page.start;
			return 0;
		}
		older = page.prev;
	}
	return 0;
}

/* Brings the frame at @addr, with the stretch of stack that it is the innermost missing frame of. */
static int fetch_around(struct walk *walk, remote_addr addr)
{
	remote_addr end = addr + walk->layout->ex_sizeof;
	int r = 0;

	if (on_page(walk, addr))
		return fetch_stretch(walk, walk->page, end);
	/* On no known page. One frame alone may be a generator's; a second one below it is a stack. */
	if (addr < walk->unknown && walk->unknown - addr < WINDOW_MAX_BYTES) {
		remote_addr chunk = addr & ~(MM_CHUNK_BYTES - 1);
		remote_addr start = addr > walk->window_bytes ? addr - walk->window_bytes : 0;

		r = fetch_stretch(walk, start > chunk ? start : chunk, end);
		if (walk->window_bytes < WINDOW_MAX_BYTES)
			walk->window_bytes *= 2;
	}
	walk->unknown = addr;
	return r;
}

static int frame_at(struct walk *walk, remote_addr addr, const uint8_t **ret_bytes)
{
	size_t bytes = walk->layout->ex_sizeof;
	int r;

	if (addr >= walk->page && addr - walk->page < walk->data_bytes) {
		*ret_bytes = walk->data + (addr - walk->page);
		return 0;
	}
	r = on_page(walk, addr) ? 0 : enter_page(walk, addr);
	if (r == 0 && !view_has(walk->view, addr, bytes))
		r = fetch_around(walk, addr);
	if (r == 0 && !view_has(walk->view, addr, bytes) && !may_fetch(walk, bytes))
		r = WALK_TOO_DEEP;
	if (r != 0)
		return r;
	*ret_bytes = view_at(walk->view, addr, bytes);
	if (!*ret_bytes)
		return view_error(walk->view);
	/* The frames outwards of it on its page came along: most of the walk is done on them. */
	if (on_page(walk, addr) && view_has(walk->view, walk->page, addr + bytes - walk->page)) {
		walk->data = view_at(walk->view, walk->page, addr + bytes - walk->page);
		walk->data_bytes = addr + 1 - walk->page;
	}
	return 0;
}

static void decode(
	const struct layout *layout, remote_addr addr, const uint8_t *bytes, struct raw_frame *ret_frame)
{
	uint32_t call_info = load_u32(bytes + layout->ex_type_info);

	*ret_frame = (struct raw_frame){
		.execute_data = addr,
		.prev = load_u64(bytes + layout->ex_prev_execute_data),
		.func = load_u64(bytes + layout->ex_func),
		.opline = load_u64(bytes + layout->ex_opline),
		.run_time_cache = load_u64(bytes + layout->ex_run_time_cache),
		.called_object_or_class = load_u64(bytes + layout->ex_This),
		.call_info = call_info,
		.generator = (call_info & layout->ZEND_CALL_GENERATOR) != 0,
	};
}

/* Is the frame at @addr one of those that are known and verified? Then so is all outside of it. On their page
 * the chain goes to lower addresses only; should it not, none of them is met, and all are walked. */
static bool join(struct walk *walk, remote_addr addr)
{
	const struct outer_frames *outer = walk->outer;

	while (walk->joinable > 0 && outer_frame_addr(outer, walk->joinable - 1) > addr)
		walk->joinable--;
	/* The innermost frame is never joined: it has called nobody, they all have. */
	if (walk->seen == 0 || walk->joinable == 0 || outer_frame_addr(outer, walk->joinable - 1) != addr ||
		walk->seen + walk->joinable > STACK_MAX_FRAMES)
		return false;
	for (size_t i = walk->joinable; i-- > 0 && copies_go_on(&walk->copies);) {
		copies_compare(&walk->copies, outer_frame_addr(outer, i), true);
		if (walk->copies.last_changed)
			walk->stack->doubtful = walk->seen + walk->joinable - i;
	}
	walk->stack->count = walk->seen;
	outer_frames_join(outer, walk->joinable, walk->stack);
	walk->stack->whole = true;
	return true;
}

/* A frame without a function: a stand-in for delegating generators, whose frames take its place, or a dummy
 * that zend_call_function() pushed (Zend/zend_execute_API.c, up to 8.1), which stands for nothing. */
static int step_over(struct walk *walk, const struct raw_frame *frame, remote_addr inner)
{
	remote_addr frames[DELEGATION_MAX_LEVELS];
	size_t count = 0;
	int r;

	if (!delegation_is_placeholder(walk->layout, frame))
		return 0;
	r = delegation_frames(walk->view, walk->layout, frame->called_object_or_class, inner, frames, &count);
	if (r != 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *bytes = view_at(walk->view, frames[i], walk->layout->ex_sizeof);
		struct raw_frame delegating;

		if (!bytes)
			return view_error(walk->view);
		decode(walk->layout, frames[i], bytes, &delegating);
		if (delegating.func == 0)
			continue;
		keep_frame(walk, &delegating);
		walk->stack->doubtful = walk->seen;
	}
	return 0;
}

/* Keeps the frame at @addr, or those it stands for. */
static int take_frame(struct walk *walk, remote_addr addr, const uint8_t *bytes)
{
	struct raw_frame frame;

	decode(walk->layout, addr, bytes, &frame);
	copies_compare(&walk->copies, addr, walk->inside != 0);
	/* On another stack than the last sample's, or beyond what that had in use. */
	if (walk->page == walk->stack->page && on_page(walk, addr) && !copies_has(&walk->copies, addr))
		walk->copies.too_short = true;
	if (frame.func == 0)
		return step_over(walk, &frame, walk->inside);
	if (!plausible_address(frame.func))
		return STACK_E_CORRUPT;
	keep_frame(walk, &frame);
	if (walk->copies.last_changed || frame.generator)
		walk->stack->doubtful = walk->seen;
	return 0;
}

/* What to say of a chain that was walked to its end. */
static int verdict(const struct walk *walk)
{
	if (walk->copies.too_short)
		walk->stack->doubtful = walk->seen + walk->stack->joined;
	return walk->copies.torn ? VIEW_E_TORN : walk->copies.too_short ? STACK_E_UNVOUCHED : 0;
}

static int walk_chain(struct walk *walk, remote_addr addr)
{
	remote_addr hare_mark = 0;
	size_t until_mark = 1;

	for (size_t steps = 1; addr != 0; steps++) {
		const uint8_t *bytes = NULL;
		int r;

		/* Brent: a mark that the chain may not come back to, set anew at distances that double. */
		if (addr == hare_mark || !plausible_address(addr))
			return STACK_E_CORRUPT;
		if (steps == until_mark) {
			hare_mark = addr;
			until_mark *= 2;
		}
		if (walk->joinable > 0 && join(walk, addr))
			return verdict(walk);

		r = steps > STACK_MAX_WALK ? WALK_TOO_DEEP : frame_at(walk, addr, &bytes);
		if (r == 0)
			r = take_frame(walk, addr, bytes);
		if (r != 0) {
			walk->stopped_at = addr;
			return r == VIEW_E_FULL ? WALK_TOO_DEEP : r;
		}
		walk->inside = addr;
		addr = load_u64(bytes + walk->layout->ex_prev_execute_data);
	}
	walk->stack->whole = true;
	return verdict(walk);
}

/* Goes on at the outer end of a stack that is too deep. */
static int walk_outer_end(struct walk *walk)
{
	struct stack_outer_end end = {0};
	int r = STACK_PAGES_E_NOT_FOUND;

	if (walk->older != 0)
		r = stack_pages_find_outer_end(
			walk->known_pages, walk->view, walk->layout, walk->older, &end);
	if (r == STACK_PAGES_E_NEAR) {
		walk->to_the_end = true;
		r = walk_chain(walk, walk->stopped_at);
	} else if (r == 0) {
		leave_out_middle(walk);
		walk->page = end.page.start;
		walk->top = end.page.top;
		walk->data_bytes = 0;
		walk->older = 0;
		r = walk_chain(walk, end.entry);
	}
	if (r == WALK_TOO_DEEP || r == STACK_PAGES_E_NOT_FOUND || r == VIEW_E_FULL) {
		leave_out_middle(walk);
		r = 0;
	}
	return r;
}

/* Comes to the innermost page. */
static void enter_first_page(struct walk *walk, const uint8_t *guard)
{
	const struct layout *layout = walk->layout;
	remote_addr end = load_u64(guard + layout->eg_vm_stack_end - layout->eg_vm_stack_top);
	const uint8_t *header;

	/* The guard starts at EG(vm_stack_top); the words lie side by side in every version. */
	walk->top = load_u64(guard);
	walk->page = load_u64(guard + layout->eg_vm_stack - layout->eg_vm_stack_top);
	walk->page_bytes = load_u64(guard + layout->eg_vm_stack_page_size - layout->eg_vm_stack_top);
	if (walk->page_bytes < WINDOW_MAX_BYTES)
		walk->page_bytes = WINDOW_MAX_BYTES; /* a fiber's first page is small, its next may not be */
	if (walk->page_bytes > VIEW_MAX_SPAN_BYTES)
		walk->page_bytes = VIEW_MAX_SPAN_BYTES;
	walk->stack->switching = walk->page != 0 && (walk->top < walk->page || walk->top > end);
	walk->copies.torn |= walk->stack->switching;
	if (!plausible_address(walk->page) || walk->top < walk->page || walk->top > end) {
		walk->page = walk->top = 0;
		return;
	}
	walk->stack->page = walk->page;
	walk->stack->page_end = end;
	walk->stack->used_bytes = walk->top - walk->page;
	if (walk->top - walk->page <= walk->page_bytes &&
		!view_has(walk->view, walk->page, walk->top - walk->page))
		(void)fetch_stretch(walk, walk->page, walk->top);
	header = view_at(walk->view, walk->page, layout->vm_stack_sizeof);
	if (header)
		walk->older = load_u64(header + layout->vm_stack_prev);
	if (!plausible_address(walk->older))
		walk->older = 0;
}

int stack_walk(struct view *view, const struct layout *layout, struct stack_pages *pages,
	const struct outer_frames *outer, struct raw_stack *ret_stack)
{
	const uint8_t *guard = view_guard(view);
	struct walk walk = {
		.view = view,
		.layout = layout,
		.known_pages = pages,
		.outer = outer,
		.joinable = outer ? outer->verified : 0,
		.copies = {.main = view_main(view), .layout = layout},
		.stack = ret_stack,
		.inner = HALF,
		.window_bytes = WINDOW_MIN_BYTES,
	};
	remote_addr current = load_u64(guard + layout->eg_current_execute_data - layout->eg_vm_stack_top);
	int r;

	ret_stack->count = ret_stack->omitted = ret_stack->omitted_after = 0;
	ret_stack->omitted_at_least = false;
	ret_stack->page = ret_stack->used_bytes = ret_stack->steady_bytes = 0;
	ret_stack->joined = ret_stack->look_count = ret_stack->doubtful = 0;
	ret_stack->whole = ret_stack->switching = false;
	if (current == 0)
		return STACK_E_IDLE;

	enter_first_page(&walk, guard);
	r = walk_chain(&walk, current);
	if (r == WALK_TOO_DEEP)
		r = walk.seen > 0 ? walk_outer_end(&walk) : STACK_E_CORRUPT;
	finish(&walk);
	if (view_main(view)->addr == ret_stack->page)
		ret_stack->steady_bytes = walk.copies.steady_bytes;
	pages->deep = ret_stack->omitted_at_least;
	return r;
}
