/* SPDX-License-Identifier: MIT
 *
 * The periods in use at a time. All targets of a period share one cadence, so that one wake-up serves them
 * all. Who asks for one more than there may be gets the nearest of those in use.
 *
 * Pure: it is told the time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sampling/cadence.h"

#define CADENCES_MAX 16
#define CADENCES_NONE CADENCES_MAX /* on none */

struct cadences {
	struct cadence items[CADENCES_MAX]; /* with the periods in force */
	uint64_t asked_ns[CADENCES_MAX];
	unsigned users[CADENCES_MAX]; /* 0: the place is free */
	struct cadence_due due[CADENCES_MAX];
	bool is_due[CADENCES_MAX];
	uint64_t stretch_ppm;
};

/* None in use; stretched by one, which is a million. */
void cadences_init(struct cadences *cadences);

/* All periods are what was asked for times @stretch_ppm millionths, from the deadlines after the next ones
 * on. */
void cadences_stretch(struct cadences *cadences, uint64_t stretch_ppm);

/* One more user of the cadence of @period_ns, which begins at @now_ns if there was none. Returns its number.
 */
unsigned cadences_join(struct cadences *cadences, uint64_t period_ns, uint64_t now_ns);
/* One less. */
void cadences_leave(struct cadences *cadences, unsigned number);

/* As it was asked for. */
uint64_t cadences_period_ns(const struct cadences *cadences, unsigned number);

/* Its deadlines that have passed at @now_ns and were not served: not due to who joins it now. */
uint64_t cadences_overdue(const struct cadences *cadences, unsigned number, uint64_t now_ns);

/* In a thousand seconds, at the periods that were asked for, of all in use. */
uint64_t cadences_asked_mhz(const struct cadences *cadences);

/* Finds out what is due at @now_ns, and moves on. Returns how many are. */
unsigned cadences_turn(struct cadences *cadences, uint64_t now_ns);
/* Of the last turn; NULL: this one (or CADENCES_NONE) was not due. */
const struct cadence_due *cadences_due(const struct cadences *cadences, unsigned number);

/* The next deadline; 0: none. */
uint64_t cadences_deadline_ns(const struct cadences *cadences);
