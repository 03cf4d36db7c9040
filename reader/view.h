/* SPDX-License-Identifier: MIT
 *
 * A view of a process's memory at one instant: what one vectored read brought, and, where that did not suffice,
 * what follow-up reads added. Each address asked for is remembered and becomes part of the next refresh's single
 * call, so that in steady state a sample costs one system call, however many places it looks at.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "symbols/memory.h"
#include "reader/remote.h"

struct view;

/* A view reads through this: remote_read() in the program, a saved image in tests. */
typedef int (*view_read_fn)(void *context, const struct remote_span *spans, size_t span_count,
	size_t *ret_failed_span);

enum {
	VIEW_E_TORN = 16, /* the guard words changed between the first and the last vector */
};

/* @guard is a few words (EG's stack words and current_execute_data) that are read first and last in each call and
 * must be the same: else the target moved meanwhile. */
int view_new(view_read_fn read, void *context, remote_addr guard, size_t guard_bytes, struct view **ret_view);

/* Starts a new instant: forgets all bytes, then reads guard, main span, predicted spans and guard again in one
 * call. @main is the span of the VM stack expected to be in use (bytes may be 0). 0, VIEW_E_TORN, REMOTE_E_GONE,
 * negative errno. Predicted spans that can't be read any more are dropped, and the rest is read again. */
int view_refresh(struct view *view, remote_addr main_addr, size_t main_bytes);

/* The guard words as read. */
const void *view_guard(const struct view *view);

/* The bytes at @addr as of this instant: from what was read already, or by reading them (and the guard) now. NULL if they
 * can't be read, or the target moved (view_error() says which). Valid until the next refresh. */
const void *view_at(struct view *view, remote_addr addr, size_t bytes);

/* Makes sure that all of @spans (their @into is ignored) can be had from view_at(), with at most one call. Spans that can't be read
 * are left out: view_at() then fails for them alone. 0 or VIEW_E_TORN, REMOTE_E_GONE, negative errno. */
int view_prefetch(struct view *view, const struct remote_span *spans, size_t span_count);

/* The error behind the last NULL: REMOTE_E_FAULT, REMOTE_E_GONE, VIEW_E_TORN or a negative errno. */
int view_error(const struct view *view);

/* A struct memory over view_at(). */
struct memory view_memory(struct view *view);

void view_free(struct view *view);
DEFINE_CLEANUP(struct view, view_free)
