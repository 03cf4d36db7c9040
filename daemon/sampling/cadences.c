/* SPDX-License-Identifier: MIT
 *
 * See cadences.h.
 */
#include "daemon/sampling/cadences.h"

#include <stddef.h>

#define UNSTRETCHED_PPM 1000000u
#define NS_IN_1000_SECONDS 1000000000000ull

static uint64_t stretched_ns(const struct cadences *cadences, uint64_t period_ns)
{
	return period_ns * cadences->stretch_ppm / UNSTRETCHED_PPM;
}

void cadences_init(struct cadences *cadences)
{
	*cadences = (struct cadences){.stretch_ppm = UNSTRETCHED_PPM};
}

void cadences_stretch(struct cadences *cadences, uint64_t stretch_ppm)
{
	cadences->stretch_ppm = stretch_ppm;
	for (unsigned i = 0; i < CADENCES_MAX; i++)
		cadences->items[i].period_ns = stretched_ns(cadences, cadences->asked_ns[i]);
}

/* By how many times one of two periods is the other: as near as 10 ms is to 1 ms, it is to 100 ms. */
static double distance(uint64_t a, uint64_t b)
{
	return a > b ? (double)a / (double)b : (double)b / (double)a;
}

static unsigned nearest(const struct cadences *cadences, uint64_t period_ns)
{
	unsigned best = 0;

	for (unsigned i = 1; i < CADENCES_MAX; i++)
		if (distance(cadences->asked_ns[i], period_ns) <
			distance(cadences->asked_ns[best], period_ns))
			best = i;
	return best;
}

unsigned cadences_join(struct cadences *cadences, uint64_t period_ns, uint64_t now_ns)
{
	unsigned free = CADENCES_NONE, number;

	for (number = 0; number < CADENCES_MAX; number++) {
		if (!cadences->users[number])
			free = number;
		else if (cadences->asked_ns[number] == period_ns)
			break;
	}
	if (number == CADENCES_MAX && free != CADENCES_NONE) {
		number = free;
		cadences->asked_ns[number] = period_ns;
		cadence_start(&cadences->items[number], stretched_ns(cadences, period_ns), now_ns, now_ns);
		cadences->is_due[number] = false;
	} else if (number == CADENCES_MAX) {
		number = nearest(cadences, period_ns);
	}
	cadences->users[number]++;
	return number;
}

void cadences_leave(struct cadences *cadences, unsigned number)
{
	cadences->users[number]--;
}

uint64_t cadences_period_ns(const struct cadences *cadences, unsigned number)
{
	return cadences->asked_ns[number];
}

uint64_t cadences_overdue(const struct cadences *cadences, unsigned number, uint64_t now_ns)
{
	struct cadence copy = cadences->items[number];
	struct cadence_due due;

	return cadence_due(&copy, now_ns, &due) ? due.expected : 0;
}

uint64_t cadences_asked_mhz(const struct cadences *cadences)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < CADENCES_MAX; i++)
		if (cadences->users[i])
			sum += NS_IN_1000_SECONDS / cadences->asked_ns[i];
	return sum;
}

unsigned cadences_turn(struct cadences *cadences, uint64_t now_ns)
{
	unsigned count = 0;

	for (unsigned i = 0; i < CADENCES_MAX; i++) {
		cadences->is_due[i] =
			cadences->users[i] && cadence_due(&cadences->items[i], now_ns, &cadences->due[i]);
		count += cadences->is_due[i];
	}
	return count;
}

const struct cadence_due *cadences_due(const struct cadences *cadences, unsigned number)
{
	return number < CADENCES_MAX && cadences->is_due[number] ? &cadences->due[number] : NULL;
}

uint64_t cadences_deadline_ns(const struct cadences *cadences)
{
	uint64_t earliest_ns = 0;

	for (unsigned i = 0; i < CADENCES_MAX; i++)
		if (cadences->users[i] && (!earliest_ns || cadences->items[i].deadline_ns < earliest_ns))
			earliest_ns = cadences->items[i].deadline_ns;
	return earliest_ns;
}
