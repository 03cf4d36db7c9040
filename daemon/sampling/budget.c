/* SPDX-License-Identifier: MIT
 *
 * See budget.h.
 */
#include "daemon/sampling/budget.h"

#define WINDOW_NS 50000000ull
#define WINDOW_TICKS 8
#define LONGEST_WINDOW_NS 1000000000ull
/* What is remembered of the cost of a tick counts as much as a window of this length. */
#define MEMORY_NS 150000000ull

#define NS_IN_1000_SECONDS 1000000000000ull

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

void budget_count_ticks(struct budget *budget, unsigned ticks)
{
	budget->ticks += ticks;
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

static void learn_cost(struct budget *budget, uint64_t used_ns, uint64_t length_ns)
{
	uint64_t tick_ns;

	if (budget->ticks == 0)
		return;
	tick_ns = used_ns / budget->ticks;
	if (budget->tick_ns)
		tick_ns = (uint64_t)(((double)budget->tick_ns * (double)MEMORY_NS +
					     (double)tick_ns * (double)length_ns) /
				     (double)(MEMORY_NS + length_ns));
	budget->tick_ns = tick_ns;
}

static uint64_t stretch_for(uint64_t demand_ppm, uint64_t limit_ppm)
{
	uint64_t stretch_ppm;

	if (!limit_ppm || demand_ppm <= limit_ppm)
		return BUDGET_PPM;
	stretch_ppm = demand_ppm * BUDGET_PPM / limit_ppm;
	return stretch_ppm < BUDGET_MAX_STRETCH_PPM ? stretch_ppm : BUDGET_MAX_STRETCH_PPM;
}

void budget_settle(struct budget *budget, uint64_t now_ns, uint64_t cpu_ns, uint64_t rate_mhz)
{
	uint64_t used_ns = cpu_ns - budget->begin_cpu_ns, length_ns = now_ns - budget->begin_ns;

	used_ns -= used_ns < budget->orders_cpu_ns ? used_ns : budget->orders_cpu_ns;
	learn_cost(budget, used_ns, length_ns);
	budget->share_ppm = used_ns * BUDGET_PPM / (length_ns ? length_ns : 1);
	/* ns in a thousand seconds, of 10^12 */
	budget->demand_ppm = budget->tick_ns * rate_mhz / (NS_IN_1000_SECONDS / BUDGET_PPM);
	budget->stretch_ppm = stretch_for(budget->demand_ppm, budget->limit_ppm);
	budget->begin_ns = now_ns;
	budget->begin_cpu_ns = cpu_ns;
	budget->orders_cpu_ns = 0;
	budget->ticks = 0;
}
