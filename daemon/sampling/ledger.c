/* SPDX-License-Identifier: MIT
 *
 * See ledger.h for what is conserved and why time is divided this way.
 */
#include "daemon/sampling/ledger.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/profile/frame_table.h"

static uint64_t advance(uint64_t now, uint64_t then)
{
	return now > then ? now - then : 0;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void ledger_init(struct ledger *ledger, struct calltree *tree)
{
	*ledger = (struct ledger){.tree = tree};
}

void ledger_clear(struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks)
{
	bool open = ledger->open;

	calltree_clear(ledger->tree);
	ledger_init(ledger, ledger->tree);
	if (open)
		ledger_open(ledger, now_ns, clocks);
}

void ledger_open(struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks)
{
	ledger->open = true;
	ledger->since_ns = now_ns;
	ledger->since = *clocks;
	ledger->last_ns = now_ns;
}

/* What the clocks say of the time since @ledger->since. */
static struct ledger_times stretch(
	const struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks)
{
	/* The clocks and the time are read a moment apart: never more of them than of it. */
	uint64_t wall = advance(now_ns, ledger->since_ns);
	uint64_t cpu = smaller(advance(clocks->run_ns, ledger->since.run_ns), wall);
	uint64_t queue = smaller(advance(clocks->queue_ns, ledger->since.queue_ns), wall - cpu);

	return (struct ledger_times){.cpu_ns = cpu, .queue_ns = queue, .off_ns = wall - cpu - queue};
}

struct ledger_times ledger_times(
	const struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks)
{
	struct ledger_times times = ledger->times, newest;

	if (!ledger->open)
		return times;
	newest = stretch(ledger, now_ns, clocks);
	times.cpu_ns += newest.cpu_ns;
	times.queue_ns += newest.queue_ns;
	times.off_ns += newest.off_ns;
	return times;
}

void ledger_close(struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks)
{
	if (!ledger->open)
		return;
	ledger->times = ledger_times(ledger, now_ns, clocks);
	ledger->open = false;
	ledger->since_ns = now_ns;
	ledger->since = *clocks;
}

void ledger_skip(struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks)
{
	struct ledger_times skipped = stretch(ledger, now_ns, clocks);

	ledger->times.unseen_ns += skipped.cpu_ns + skipped.queue_ns + skipped.off_ns;
	ledger->times.unseen_cpu_ns += skipped.cpu_ns;
	ledger->times.unseen_queue_ns += skipped.queue_ns;
	ledger->since_ns = ledger->last_ns = now_ns;
	ledger->since = *clocks;
}

void ledger_sample(struct ledger *ledger, uint32_t node_index, bool running, uint64_t now_ns)
{
	struct calltree_node *node = calltree_node(ledger->tree, node_index);
	/* A sample always weighs something, also the first of a unit that has only just begun. */
	uint64_t weight_ns = advance(now_ns, ledger->last_ns) + 1;

	if (running) {
		node->cpu_ns += weight_ns;
		ledger->running_weight_ns += weight_ns;
	} else {
		node->wall_ns += weight_ns;
		ledger->waiting_weight_ns += weight_ns;
	}
	ledger->last_ns = now_ns;
}

/* @whole * @part / @parts, which is at most @whole. */
static uint64_t share(uint64_t whole, uint64_t part, uint64_t parts)
{
	return parts ? (uint64_t)((unsigned __int128)whole * part / parts) : 0;
}

static void add_time(struct calltree *tree, uint32_t node_index, const struct ledger_times *times)
{
	struct calltree_node *node = calltree_node(tree, node_index);

	node->cpu_ns += times->cpu_ns + times->unseen_cpu_ns;
	node->queue_ns += times->queue_ns + times->unseen_queue_ns;
	node->wall_ns += times->cpu_ns + times->queue_ns + times->off_ns + times->unseen_ns;
}

/* What division has left over: to the heaviest node of its class, or to <unread> where the class has none. */
static int add_rest(struct calltree *into, uint32_t heaviest, const struct ledger_times *rest)
{
	bool overflow = false;

	if (!rest->cpu_ns && !rest->queue_ns && !rest->off_ns && !rest->unseen_ns)
		return 0;
	if (heaviest == CALLTREE_NONE)
		heaviest = calltree_child(into, CALLTREE_ROOT, FRAME_UNREAD, 0, &overflow);
	add_time(into, heaviest, rest);
	return overflow;
}

int ledger_add_to(const struct ledger *ledger, const struct ledger_times *times, struct calltree *into)
{
	const struct calltree_node *nodes = calltree_nodes(ledger->tree);
	uint32_t count = calltree_count(ledger->tree);
	uint32_t most_running = CALLTREE_NONE, most_waiting = CALLTREE_NONE;
	uint64_t running = 0, waiting = 0;
	struct ledger_times left = *times;
	_cleanup_free_ uint32_t *places = malloc(count * sizeof(*places));
	int without_room = 0;

	if (!places)
		return -ENOMEM;
	places[0] = CALLTREE_ROOT;
	for (uint32_t i = 0; i < count; i++) {
		struct ledger_times own = {
			.cpu_ns = share(times->cpu_ns, nodes[i].cpu_ns, ledger->running_weight_ns),
			.queue_ns = share(times->queue_ns, nodes[i].cpu_ns, ledger->running_weight_ns),
			.off_ns = share(times->off_ns, nodes[i].wall_ns, ledger->waiting_weight_ns),
		};
		bool overflow = false;

		if (i > 0)
			places[i] = calltree_child(
				into, places[nodes[i].parent], nodes[i].frame, nodes[i].line, &overflow);
		without_room += overflow;
		calltree_node(into, places[i])->samples += nodes[i].samples;
		calltree_node(into, places[i])->line_approximate_samples += nodes[i].line_approximate_samples;
		add_time(into, places[i], &own);
		left.cpu_ns -= own.cpu_ns;
		left.queue_ns -= own.queue_ns;
		left.off_ns -= own.off_ns;
		if (nodes[i].cpu_ns > running) {
			running = nodes[i].cpu_ns;
			most_running = places[i];
		}
		if (nodes[i].wall_ns > waiting) {
			waiting = nodes[i].wall_ns;
			most_waiting = places[i];
		}
	}
	without_room += add_rest(
		into, most_running, &(struct ledger_times){.cpu_ns = left.cpu_ns, .queue_ns = left.queue_ns});
	without_room += add_rest(into, most_waiting, &(struct ledger_times){.off_ns = left.off_ns});
	without_room += add_rest(into, CALLTREE_NONE,
		&(struct ledger_times){.unseen_ns = left.unseen_ns,
			.unseen_cpu_ns = left.unseen_cpu_ns,
			.unseen_queue_ns = left.unseen_queue_ns});
	return without_room;
}
