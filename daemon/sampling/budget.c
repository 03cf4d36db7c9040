/* SPDX-License-Identifier: MIT
 *
 * See budget.h.
 */
#include "daemon/sampling/budget.h"

/* Deadlines come at random, half to one and a half periods apart: fewer ticks than these, and a window's
 * length says more about chance than about the sampler. */
#define WINDOW_NS 50000000ull
#define WINDOW_TICKS 8
#define LONGEST_WINDOW_NS 1000000000ull
/* The newest window's part of the demand is one in so many. */
#define SMOOTHING 4

void budget_start(struct budget *budget, uint64_t limit_ppm, uint64_t now_ns, uint64_t cpu_ns)
{
	*budget = (struct budget){.limit_ppm = limit_ppm,
		.begin_ns = now_ns,
		.begin_cpu_ns = cpu_ns,
		.stretch_ppm = BUDGET_PPM};
}

void budget_set_limit(struct budget *budget, uint64_t limit_ppm)
{
	budget->limit_ppm = limit_ppm;
}

void budget_count_tick(struct budget *budget)
{
	budget->ticks++;
}

void budget_exempt(struct budget *budget, uint64_t cpu_ns)
{
	budget->orders_cpu_ns += cpu_ns;
}

bool budget_is_due(const struct budget *budget, uint64_t now_ns)
{
	uint64_t length_ns = now_ns - budget->begin_ns;

	return length_ns >= LONGEST_WINDOW_NS || (length_ns >= WINDOW_NS && budget->ticks >= WINDOW_TICKS);
}

static uint64_t stretch_for(uint64_t demand_ppm, uint64_t limit_ppm)
{
	uint64_t stretch_ppm;

	if (!limit_ppm || demand_ppm <= limit_ppm)
		return BUDGET_PPM;
	stretch_ppm = demand_ppm * BUDGET_PPM / limit_ppm;
	return stretch_ppm < BUDGET_MAX_STRETCH_PPM ? stretch_ppm : BUDGET_MAX_STRETCH_PPM;
}

void budget_settle(struct budget *budget, uint64_t now_ns, uint64_t cpu_ns)
{
	uint64_t used_ns = cpu_ns - budget->begin_cpu_ns, length_ns = now_ns - budget->begin_ns, demand_ppm;

	used_ns -= used_ns < budget->orders_cpu_ns ? used_ns : budget->orders_cpu_ns;
	budget->share_ppm = used_ns * BUDGET_PPM / (length_ns ? length_ns : 1);
	demand_ppm = budget->share_ppm * budget->stretch_ppm / BUDGET_PPM;
	budget->demand_ppm = (budget->demand_ppm * (SMOOTHING - 1) + demand_ppm) / SMOOTHING;
	budget->stretch_ppm = stretch_for(budget->demand_ppm, budget->limit_ppm);
	budget->begin_ns = now_ns;
	budget->begin_cpu_ns = cpu_ns;
	budget->orders_cpu_ns = 0;
	budget->ticks = 0;
}
