/* SPDX-License-Identifier: MIT
 *
 * See ledger.h for what is conserved and why time is divided this way.
 */
#include "daemon/sampling/ledger.h"

#include "daemon/sampling/clock.h"

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
static struct weighed_times stretch(
	const struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks)
{
	/* The clocks and the time are read a moment apart: never more of them than of it. */
	uint64_t wall = clock_advance(now_ns, ledger->since_ns);
	uint64_t cpu = smaller_of(clock_advance(clocks->run_ns, ledger->since.run_ns), wall);
	uint64_t queue = smaller_of(clock_advance(clocks->queue_ns, ledger->since.queue_ns), wall - cpu);

	return (struct weighed_times){.cpu_ns = cpu, .queue_ns = queue, .off_ns = wall - cpu - queue};
}

struct weighed_times ledger_times(
	const struct ledger *ledger, uint64_t now_ns, const struct activity_clocks *clocks)
{
	struct weighed_times times = ledger->times, newest;

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
	struct weighed_times skipped = stretch(ledger, now_ns, clocks);

	ledger->times.unseen_ns += skipped.cpu_ns + skipped.queue_ns + skipped.off_ns;
	ledger->times.unseen_cpu_ns += skipped.cpu_ns;
	ledger->times.unseen_queue_ns += skipped.queue_ns;
	ledger->since_ns = ledger->last_ns = now_ns;
	ledger->since = *clocks;
}

void ledger_sample(struct ledger *ledger, uint32_t node_index, enum presence presence, uint64_t now_ns)
{
	struct calltree_node *node = calltree_node(ledger->tree, node_index);
	/* A sample always weighs something, also the first of a unit that has only just begun. */
	uint64_t weight_ns = clock_advance(now_ns, ledger->last_ns) + 1;

	switch (presence) {
	case PRESENCE_RUNNING:
		node->cpu_ns += weight_ns;
		break;
	case PRESENCE_QUEUED:
		node->queue_ns += weight_ns;
		break;
	case PRESENCE_WAITING:
		node->wall_ns += weight_ns;
		break;
	}
	ledger->last_ns = now_ns;
}

void ledger_note_kept_off(struct ledger *ledger, uint32_t node, uint64_t queue_ns)
{
	calltree_node(ledger->tree, node)->queue_ns += queue_ns;
}

int ledger_take_tree(struct ledger *ledger, const struct weighed_times *times, struct frame_table *frames,
	struct weighed_tree *ret_tree)
{
	struct weighed_tree tree = {.times = *times};
	int r = calltree_take_nodes(ledger->tree, &tree.nodes, &tree.count);

	if (r < 0)
		return r;
	tree.room = tree.count;
	tree.frames = frame_table_ref(frames);
	*ret_tree = tree;
	return 0;
}
