/* SPDX-License-Identifier: MIT
 *
 * A thread for the sums that nobody waits for with a deadline: windows of many targets added up for a
 * profile, and those of targets that are gone, kept by pool and user. Samplers hand it windows; what that
 * takes is the same however large the sums are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "daemon/sampling/engine.h"
#include "daemon/sampling/window.h"

struct bookkeeper;

int bookkeeper_new(const struct engine_options *options, struct bookkeeper **ret_bookkeeper);
/* Orders that it still has go back with ORDER_E_STOPPING. */
void bookkeeper_free(struct bookkeeper *bookkeeper);
DEFINE_CLEANUP(struct bookkeeper, bookkeeper_free)

/* The thread's function, @context is the bookkeeper; returns soon after bookkeeper_stop(). */
void *bookkeeper_run(void *context);
void bookkeeper_stop(struct bookkeeper *bookkeeper);
/* One turn of its loop: does what has arrived. False: it was stopped. */
bool bookkeeper_turn(struct bookkeeper *bookkeeper);

/* For sampler threads. What one posts is taken in the same order. */

/* ORDER_PROFILE: a sum is opened, with what targets that were gone by now have left. @period_ns: to be named
 * when no target is. -ENOMEM. */
int bookkeeper_open(struct bookkeeper *bookkeeper, struct order *order, const struct engine_options *options);

/* Takes over @window: a part of an order's sum, by rising serials; or what a target that is gone leaves,
 * which open sums get too if they have had no copy of it. */
void bookkeeper_add(struct bookkeeper *bookkeeper, struct window *window);

/* Nothing more comes for @order, which goes on to its asker: with the profile, unless it has an error;
 * ORDER_RESET: when what targets that are gone have left is reset too; ORDER_UNITS: with the newest. */
void bookkeeper_close(struct bookkeeper *bookkeeper, struct order *order);

/* So much is on its way already that copies should wait. */
bool bookkeeper_is_behind(struct bookkeeper *bookkeeper);

/* Takes over @count references, and @units itself (free()): their profiles are made, so that they need their
 * frame table no longer. */
void bookkeeper_settle(struct bookkeeper *bookkeeper, struct unit_result **units, size_t count);

/* What it holds of the targets that are gone. */
uint64_t bookkeeper_tree_bytes(const struct bookkeeper *bookkeeper);
