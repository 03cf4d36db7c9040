/* SPDX-License-Identifier: MIT
 *
 * A vector costs 0.35 us, of which the bytes are the least part: each is a look at the process's address
 * space of its own (docs/BENCHMARKS.md). So there are as few of them as will do.
 *
 * First the guard, the inner end of the main span, the rest of it, and the guard; then what else belongs to
 * the instant; then the inner end again and the guard again, which prove the instant. (Without the guard in
 * the middle, of the stacks of programs that call and return all the time 0.1 to 1.4 % were put together from
 * two moments that look alike; with it 0.03 %, read from another CPU. See docs/ORACLE.md.) What outlives it
 * comes last, outside of the part that the target's movement spoils, and the guard once more.
 */
#include "reader/view_plan.h"

#include <errno.h>
#include <stdbool.h>

static size_t add(struct view_plan *plan, remote_addr addr, void *into, size_t bytes)
{
	plan->spans[plan->count] = (struct remote_span){addr, into, bytes};
	return plan->count++;
}

static bool is_in_main(const struct view_main *main, const struct prediction_span *span)
{
	return span->addr >= main->addr && span->bytes <= main->bytes &&
	       span->addr - main->addr <= main->bytes - span->bytes;
}

static void add_predicted(
	struct view_plan *plan, const struct view_main *main, const struct prediction *prediction, size_t but)
{
	for (size_t i = 0; i < prediction->count; i++)
		if (i != but && !is_in_main(main, &prediction->spans[i]))
			add(plan, prediction->spans[i].addr, NULL, prediction->spans[i].bytes);
}

/* The lasting span that is so near before the guard that both are cheaper with one vector; their number if
 * there is none. The gap between them is as readable as the pages on both of its sides. */
static size_t find_neighbour(const struct view_plan_parts *parts)
{
	const struct prediction *lasting = parts->lasting;
	size_t i = 0;

	for (; i < lasting->count; i++) {
		remote_addr end = lasting->spans[i].addr + lasting->spans[i].bytes;

		if (end <= parts->guard_addr && parts->guard_addr - end <= PREDICTION_MERGE_GAP_BYTES &&
			!is_in_main(parts->main, &lasting->spans[i]))
			break;
	}
	return i;
}

void view_plan_make(struct view_plan *plan, const struct view_plan_parts *parts)
{
	const struct view_main *main = parts->main;
	const struct prediction *lasting = parts->lasting;
	size_t neighbour = find_neighbour(parts);
	remote_addr last = neighbour < lasting->count ? lasting->spans[neighbour].addr : parts->guard_addr;

	plan->count = 0;
	add(plan, parts->guard_addr, parts->guard, parts->guard_bytes);
	plan->main = plan->count;
	if (main->bytes > 0)
		add(plan, main->again_addr, NULL, main->again_bytes);
	if (main->again_addr > main->addr)
		add(plan, main->addr, NULL, main->again_addr - main->addr);
	if (main->bytes > 0)
		add(plan, parts->guard_addr, parts->guard_between, parts->guard_bytes);
	plan->exact = plan->count;
	add_predicted(plan, main, parts->exact, parts->exact->count);
	plan->exact_end = plan->again = plan->count;
	if (main->bytes > 0)
		add(plan, main->again_addr, NULL, main->again_bytes);
	add(plan, parts->guard_addr, parts->guard_behind, parts->guard_bytes);
	plan->lasting = plan->count;
	add_predicted(plan, main, lasting, neighbour);
	add_predicted(plan, main, parts->brief, parts->brief->count);
	plan->lasting_end = plan->count;
	plan->last_guard = lasting->count + parts->brief->count > 0
				   ? add(plan, last, NULL, parts->guard_addr + parts->guard_bytes - last)
				   : plan->count - 1;
}

int view_plan_place(struct view_plan *plan, const struct view_main *main, struct arena *arena)
{
	size_t needed = 0;
	uint8_t *into;

	for (size_t i = 0; i < plan->count; i++)
		needed += plan->spans[i].into ? 0 : plan->spans[i].bytes;
	if (arena_reset(arena, needed) < 0)
		return -ENOMEM;
	into = arena_take(arena, needed);
	if (!into)
		return -ENOMEM;
	/* The two parts of the main span side by side, as they are in the target. */
	if (main->bytes > 0) {
		plan->spans[plan->main].into = into + (main->again_addr - main->addr);
		if (main->again_addr > main->addr)
			plan->spans[plan->main + 1].into = into;
		into += main->bytes;
	}
	for (size_t i = 0; i < plan->count; i++) {
		if (plan->spans[i].into)
			continue;
		plan->spans[i].into = into;
		into += plan->spans[i].bytes;
	}
	return 0;
}
