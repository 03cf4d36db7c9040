/* SPDX-License-Identifier: MIT
 *
 * A view of a process's memory at one instant: what one vectored read brought, and, where that did not
 * suffice, what follow-up reads added. Each address asked for is remembered and becomes part of the next
 * refresh's single call, so that in steady state a sample costs one system call, however many places it looks
 * at.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "symbols/memory.h"
#include "reader/remote.h"

#define VIEW_MAX_GUARD_BYTES 64
/* The longest single span. A PHP VM stack page is 256 KiB. */
#define VIEW_MAX_SPAN_BYTES (1u << 20)
/* What follow-up reads may add to one instant. */
#define VIEW_MAX_FOLLOW_UP_BYTES (8u << 20)
#define VIEW_MAX_FOLLOW_UPS 2048
/* What a call and each of its vectors cost beyond the bytes they copy, in bytes: 2 us and 0.1 us, in which
 * so much could be copied (FACTS). */
#define VIEW_CALL_COST_BYTES (32u << 10)
#define VIEW_SPAN_COST_BYTES (2u << 10)
/* Spans of one view_refresh() or view_prefetch() that are found unreadable before the rest is given up. */
#define VIEW_MAX_FAULTS 16
/* How much of the main span's end is read a second time at most. */
#define VIEW_MAX_REREAD_BYTES (64u << 10)

struct view;

/* A view reads through this: remote_read() in the program, a saved image in tests. */
typedef int (*view_read_fn)(
	void *context, const struct remote_span *spans, size_t span_count, size_t *ret_failed_span);

enum {
	VIEW_E_TORN = 16, /* the guard words changed between the first and the last vector */
	VIEW_E_FULL,      /* more than the bounds above */
};

/* @guard is a few words (EG's stack words and current_execute_data; at most VIEW_MAX_GUARD_BYTES) that are
 * read first and last in each call and must be the same: else the target moved meanwhile. */
int view_new(view_read_fn read, void *context, remote_addr guard, size_t guard_bytes, struct view **ret_view);

/* What was read of the main span. Its inner end is the upper one: a stack grows upwards. */
struct view_main {
	remote_addr addr;
	size_t bytes;           /* 0: nothing */
	const uint8_t *first;   /* all of it, as of the instant */
	remote_addr again_addr; /* from here to its end it was read twice: before all else, and when all that
				 * belongs to the instant had been read */
	size_t again_bytes;
	const uint8_t
		*again; /* between the two the guard did not change, and nothing in them should differ */
};

/* Starts a new instant: forgets all bytes, then reads in one call: guard, inner end of the main span, the
 * rest of it, guard, exact predicted spans, inner end of the main span again, guard, lasting predicted spans,
 * guard. The main span is that of the VM stack expected to be
 * in use (@main_bytes may be 0), @again_bytes the part of it that is read twice, at most
 * VIEW_MAX_REREAD_BYTES. 0, VIEW_E_TORN (the second or third guard differs from the first), REMOTE_E_GONE,
 * REMOTE_E_FAULT (not even the guard can be read), negative errno. A main or predicted span that can't be
 * read any more is dropped and the rest is read again. After VIEW_E_TORN the bytes that were read can be
 * looked at still, at one's own risk. */
int view_refresh(struct view *view, remote_addr main_addr, size_t main_bytes, size_t again_bytes);

/* Tries again within the same sample, with as much of the main span read twice as may be: as view_refresh(),
 * but what is predicted does not get older. Nothing that was read is kept: a function that did not exist yet
 * may be on the stack by now. */
int view_refresh_again(struct view *view, remote_addr main_addr, size_t main_bytes);

/* From now to the next refresh what is looked at need not belong to the instant: it outlives the target's
 * movement, as functions and classes do. Reads succeed also when the guard has changed, and what is looked at
 * is predicted as lasting: it is read behind the guard, so that the exact part of the call is short and
 * seldom torn. */
void view_allow_lasting(struct view *view);

/* From now to the next refresh: the same, but what is looked at will hardly be looked at soon again. It is
 * predicted for the next refresh, and if that one's sample has no use for it, no longer. */
void view_allow_brief(struct view *view);

/* Nevertheless the refreshes to come will read this, as lasting. */
void view_expect_lasting(struct view *view, remote_addr addr, size_t bytes);

/* Has any read of this instant, of exact or lasting spans, seen the guard changed? */
bool view_moved(const struct view *view);

/* The main span, to be looked at in place. Valid until the next refresh. */
const struct view_main *view_main(const struct view *view);

/* The guard words as first read. */
const void *view_guard(const struct view *view);

/* The bytes at @addr as of this instant: from what was read already, or by reading them (and the guard) now.
 * NULL if they can't be read, or the target moved (view_error() says which). Valid until the next refresh,
 * and aligned as @addr is (up to 8 bytes). */
const void *view_at(struct view *view, remote_addr addr, size_t bytes);

/* The same, but the next refresh will not read it unasked: for long lists that would displace the rest. */
const void *view_at_unpredicted(struct view *view, remote_addr addr, size_t bytes);

/* Can view_at() answer this without a read? */
bool view_has(const struct view *view, remote_addr addr, size_t bytes);

/* Makes sure that all of @spans (their @into is ignored) can be had from view_at(), with one call at most, or
 * one more for each span that can't be read: view_at() then fails for that one alone. 0 or VIEW_E_TORN,
 * VIEW_E_FULL, REMOTE_E_GONE, negative errno. */
int view_prefetch(struct view *view, const struct remote_span *spans, size_t span_count);

/* The error behind the last NULL: REMOTE_E_FAULT, REMOTE_E_GONE, VIEW_E_TORN, VIEW_E_FULL or a negative
 * errno. */
int view_error(const struct view *view);

/* What it has read since it was made, and the calls and vectors that took, in bytes: what a sample costs is
 * bounded by this. */
uint64_t view_cost_bytes(const struct view *view);

void view_free(struct view *view);
DEFINE_CLEANUP(struct view, view_free)
