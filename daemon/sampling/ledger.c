/* SPDX-License-Identifier: MIT
 *
 * See ledger.h for what is conserved and why time is divided this way.
 */
#include "daemon/sampling/ledger.h"

#include "daemon/profile/frame_table.h"

enum time_class { TIME_CPU, TIME_QUEUE, TIME_OFF };

static uint64_t advance(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static void charge(struct ledger *ledger, uint32_t node_index, enum time_class class, uint64_t ns)
{
	struct calltree_node *node = calltree_node(ledger->tree, node_index);

	node->wall_ns += ns;
	switch (class) {
	case TIME_CPU:
		node->cpu_ns += ns;
		ledger->cpu_ns += ns;
		break;
	case TIME_QUEUE:
		node->queue_ns += ns;
		ledger->queue_ns += ns;
		break;
	case TIME_OFF:
		ledger->off_ns += ns;
		break;
	}
}

static uint32_t unread_node(struct ledger *ledger)
{
	bool overflow;

	return calltree_child(ledger->tree, CALLTREE_ROOT, FRAME_UNREAD, 0, &overflow);
}

/* How far a process's clock has come since the ledger was opened. */
static uint64_t clock_advance(uint64_t now_ns, int64_t opened_ns)
{
	int64_t advanced = (int64_t)now_ns - opened_ns;

	return advanced > 0 ? (uint64_t)advanced : 0;
}

/* Undoes up to @ns of what was charged to a node in one class. Returns how much it was. */
static uint64_t take_back(struct ledger *ledger, uint32_t node_index, enum time_class class, uint64_t ns)
{
	struct calltree_node *node = calltree_node(ledger->tree, node_index);
	uint64_t there = class == TIME_CPU     ? node->cpu_ns
			 : class == TIME_QUEUE ? node->queue_ns
					       : node->wall_ns - node->cpu_ns - node->queue_ns;
	uint64_t taken = ns < there ? ns : there;

	node->wall_ns -= taken;
	switch (class) {
	case TIME_CPU:
		node->cpu_ns -= taken;
		ledger->cpu_ns -= taken;
		break;
	case TIME_QUEUE:
		node->queue_ns -= taken;
		ledger->queue_ns -= taken;
		break;
	case TIME_OFF:
		ledger->off_ns -= taken;
		break;
	}
	return taken;
}

/* The same for the whole tree, until @excess is gone. */
static void trim(struct ledger *ledger, enum time_class class, uint64_t charged, uint64_t exact)
{
	uint64_t excess = advance(charged, exact);

	for (uint32_t node = calltree_count(ledger->tree); excess && node--;)
		excess -= take_back(ledger, node, class, excess);
}

void ledger_open(
	struct ledger *ledger, struct calltree *tree, uint64_t now_ns, const struct activity_clocks *clocks)
{
	*ledger = (struct ledger){
		.tree = tree,
		.opened_ns = now_ns,
		.opened_run_ns = (int64_t)clocks->run_ns,
		.opened_queue_ns = (int64_t)clocks->queue_ns,
		.last_ns = now_ns,
		.last_switch_ins = clocks->switch_ins,
		.running_node = CALLTREE_NONE,
		.waiting_node = CALLTREE_NONE,
	};
}

static void remember(
	struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks, bool running)
{
	ledger->last_ns = now_ns;
	ledger->last_switch_ins = clocks->switch_ins;
	ledger->last_running = running;
}

void ledger_skip(struct ledger *ledger, uint64_t until_ns, const struct activity_clocks *clocks)
{
	uint64_t charged = ledger->cpu_ns + ledger->queue_ns + ledger->off_ns;
	uint64_t wall = advance(until_ns, ledger->opened_ns);

	if (wall > charged)
		charge(ledger, unread_node(ledger), TIME_OFF, wall - charged);
	/* From here on the clocks count from where they stand now. */
	ledger->opened_run_ns = (int64_t)clocks->run_ns - (int64_t)ledger->cpu_ns;
	ledger->opened_queue_ns = (int64_t)clocks->queue_ns - (int64_t)ledger->queue_ns;
	remember(ledger, until_ns, clocks, false);
}

void ledger_running(
	struct ledger *ledger, uint32_t node, uint64_t now_ns, const struct activity_clocks *clocks)
{
	uint64_t cpu = clock_advance(clocks->run_ns, ledger->opened_run_ns);
	uint64_t queue = clock_advance(clocks->queue_ns, ledger->opened_queue_ns);

	if (ledger->last_running && clocks->switch_ins == ledger->last_switch_ins) {
		/* It has not been off the CPU to wait. Its clock lags; the wall clock does not. */
		charge(ledger, node, TIME_CPU, advance(now_ns, ledger->last_ns));
	} else {
		/* Up to date as of its last switch or scheduler tick; the rest follows at the next sample. */
		if (cpu > ledger->cpu_ns)
			charge(ledger, node, TIME_CPU, cpu - ledger->cpu_ns);
		if (queue > ledger->queue_ns)
			charge(ledger, node, TIME_QUEUE, queue - ledger->queue_ns);
	}
	ledger->running_node = node;
	remember(ledger, now_ns, clocks, true);
}

/* Brings what is charged in line with exact numbers. @last resort: time without a node to go to goes to
 * <unread>. */
static void reconcile(
	struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks, bool last_resort)
{
	uint64_t wall = advance(now_ns, ledger->opened_ns);
	uint64_t cpu = clock_advance(clocks->run_ns, ledger->opened_run_ns);
	uint64_t queue = clock_advance(clocks->queue_ns, ledger->opened_queue_ns);
	uint32_t running = ledger->running_node, waiting = ledger->waiting_node;
	uint64_t off;

	/* The clocks and the time are read a moment apart. */
	if (cpu > wall)
		cpu = wall;
	if (queue > wall - cpu)
		queue = wall - cpu;
	off = wall - cpu - queue;

	if (running == CALLTREE_NONE && last_resort)
		running = unread_node(ledger);
	if (waiting == CALLTREE_NONE && last_resort)
		waiting = unread_node(ledger);

	if (running != CALLTREE_NONE) {
		if (ledger->cpu_ns > cpu && queue > ledger->queue_ns) {
			uint64_t excess = ledger->cpu_ns - cpu, due = queue - ledger->queue_ns;
			uint64_t moved = take_back(ledger, running, TIME_CPU, excess < due ? excess : due);

			charge(ledger, running, TIME_QUEUE, moved);
		}
		if (cpu > ledger->cpu_ns)
			charge(ledger, running, TIME_CPU, cpu - ledger->cpu_ns);
		if (queue > ledger->queue_ns)
			charge(ledger, running, TIME_QUEUE, queue - ledger->queue_ns);
	}
	if (waiting != CALLTREE_NONE && off > ledger->off_ns)
		charge(ledger, waiting, TIME_OFF, off - ledger->off_ns);

	if (!last_resort)
		return;
	/* What the wall clock overstated, or a clock that lagged: undone, so that the sums are exact. */
	trim(ledger, TIME_CPU, ledger->cpu_ns, cpu);
	trim(ledger, TIME_QUEUE, ledger->queue_ns, queue);
	trim(ledger, TIME_OFF, ledger->off_ns, off);
}

void ledger_waiting(
	struct ledger *ledger, uint32_t node, uint64_t now_ns, const struct activity_clocks *clocks)
{
	ledger->waiting_node = node;
	reconcile(ledger, now_ns, clocks, false);
	remember(ledger, now_ns, clocks, false);
}

void ledger_settle(struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks)
{
	reconcile(ledger, now_ns, clocks, true);
	remember(ledger, now_ns, clocks, false);
}
