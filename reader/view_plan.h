/* SPDX-License-Identifier: MIT
 *
 * The vectors of one refresh of a view: what is read, in which order, and where it goes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "reader/arena.h"
#include "reader/prediction.h"
#include "reader/remote.h"
#include "reader/view.h"

/* Four guards, and the main span, in two parts, and its inner end again. */
#define VIEW_PLAN_FIXED_SPANS 7

/* What a plan is made of. */
struct view_plan_parts {
	remote_addr guard_addr;
	size_t guard_bytes;
	uint8_t *guard, *guard_between, *guard_behind; /* where they go, but for the last one */
	const struct view_main *main;
	const struct prediction *exact, *lasting, *brief;
};

struct view_plan {
	struct remote_span spans[3 * PREDICTION_MAX_SPANS + VIEW_PLAN_FIXED_SPANS];
	size_t count;
	size_t main;             /* the main span's inner end, and behind it, if there is one, the rest */
	size_t exact, exact_end; /* which of them are exact predicted spans */
	size_t again;
	size_t lasting, lasting_end; /* lasting and brief predicted spans */
	size_t last_guard; /* the guard behind these, or one that ends just before it, with the guard */
};

void view_plan_make(struct view_plan *plan, const struct view_plan_parts *parts);

/* Gives every span that has no place yet one in @arena, which begins afresh. -ENOMEM. */
int view_plan_place(struct view_plan *plan, const struct view_main *main, struct arena *arena);
