/* SPDX-License-Identifier: MIT
 *
 * The pages of a VM stack: a list, from the innermost outwards. And how to come to the frames at its far end
 * without walking all those between.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "symbols/layout.h"
#include "reader/view.h"

/* Pages of one stack: 512 MiB at 256 KiB each, where PHP's default memory_limit allows 128 MiB. */
#define STACK_PAGES_MAX 2048
/* Pages a look may find that the last one did not know, each with a call of 2 us. It goes on where it ended.
 */
#define STACK_PAGES_MAX_NEW 1024

enum {
	STACK_PAGES_E_NEAR = 40, /* there are at most two pages: nothing to be gained */
	STACK_PAGES_E_NOT_FOUND, /* the list is broken, too long or not known to its end yet; or its last page
				    shows no frame for certain */
};

struct stack_page {
	remote_addr start, top; /* in use: [start, top), with the header at its beginning */
	remote_addr prev;       /* the next page outwards; 0: this is the outermost */
};

struct stack_outer_end {
	struct stack_page page; /* the outermost */
	remote_addr entry;      /* a frame from which the chain leads through that page to its first frame */
};

/* What is remembered of a target's stack from one look to the next. All zero at first. */
struct stack_pages {
	bool deep; /* the middle was left out */
	/* The pages of a deep stack that were gone along, innermost first: a hint at what to read. */
	remote_addr *addrs;
	size_t count, room;
};

void stack_pages_deinit(struct stack_pages *pages);

/* The page at @addr, which is not the innermost one: PHP writes `top` when it leaves a page for the next. 0,
 * REMOTE_E_FAULT (also where this is no page), other view_error(). */
int stack_page_read(
	struct view *view, const struct layout *layout, remote_addr addr, struct stack_page *ret_page);

/* Goes along the list from the page at @addr outwards, with one call if @pages knows them. 0,
 * STACK_PAGES_E_*, -ENOMEM or view_error(). */
int stack_pages_find_outer_end(struct stack_pages *pages, struct view *view, const struct layout *layout,
	remote_addr addr, struct stack_outer_end *ret_end);
