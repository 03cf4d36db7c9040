/* SPDX-License-Identifier: MIT
 *
 * Orders that concern many targets, or many units, are carried out in rounds: from one to the next, a few at
 * a time, between ticks. Belongs to the sampler thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "daemon/sampling/engine.h"

struct sampler;
struct round;
struct target;

struct rounds {
	TAILQ_HEAD(round_list, round) list; /* whose turn it is first */
	struct round *control;              /* RATE, SUSPEND, RESUME: which others wait for; NULL: none */
	uint64_t resume_ns;                 /* not before */
	uint64_t stepped_ns;                /* the last step */
};

void rounds_init(struct rounds *rounds);

/* Sends @order on a round, at the end of which it is sent on (sampler_send_on()); without one if it can't be
 * done. */
void rounds_begin(struct sampler *sampler, struct order *order);

/* When there will be something to do and time for it before the next deadline; 0: not before that. */
uint64_t rounds_due_ns(const struct sampler *sampler);

/* Does a step, if it is time and there is time for it. @ticked: targets were served in this turn of the loop.
 */
void rounds_turn(struct sampler *sampler, bool ticked);

bool rounds_are_under_way(const struct sampler *sampler);

/* Tells those under way what a tick has changed. */
void rounds_follow_tick(struct sampler *sampler);

/* @target goes: to be called while it is still there. */
void rounds_forget(struct sampler *sampler, const struct target *target);

/* All that are under way go back with ORDER_E_STOPPING. */
void rounds_end(struct sampler *sampler);
