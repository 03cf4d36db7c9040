/* SPDX-License-Identifier: MIT
 *
 * RATE, SUSPEND and RESUME: may they be obeyed, and what of them is to be remembered for targets that come
 * later. Belongs to the sampler thread.
 */
#pragma once

#include <stdbool.h>

#include "daemon/sampling/engine.h"

struct sampler;

/* Is @order one of these? */
bool control_is_meant(const struct order *order);

/* On its first way through all samplers such an order only finds out whether any of them has what it is
 * about, since none knows that of the others. True: it is approved, and to be obeyed; false: it went on. */
bool control_consult(struct sampler *sampler, struct order *order);

/* Notes what stands from now on. False: order->error says why not. */
bool control_begin(struct sampler *sampler, struct order *order);

/* Was there a reload since @order was begun, which ends what it orders? */
bool control_is_overtaken(const struct sampler *sampler, const struct order *order);

/* For who may have asked for a pool that isn't there: those of this sampler are added to the others'. Without
 * memory it is only told that it isn't. */
void control_name_pools(const struct sampler *sampler, struct order *order);
