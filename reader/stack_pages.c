/* SPDX-License-Identifier: MIT
 *
 * A stack of a million frames is 100 MiB, and what a profile shows of it are its two ends. The chain of
 * frames leads from the inner end outwards only, but the pages they lie on are a list of their own, whose
 * headers are 24 bytes in each 256 KiB (struct _zend_vm_stack, zend_vm_stack_extend() in Zend/zend_execute.h
 * and zend_execute.c). Its last page holds the outermost frames. What has to be known is one frame on it that
 * is part of the chain, and not what is left of an earlier call, or a call whose arguments are still being
 * evaluated.
 *
 * The first thing on any page but the outermost is the frame that did not fit on the page before, and a page
 * lives exactly as long as that frame. If it was called, the frame it leads to is the one that called it. If
 * it is still pending, it leads to other pending calls and nowhere near the stack's first frame; then its
 * caller is the frame whose `call` it is, or leads to it. That frame is looked for on the outermost page,
 * from the inner end, among everything that lies there. What an earlier call left in temporaries not yet
 * written may look like it: then some frames beside the gap are those of that call. For this a recursion must
 * have come to the same page at the same address before, by another way.
 */
#include "reader/stack_pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/load.h"
#include "reader/remote.h"

/* Headers fetched with one call, and one vector for the guard. */
#define BATCH (REMOTE_MAX_SPANS - 1)
/* ZEND_VM_STACK_HEADER_SLOTS (Zend/zend_execute.c): the header, rounded up to zvals of 16 bytes. Frames are
 * multiples of that. */
#define SLOT_BYTES 16U
/* How much of the page next to the outermost is looked at for pending calls. */
#define PENDING_WINDOW_BYTES 4096U
/* Calls pending in one frame, as in a(b(c(…))). */
#define MAX_PENDING 32
/* Frames of the outermost page's chain that do not lie on it: generators. */
#define MAX_FRAMES_ELSEWHERE 64

/* Bytes of a page that were read, from its start on. */
struct piece {
	remote_addr start;
	size_t bytes;
	const uint8_t *data;
};

struct search {
	struct view *view;
	const struct layout *layout;
	struct piece outermost; /* all that is in use of it */
	struct piece inner;     /* the beginning of the page next to it */
	remote_addr home;       /* the first frame of the outermost page */
	remote_addr first_inner;
};

static remote_addr first_frame(const struct layout *layout, remote_addr page)
{
	return page + ((layout->vm_stack_sizeof + SLOT_BYTES - 1) & ~(remote_addr)(SLOT_BYTES - 1));
}

static int decode_page(
	const struct layout *layout, remote_addr addr, const uint8_t *header, struct stack_page *ret_page)
{
	remote_addr top = load_u64(header + layout->vm_stack_top);

	if (top < first_frame(layout, addr) || top - addr > VIEW_MAX_SPAN_BYTES)
		return REMOTE_E_FAULT;
	*ret_page = (struct stack_page){
		.start = addr, .top = top, .prev = load_u64(header + layout->vm_stack_prev)};
	return 0;
}

int stack_page_read(
	struct view *view, const struct layout *layout, remote_addr addr, struct stack_page *ret_page)
{
	const uint8_t *header = plausible_address(addr) ? view_at(view, addr, layout->vm_stack_sizeof) : NULL;

	if (!header)
		return plausible_address(addr) ? view_error(view) : REMOTE_E_FAULT;
	return decode_page(layout, addr, header, ret_page);
}

static const uint8_t *in_piece(const struct piece *piece, remote_addr addr, size_t bytes)
{
	if (addr < piece->start || bytes > piece->bytes || addr - piece->start > piece->bytes - bytes)
		return NULL;
	return piece->data + (addr - piece->start);
}

/* Does the chain from @addr come to the outermost page's first frame? On the page it only goes outwards. */
static bool leads_home(const struct search *search, remote_addr addr)
{
	const struct layout *layout = search->layout;
	remote_addr last = search->outermost.start + search->outermost.bytes;

	for (unsigned elsewhere = 0; elsewhere <= MAX_FRAMES_ELSEWHERE;) {
		const uint8_t *frame = in_piece(&search->outermost, addr, layout->ex_sizeof);

		if (addr == search->home)
			return true;
		if (frame) {
			if (addr >= last || addr % SLOT_BYTES != 0)
				return false;
			last = addr;
		} else {
			elsewhere++;
			frame = plausible_address(addr) ? view_at(search->view, addr, layout->ex_sizeof)
							: NULL;
			if (!frame)
				return false;
		}
		addr = load_u64(frame + layout->ex_prev_execute_data);
	}
	return false;
}

/* Is @call the inner page's first frame, or another call that is pending in the same frame? */
static bool is_pending(const struct search *search, remote_addr call)
{
	for (unsigned i = 0; i < MAX_PENDING; i++) {
		const uint8_t *frame;

		if (call == search->first_inner)
			return true;
		frame = in_piece(&search->inner, call, search->layout->ex_sizeof);
		if (!frame)
			return false;
		call = load_u64(frame + search->layout->ex_prev_execute_data);
	}
	return false;
}

/* The frame from which the chain can be walked; 0: not found. */
static remote_addr find_entry(const struct search *search)
{
	const struct piece *page = &search->outermost;
	size_t bytes = search->layout->ex_sizeof;

	if (leads_home(search, search->first_inner))
		return search->first_inner;
	for (size_t at = (page->bytes - bytes) & ~(size_t)(SLOT_BYTES - 1); page->start + at >= search->home;
		at -= SLOT_BYTES)
		if (is_pending(search, load_u64(page->data + at + search->layout->ex_call)) &&
			leads_home(search, page->start + at))
			return page->start + at;
	return 0;
}

static int search_outermost(struct view *view, const struct layout *layout, const struct stack_page *inner,
	const struct stack_page *outermost, remote_addr *ret_entry)
{
	struct search search = {
		.view = view,
		.layout = layout,
		.outermost = {.start = outermost->start, .bytes = outermost->top - outermost->start},
		.inner = {.start = inner->start, .bytes = inner->top - inner->start},
		.home = first_frame(layout, outermost->start),
		.first_inner = first_frame(layout, inner->start),
	};

	*ret_entry = 0;
	if (search.inner.bytes > PENDING_WINDOW_BYTES)
		search.inner.bytes = PENDING_WINDOW_BYTES;
	if (search.outermost.bytes < search.home - outermost->start + layout->ex_sizeof)
		return 0; /* no room for a frame */
	search.outermost.data = view_at(view, search.outermost.start, search.outermost.bytes);
	if (search.outermost.data)
		search.inner.data = view_at(view, search.inner.start, search.inner.bytes);
	if (!search.inner.data)
		return view_error(view);
	*ret_entry = find_entry(&search);
	return 0;
}

void stack_pages_deinit(struct stack_pages *pages)
{
	free(pages->addrs);
	*pages = (struct stack_pages){0};
}

/* Where @addr is among them; their count if it is not. */
static size_t find_page(const struct stack_pages *pages, remote_addr addr)
{
	size_t at = 0;

	while (at < pages->count && pages->addrs[at] != addr)
		at++;
	return at;
}

/* Brings the headers of those from @first on. */
static int fetch_known(const struct stack_pages *pages, struct view *view, size_t header_bytes, size_t first)
{
	struct remote_span spans[BATCH];
	int r = 0;

	while (first < pages->count && r == 0) {
		size_t count = 0;

		for (; first < pages->count && count < BATCH; first++)
			spans[count++] =
				(struct remote_span){.addr = pages->addrs[first], .bytes = header_bytes};
		r = view_prefetch(view, spans, count);
	}
	return r;
}

static int remember(struct stack_pages *pages, const remote_addr *seen, size_t count)
{
	if (count > pages->room) {
		remote_addr *grown = realloc(pages->addrs, 2 * count * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		pages->addrs = grown;
		pages->room = 2 * count;
	}
	memcpy(pages->addrs, seen, count * sizeof(*seen));
	pages->count = count;
	return 0;
}

/* Goes along the list to its end; *ret_inner and *ret_outermost are the last two. */
static int go_along(struct stack_pages *pages, struct view *view, const struct layout *layout,
	remote_addr addr, struct stack_page *ret_inner, struct stack_page *ret_outermost)
{
	size_t header_bytes = layout->vm_stack_sizeof, count = 0, fresh = 0;
	remote_addr seen[STACK_PAGES_MAX];
	bool fetched = false;
	int r = 0;

	while (addr != 0 && count < STACK_PAGES_MAX && fresh < STACK_PAGES_MAX_NEW) {
		const uint8_t *header;
		size_t known;

		if (!plausible_address(addr))
			return REMOTE_E_FAULT;
		if (!fetched && (known = find_page(pages, addr)) < pages->count) {
			fetched = true;
			r = fetch_known(pages, view, header_bytes, known);
			if (r != 0)
				return r;
		}
		if (!view_has(view, addr, header_bytes))
			fresh++;
		/* Not predicted: hundreds of them would displace all else. */
		header = view_at_unpredicted(view, addr, header_bytes);
		if (!header)
			return view_error(view);
		*ret_inner = *ret_outermost;
		r = decode_page(layout, addr, header, ret_outermost);
		if (r != 0)
			return r;
		seen[count++] = addr;
		addr = ret_outermost->prev;
	}
	r = remember(pages, seen, count);
	return r == 0 && addr != 0 ? STACK_PAGES_E_NOT_FOUND : r;
}

int stack_pages_find_outer_end(struct stack_pages *pages, struct view *view, const struct layout *layout,
	remote_addr addr, struct stack_outer_end *ret_end)
{
	struct stack_page inner = {0}, outermost = {0};
	remote_addr entry = 0;
	int r = go_along(pages, view, layout, addr, &inner, &outermost);

	if (r == 0 && pages->count <= 2)
		return STACK_PAGES_E_NEAR;
	if (r == 0)
		r = search_outermost(view, layout, &inner, &outermost, &entry);
	if (r == REMOTE_E_FAULT || (r == 0 && entry == 0))
		return STACK_PAGES_E_NOT_FOUND;
	if (r == 0)
		*ret_end = (struct stack_outer_end){.page = outermost, .entry = entry};
	return r;
}
