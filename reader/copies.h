/* SPDX-License-Identifier: MIT
 *
 * Are the two copies of the main span the same? The inner end of a stack is read before all that belongs to
 * an instant and again behind it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "symbols/layout.h"
#include "reader/view.h"

/* So many of the innermost frames should be read twice. */
#define COPIES_WANTED_FRAMES 16
/* So many must be, if not all are: by these the others are vouched for. */
#define COPIES_LEAST_FRAMES 8

struct copies {
	const struct view_main *main;
	const struct layout *layout;
	size_t on_main;      /* frames that lie there, as far as the walk has come */
	size_t compared;     /* of them those that were read twice */
	bool torn;           /* one of these has changed */
	bool too_short;      /* they are too few */
	bool last_changed;   /* the frame that was compared last has */
	size_t steady_bytes; /* of the main span the part that need not be read twice the next time */
};

/* Comes, on the way from the leaf outwards, to the frame at @addr, wherever that lies. */
void copies_compare(struct copies *copies, remote_addr addr, bool caller);

/* Does the main span have the frame at @addr? */
static inline bool copies_has(const struct copies *copies, remote_addr addr)
{
	const struct view_main *main = copies->main;

	return addr >= main->addr && addr - main->addr + copies->layout->ex_sizeof <= main->bytes;
}

/* Would another frame change anything? */
static inline bool copies_go_on(const struct copies *copies)
{
	return copies->compared == copies->on_main || copies->on_main < COPIES_WANTED_FRAMES;
}
