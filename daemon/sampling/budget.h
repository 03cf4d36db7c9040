/* SPDX-License-Identifier: MIT
 *
 * How much of a CPU sampling may take (`sampling.cpu_budget`), and by how much periods have to be stretched
 * for that. A sampler that runs before everybody else must limit itself: nobody else can.
 *
 * What sampling takes is measured, over windows of 50 ms and 8 ticks at least, by the thread's own clock.
 * Times the stretch in force that is the demand: what it would take at the periods that were asked for. The
 * stretch is the demand, smoothed over some four windows, by the budget; never less than one. Measuring the
 * demand instead of raising and lowering the stretch until the share fits makes it a filter without feedback
 * where ticks cost the same at any rate, so there is nothing in it that could swing.
 *
 * What orders take is not sampling's: it is bounded elsewhere (the service's quotas, `sampling/rounds`), and
 * whoever asks a lot must not make samples fewer.
 *
 * Pure: it is told the time, and what was used.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_PPM 1000000ull /* one CPU; stretched by one, which is not at all */
/* The stretch ends here, whatever the demand: somebody wants to see something. */
#define BUDGET_MAX_STRETCH_PPM (1000 * BUDGET_PPM)

struct budget {
	uint64_t limit_ppm; /* of one CPU; 0: no limit */
	uint64_t begin_ns;  /* of the window */
	uint64_t begin_cpu_ns;
	uint64_t orders_cpu_ns; /* in it */
	unsigned ticks;         /* in it */
	uint64_t share_ppm;     /* of one CPU that sampling took in the last window */
	uint64_t demand_ppm;    /* smoothed */
	uint64_t stretch_ppm;   /* in force until the window ends; BUDGET_PPM or more */
};

/* @cpu_ns here and below: what the thread has used so far. */
void budget_start(struct budget *budget, uint64_t limit_ppm, uint64_t now_ns, uint64_t cpu_ns);

/* Holds from the next window on. */
void budget_set_limit(struct budget *budget, uint64_t limit_ppm);

/* A tick was taken. */
void budget_count_tick(struct budget *budget);

/* So much was used for orders. */
void budget_exempt(struct budget *budget, uint64_t cpu_ns);

/* Is it time to look at the thread's clock? */
bool budget_is_due(const struct budget *budget, uint64_t now_ns);

/* Ends the window and begins the next one. */
void budget_settle(struct budget *budget, uint64_t now_ns, uint64_t cpu_ns);
