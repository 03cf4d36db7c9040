/* SPDX-License-Identifier: MIT
 *
 * How much of a CPU sampling may take (`sampling.cpu_budget`), and by how much periods have to be stretched
 * for that. A sampler that runs before everybody else must limit itself: nobody else can.
 *
 * Over windows of 50 ms and 8 ticks at least the thread's own clock says what a tick costs. Times the ticks
 * that were asked for in a second that is the demand, and by the budget the stretch, if it is more than one.
 * So the stretch follows from what is asked for and what that costs, and not from whether the last stretch
 * was too little or too much: where ticks cost the same at any rate nothing feeds back, and nothing can
 * swing. An order for another rate needs no new measurement, and an overload that leaves no time for most
 * ticks is known by the first one.
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
	unsigned ticks;         /* in it: deadlines served */
	uint64_t tick_ns;       /* what one costs, smoothed; 0: there was none yet */
	uint64_t share_ppm;     /* of one CPU that sampling took in the last window */
	uint64_t demand_ppm;    /* what it would have taken at the periods that were asked for */
	uint64_t stretch_ppm;   /* in force until the window ends; BUDGET_PPM or more */
};

/* @cpu_ns here and below: what the thread has used so far. */
void budget_start(struct budget *budget, uint64_t limit_ppm, uint64_t now_ns, uint64_t cpu_ns);

/* Holds from the next window on. */
void budget_set_limit(struct budget *budget, uint64_t limit_ppm);

/* So many deadlines were served. */
void budget_count_ticks(struct budget *budget, unsigned ticks);

/* So much was used for orders. */
void budget_exempt(struct budget *budget, uint64_t cpu_ns);

/* Is it time to look at the thread's clock? */
bool budget_is_due(const struct budget *budget, uint64_t now_ns);

/* Ends the window and begins the next one. @rate_mhz: deadlines that are asked for in a thousand seconds. */
void budget_settle(struct budget *budget, uint64_t now_ns, uint64_t cpu_ns, uint64_t rate_mhz);
