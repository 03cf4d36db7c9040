/* SPDX-License-Identifier: MIT
 *
 * The chain of zend_execute_data (Zend/zend_compile.h), followed by prev_execute_data from the leaf outwards.
 *
 * Most frames lie on the VM stack page that the view's main span brought. Others are on older pages of the
 * same stack (a page is 256 KiB; the pages are linked by their headers), on another stack (a fiber's caller),
 * or by themselves on the heap (generators). The first two are fetched by the stretch and never frame by
 * frame; where a stretch starts is known from the page's header, or guessed: PHP's allocator maps chunks of 2
 * MiB, so down to such a boundary everything is readable.
 *
 * Nothing of this is trusted: addresses are checked before use, the chain may not run in a circle, and its
 * length is bounded. Names are another file's matter.
 */
#include "reader/stack.h"

#include "reader/delegation.h"
#include "reader/load.h"

/* Zend/zend_alloc.h, ZEND_MM_CHUNK_SIZE (all versions): what a VM stack page lies in. */
#define MM_CHUNK_BYTES (UINT64_C(2) << 20)
/* The first guess of how much of an unknown stack is in use below a frame, and the last:
 * ZEND_VM_STACK_PAGE_SIZE. */
#define WINDOW_MIN_BYTES (16u << 10)
#define WINDOW_MAX_BYTES (256u << 10)
/* Older pages whose headers are looked at in search of the one that a frame is on. */
#define MAX_PAGES_SKIPPED 8

#define HALF (STACK_MAX_FRAMES / 2)

struct walk {
	struct view *view;
	const struct layout *layout;
	struct raw_stack *stack;
	size_t seen; /* frames so far, kept or not */
	bool steady; /* a frame was the same in both copies */
	bool torn;   /* the copies don't fit each other */

	remote_addr page, top; /* the innermost page: where it starts, where its use ends */
	remote_addr older;     /* the next page outwards; 0: none, or not known */
	size_t page_bytes;     /* EG(vm_stack_page_size) */
	remote_addr unknown;   /* the last frame found on no known page */
	size_t window_bytes;
};

/* Keeps the innermost half in order, and the outermost half as a ring. */
static void keep_frame(struct walk *walk, const struct raw_frame *frame)
{
	size_t at = walk->seen++;

	if (at >= STACK_MAX_FRAMES)
		at = HALF + at % HALF;
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
	struct raw_frame *ring = stack->frames + HALF;
	size_t oldest = walk->seen % HALF;

	stack->count = walk->seen;
	if (walk->seen <= STACK_MAX_FRAMES)
		return;
	reverse(ring, oldest);
	reverse(ring + oldest, HALF - oldest);
	reverse(ring, HALF);
	stack->count = STACK_MAX_FRAMES;
	stack->omitted = walk->seen - STACK_MAX_FRAMES;
	stack->omitted_after = HALF - 1;
}

/* Fetches [@start, @end) as one stretch, and has it predicted as one. Failure shows when a frame is looked
 * at. */
static void fetch_stretch(struct walk *walk, remote_addr start, remote_addr end)
{
	if (end > start && end - start <= VIEW_MAX_SPAN_BYTES)
		view_at(walk->view, start, end - start);
}

/* Moves on to the page outwards of walk->older. */
static void next_older_page(struct walk *walk)
{
	const struct layout *layout = walk->layout;
	const uint8_t *header = view_at(walk->view, walk->older, layout->vm_stack_sizeof);

	walk->older = header ? load_u64(header + layout->vm_stack_prev) : 0;
	if (walk->older != 0 && !plausible_address(walk->older))
		walk->older = 0;
}

static bool on_page(const struct walk *walk, remote_addr page, remote_addr addr)
{
	return page != 0 && addr >= page && addr - page < walk->page_bytes;
}

/* Brings the stretch of stack that the frame at @addr is the innermost missing frame of. */
static void fetch_around(struct walk *walk, remote_addr addr)
{
	remote_addr end = addr + walk->layout->ex_sizeof;

	if (on_page(walk, walk->page, addr) && end <= walk->top) {
		fetch_stretch(walk, walk->page, walk->top);
		return;
	}

	for (unsigned i = 0; i < MAX_PAGES_SKIPPED && walk->older != 0; i++) {
		if (on_page(walk, walk->older, addr)) {
			fetch_stretch(walk, walk->older, end);
			next_older_page(walk);
			return;
		}
		next_older_page(walk);
	}

	/* On no known page. One frame alone may be a generator's; a second one below it is a stack. */
	if (addr < walk->unknown && walk->unknown - addr < WINDOW_MAX_BYTES) {
		remote_addr chunk = addr & ~(MM_CHUNK_BYTES - 1);
		remote_addr start = addr > walk->window_bytes ? addr - walk->window_bytes : 0;

		fetch_stretch(walk, start > chunk ? start : chunk, end);
		if (walk->window_bytes < WINDOW_MAX_BYTES)
			walk->window_bytes *= 2;
	}
	walk->unknown = addr;
}

static const uint8_t *frame_at(struct walk *walk, remote_addr addr)
{
	size_t bytes = walk->layout->ex_sizeof;

	if (!view_has(walk->view, addr, bytes))
		fetch_around(walk, addr);
	return view_at(walk->view, addr, bytes);
}

static void decode(
	const struct layout *layout, remote_addr addr, const uint8_t *bytes, struct raw_frame *ret_frame)
{
	uint32_t call_info = load_u32(bytes + layout->ex_type_info);

	*ret_frame = (struct raw_frame){
		.execute_data = addr,
		.func = load_u64(bytes + layout->ex_func),
		.opline = load_u64(bytes + layout->ex_opline),
		.run_time_cache = load_u64(bytes + layout->ex_run_time_cache),
		.called_object_or_class = load_u64(bytes + layout->ex_This),
		.call_info = call_info,
		.generator = (call_info & layout->ZEND_CALL_GENERATOR) != 0,
	};
}

/* Was this frame another one when the stack was copied for the second time? A caller's opline stands still,
 * too. */
static bool changed(const struct walk *walk, remote_addr addr, bool caller)
{
	const struct layout *layout = walk->layout;

	return view_main_changed(walk->view, addr + layout->ex_func,
		       layout->ex_prev_execute_data + sizeof(uint64_t) - layout->ex_func) ||
	       (caller && view_main_changed(walk->view, addr + layout->ex_opline, sizeof(uint64_t)));
}

/* Between its two copies a stack may change only if the target moved on, and then from the inner end. Where
 * an outer frame was replaced and one inside of it was not, the inner one may have been new already in the
 * first copy, and the outer one old: such a stack never was. */
static void compare_copies(struct walk *walk, remote_addr addr, bool caller)
{
	if (!changed(walk, addr, caller))
		walk->steady = true;
	else if (walk->steady || view_stood_still(walk->view))
		walk->torn = true;
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
		if (delegating.func != 0)
			keep_frame(walk, &delegating);
	}
	return 0;
}

static int walk_chain(struct walk *walk, remote_addr addr)
{
	const struct layout *layout = walk->layout;
	remote_addr hare_mark = 0, inner = 0;
	size_t until_mark = 1, steps = 0;

	while (addr != 0) {
		const uint8_t *bytes;
		struct raw_frame frame;

		/* Brent: a mark that the chain may not come back to, set anew at distances that double. */
		if (addr == hare_mark || ++steps > STACK_MAX_WALK || !plausible_address(addr))
			return STACK_E_CORRUPT;
		if (steps == until_mark) {
			hare_mark = addr;
			until_mark *= 2;
		}

		bytes = frame_at(walk, addr);
		if (!bytes)
			return view_error(walk->view);
		decode(layout, addr, bytes, &frame);
		remote_addr prev = load_u64(bytes + layout->ex_prev_execute_data);

		compare_copies(walk, addr, inner != 0);
		if (frame.func != 0) {
			if (!plausible_address(frame.func))
				return STACK_E_CORRUPT;
			keep_frame(walk, &frame);
		} else {
			int r = step_over(walk, &frame, inner);
			if (r != 0)
				return r;
		}
		inner = addr;
		addr = prev;
	}
	walk->stack->whole = true;
	return walk->torn ? VIEW_E_TORN : 0;
}

int stack_walk(struct view *view, const struct layout *layout, struct raw_stack *ret_stack)
{
	const uint8_t *guard = view_guard(view);
	struct walk walk = {
		.view = view, .layout = layout, .stack = ret_stack, .window_bytes = WINDOW_MIN_BYTES};
	remote_addr current;
	int r;

	/* The guard starts at EG(vm_stack_top); the words lie side by side in every version. */
	walk.top = load_u64(guard);
	walk.page = load_u64(guard + layout->eg_vm_stack - layout->eg_vm_stack_top);
	walk.page_bytes = load_u64(guard + layout->eg_vm_stack_page_size - layout->eg_vm_stack_top);
	current = load_u64(guard + layout->eg_current_execute_data - layout->eg_vm_stack_top);

	ret_stack->count = ret_stack->omitted = ret_stack->omitted_after = 0;
	ret_stack->page = ret_stack->used_bytes = 0;
	ret_stack->whole = false;
	if (current == 0)
		return STACK_E_IDLE;

	if (walk.page_bytes < WINDOW_MAX_BYTES)
		walk.page_bytes = WINDOW_MAX_BYTES; /* a fiber's first page is small, its next may not be */
	if (walk.page_bytes > VIEW_MAX_SPAN_BYTES)
		walk.page_bytes = VIEW_MAX_SPAN_BYTES;
	if (!plausible_address(walk.page) || walk.top < walk.page)
		walk.page = 0;
	if (walk.page != 0) {
		const uint8_t *header;

		ret_stack->page = walk.page;
		ret_stack->used_bytes = walk.top - walk.page;
		if (walk.top - walk.page <= walk.page_bytes &&
			!view_has(view, walk.page, walk.top - walk.page))
			fetch_stretch(&walk, walk.page, walk.top);
		header = view_at(view, walk.page, layout->vm_stack_sizeof);
		if (header)
			walk.older = load_u64(header + layout->vm_stack_prev);
		if (!plausible_address(walk.older))
			walk.older = 0;
	}

	r = walk_chain(&walk, current);
	finish(&walk);
	if (r == VIEW_E_FULL && ret_stack->count > 0) {
		/* Deeper than an instant may hold: the outer end is missing, which is a truncated stack. */
		if (ret_stack->omitted++ == 0)
			ret_stack->omitted_after = ret_stack->count - 1;
		r = 0;
	}
	return r;
}
