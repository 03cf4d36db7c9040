/* SPDX-License-Identifier: MIT
 *
 * A target's window on its way from the sampler to the bookkeeper: a copy, made in pieces between ticks while
 * the target is sampled on, or the window itself when its target is gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/cleanup.h"
#include "daemon/profile/accounting.h"
#include "daemon/profile/weighed_tree.h"
#include "daemon/sampling/engine.h"
#include "daemon/sampling/mailbox.h"
#include "daemon/sampling/target.h"

struct window {
	struct message message;
	struct order *order; /* whose it is a part of; NULL: its target is gone */
	unsigned sampler;    /* its place */
	uint64_t serial;     /* the target's */
	pid_t pid;
	uid_t uid;
	char pool[64];
	struct weighed_tree tree;
	struct accounting accounting;
	uint64_t begin_ns, period_ns;
	uint32_t max_nodes; /* of trees it is added to */
};

/* An empty copy. @order may be NULL. NULL: no memory. */
struct window *window_new(const struct target *target, const struct sampling *sampling, struct order *order);
void window_free(struct window *window);
DEFINE_CLEANUP(struct window, window_free)

/* Copies up to @most more nodes of the target's window; @ret_copied says how many. 1: that was all, and the
 * copy is the window as it is now, whatever has become of it since the copy was begun. 0: there are more.
 * -ENOMEM.
 */
int window_copy(struct window *window, const struct target *target, const struct sampling *sampling,
	uint32_t most, uint32_t *ret_copied);

/* To be called after each of the target's ticks between two pieces. */
void window_follow(struct window *window, const struct target *target);

/* Takes the window away from its target, which is gone. Takes a moment however large it is. -ENOMEM. */
int window_take(struct target *target, const struct sampling *sampling, struct window **ret_window);
