/* SPDX-License-Identifier: MIT
 *
 * What makes sums exact is the order of the mail. A window is either part of an order's sum (a copy) or comes
 * once, when its target is gone, to stay. When a sum is opened it gets what is there of targets that were
 * gone before; one that goes later is added to it if its copy had not come yet, which the serial tells, since
 * copies come by rising serials, also from one sampler to the next, which only begins when the one before has
 * sent its last. So each window is in each sum once, however long the samplers take over copying and whoever
 * comes and goes meanwhile.
 *
 * Windows come with references to their sampler's frame table. The bookkeeper has a table of its own, in
 * which the same function of two samplers is one frame.
 */
#include "daemon/sampling/bookkeeper.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "daemon/sampling/clock.h"
#include "daemon/sampling/departed.h"
#include "daemon/sampling/frame_pruning.h"
#include "daemon/sampling/pool_names.h"
#include "daemon/sampling/renumbering.h"
#include "daemon/sampling/sampling.h"

/* Nodes on their way, 12 MiB of them, past which copies wait. */
#define MOST_HELD_NODES (1u << 18)

enum bookkeeper_message {
	BOOKKEEPER_OPEN = 1, /* struct sum */
	BOOKKEEPER_WINDOW,   /* struct window */
	BOOKKEEPER_CLOSE,    /* struct order */
	BOOKKEEPER_SETTLE,   /* struct settlement */
	BOOKKEEPER_STOP,
};

/* The answer of an ORDER_PROFILE in the making. */
struct sum {
	struct message message;
	const struct order *order;
	uint32_t max_nodes;
	struct calltree *tree; /* NULL: no memory for it */
	enum order_error error;
	struct accounting accounting;
	uint64_t begin_ns; /* of the earliest window in it */
	uint64_t period_ns, fallback_period_ns;
	uint64_t last_serial; /* of the copies that have come */
	bool any;
	LIST_ENTRY(sum) sums;
};

struct settlement {
	struct message message;
	struct unit_result **units;
	size_t count;
};

struct bookkeeper {
	struct mailbox *inbox;
	struct message stop;
	atomic_bool stopping; /* what arrives is only let go */
	_Atomic uint64_t held_nodes, tree_bytes;

	LIST_HEAD(sum_list, sum) sums;
	struct departed departed;
	struct frame_table *frames;
	struct frame_pruning pruning;
	struct renumbering of_sampler[ENGINE_MAX_THREADS];
};

int bookkeeper_new(const struct engine_options *options, struct bookkeeper **ret_bookkeeper)
{
	_cleanup_(bookkeeper_freep) struct bookkeeper *bookkeeper = calloc(1, sizeof(*bookkeeper));
	int r;

	if (!bookkeeper)
		return -ENOMEM;
	LIST_INIT(&bookkeeper->sums);
	bookkeeper->stop.kind = BOOKKEEPER_STOP;
	r = sampling_new_frame_table(options, &bookkeeper->frames);
	if (r < 0)
		return r;
	r = mailbox_new(&bookkeeper->inbox);
	if (r < 0)
		return r;
	*ret_bookkeeper = TAKE(bookkeeper);
	return 0;
}

/* ---- names ---- */

static void forget_numbers(struct bookkeeper *bookkeeper)
{
	for (size_t i = 0; i < ENGINE_MAX_THREADS; i++)
		renumbering_forget(&bookkeeper->of_sampler[i]);
}

/* Sums under way have numbers too, and are over soon. */
static void prune_frames(struct bookkeeper *bookkeeper)
{
	struct calltree *trees[DEPARTED_MAX_GROUPS];
	const struct departed *departed = &bookkeeper->departed;

	if (!LIST_EMPTY(&bookkeeper->sums) ||
		!frame_pruning_is_due(&bookkeeper->pruning, bookkeeper->frames, monotonic_now_ns()))
		return;
	for (size_t i = 0; i < departed->count; i++)
		trees[i] = departed->groups[i].tree;
	/* Without memory for it the next one may do. */
	(void)frame_pruning_run(&bookkeeper->frames, trees, departed->count);
	forget_numbers(bookkeeper);
}

/* ---- adding up ---- */

static void note_tree_bytes(struct bookkeeper *bookkeeper)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < bookkeeper->departed.count; i++)
		bytes += calltree_bytes(bookkeeper->departed.groups[i].tree);
	atomic_store_explicit(&bookkeeper->tree_bytes, bytes, memory_order_relaxed);
}

static struct sum *find_sum(struct bookkeeper *bookkeeper, const struct order *order)
{
	struct sum *sum;

	LIST_FOREACH(sum, &bookkeeper->sums, sums)
	if (sum->order == order)
		return sum;
	return NULL;
}

static void free_sum(struct sum *sum)
{
	if (sum->tree)
		calltree_free(sum->tree);
	free(sum);
}

static void add_nodes(struct sum *sum, const struct calltree_node *nodes, uint32_t count)
{
	int without_room = sum->tree ? calltree_add(sum->tree, nodes, count) : -ENOMEM;

	sum->any = true;
	if (without_room < 0)
		sum->error = ORDER_E_NO_MEMORY;
	else
		sum->accounting.node_overflow += (unsigned)without_room;
}

static void note_begin(struct sum *sum, uint64_t begin_ns)
{
	if (begin_ns < sum->begin_ns)
		sum->begin_ns = begin_ns;
}

static void add_group(struct sum *sum, const struct departed_group *group)
{
	add_nodes(sum, calltree_nodes(group->tree), calltree_count(group->tree));
	accounting_add(&sum->accounting, &group->accounting);
	note_begin(sum, group->begin_ns);
}

static void add_window(struct sum *sum, const struct window *window)
{
	add_nodes(sum, window->tree.nodes, window->tree.count);
	accounting_add(&sum->accounting, &window->accounting);
	note_begin(sum, window->begin_ns);
	/* Where periods differ there is no one period to name but the finest. */
	if (!sum->period_ns || window->period_ns < sum->period_ns)
		sum->period_ns = window->period_ns;
}

/* What it did since the last reset stays part of its pool's profile. */
static void keep_departed(struct bookkeeper *bookkeeper, const struct window *window)
{
	struct departed_group *group =
		departed_group(&bookkeeper->departed, window->pool, window->uid, window->max_nodes);
	int without_room;

	if (!group)
		return;
	without_room = calltree_add(group->tree, window->tree.nodes, window->tree.count);
	accounting_add(&group->accounting, &window->accounting);
	group->accounting.node_overflow += without_room > 0 ? (unsigned)without_room : 0;
	if (window->begin_ns < group->begin_ns)
		group->begin_ns = window->begin_ns;
	note_tree_bytes(bookkeeper);
}

static void take_departed(struct bookkeeper *bookkeeper, const struct window *window)
{
	struct sum *sum;

	LIST_FOREACH(sum, &bookkeeper->sums, sums)
	if (window->serial > sum->last_serial &&
		order_asks_for(sum->order, window->pid, window->uid, window->pool))
		add_window(sum, window);
	keep_departed(bookkeeper, window);
}

static void take_window(struct bookkeeper *bookkeeper, struct window *window)
{
	struct sum *sum = window->order ? find_sum(bookkeeper, window->order) : NULL;
	uint32_t count = window->tree.count;
	int r;

	if (!atomic_load(&bookkeeper->stopping)) {
		r = renumbering_translate(
			&bookkeeper->of_sampler[window->sampler], &window->tree, bookkeeper->frames);
		if (r == 0)
			r = weighed_tree_settle(&window->tree);
		if (r == 0 && !window->order)
			take_departed(bookkeeper, window);
		if (r == 0 && sum)
			add_window(sum, window);
		if (r < 0 && sum)
			sum->error = ORDER_E_NO_MEMORY;
		if (sum)
			sum->last_serial = window->serial;
	}
	window_free(window);
	atomic_fetch_sub_explicit(&bookkeeper->held_nodes, count, memory_order_relaxed);
}

/* ---- orders ---- */

static void open_sum(struct bookkeeper *bookkeeper, struct sum *sum)
{
	LIST_INSERT_HEAD(&bookkeeper->sums, sum, sums);
	if (calltree_new(sum->max_nodes, &sum->tree) < 0)
		sum->error = ORDER_E_NO_MEMORY;
	for (size_t i = 0; i < bookkeeper->departed.count; i++) {
		const struct departed_group *group = &bookkeeper->departed.groups[i];

		if (!sum->order->pid && order_asks_for(sum->order, 0, group->uid, group->pool))
			add_group(sum, group);
	}
}

/* Neither targets nor what those that are gone have left. */
static void refuse(const struct bookkeeper *bookkeeper, struct order *order)
{
	const struct departed *departed = &bookkeeper->departed;

	for (size_t i = 0; order->pools && i < departed->count; i++)
		if (order->uid == ORDER_ANY_UID || order->uid == departed->groups[i].uid)
			pool_names_add(order->pools, departed->groups[i].pool);
	pool_names_refuse(order->pools, order);
}

static enum order_error make_profile(
	const struct bookkeeper *bookkeeper, const struct sum *sum, struct profile **ret_profile)
{
	struct profile *profile;

	if (sum->error != ORDER_OK)
		return sum->error;
	if (profile_from_calltree(sum->tree, bookkeeper->frames, &profile) < 0)
		return ORDER_E_NO_MEMORY;
	profile->accounting = sum->accounting;
	profile->period_ns = sum->period_ns ? sum->period_ns : sum->fallback_period_ns;
	profile->duration_ns = monotonic_now_ns() - sum->begin_ns;
	*ret_profile = profile;
	return ORDER_OK;
}

static void close_sum(struct bookkeeper *bookkeeper, struct order *order)
{
	struct sum *sum = find_sum(bookkeeper, order);

	if (order->error == ORDER_OK && !sum->any && (order->pid || order->pool[0]))
		refuse(bookkeeper, order);
	if (order->error == ORDER_OK)
		order->error = make_profile(bookkeeper, sum, &order->profile);
	LIST_REMOVE(sum, sums);
	free_sum(sum);
}

static void reset_departed(struct bookkeeper *bookkeeper, struct order *order)
{
	size_t forgotten = order->pid ? 0 : departed_reset(&bookkeeper->departed, order->pool);

	note_tree_bytes(bookkeeper);
	if (order->error == ORDER_OK && !order->affected && !forgotten && (order->pid || order->pool[0]))
		refuse(bookkeeper, order);
}

static void close_order(struct bookkeeper *bookkeeper, struct order *order)
{
	if (atomic_load(&bookkeeper->stopping))
		order->error = ORDER_E_STOPPING;
	if (order->verb == ORDER_PROFILE)
		close_sum(bookkeeper, order);
	else if (order->verb == ORDER_RESET)
		reset_departed(bookkeeper, order);
	else
		order_merge_units(order);
	order->message.kind = 0;
	mailbox_post(order->reply_to, &order->message);
}

static void settle(struct settlement *settlement)
{
	for (size_t i = 0; i < settlement->count; i++) {
		/* Whoever wants to see it tries again. */
		(void)unit_result_settle(settlement->units[i]);
		unit_result_free(settlement->units[i]);
	}
	free(settlement->units);
	free(settlement);
}

/* ---- the thread ---- */

/* False: this was the last one. */
static bool handle(struct bookkeeper *bookkeeper, struct message *mail)
{
	switch ((enum bookkeeper_message)mail->kind) {
	case BOOKKEEPER_OPEN:
		open_sum(bookkeeper, (struct sum *)mail);
		break;
	case BOOKKEEPER_WINDOW:
		take_window(bookkeeper, (struct window *)mail);
		break;
	case BOOKKEEPER_CLOSE:
		close_order(bookkeeper, (struct order *)mail);
		break;
	case BOOKKEEPER_SETTLE:
		settle((struct settlement *)mail);
		break;
	case BOOKKEEPER_STOP: /* not to be freed */
		return false;
	}
	return true;
}

bool bookkeeper_turn(struct bookkeeper *bookkeeper)
{
	struct message *mail = mailbox_take_all(bookkeeper->inbox);
	bool goes_on = true;

	while (mail) {
		struct message *next = mail->next;

		goes_on &= handle(bookkeeper, mail);
		mail = next;
	}
	prune_frames(bookkeeper);
	return goes_on;
}

void *bookkeeper_run(void *context)
{
	struct bookkeeper *bookkeeper = context;
	struct pollfd arrival = {.fd = mailbox_fd(bookkeeper->inbox), .events = POLLIN};

	pthread_setname_np(pthread_self(), "bookkeeper");
	while (bookkeeper_turn(bookkeeper))
		poll(&arrival, 1, -1);
	return NULL;
}

void bookkeeper_stop(struct bookkeeper *bookkeeper)
{
	atomic_store(&bookkeeper->stopping, true);
	mailbox_post(bookkeeper->inbox, &bookkeeper->stop);
}

void bookkeeper_free(struct bookkeeper *bookkeeper)
{
	if (bookkeeper->inbox) {
		atomic_store(&bookkeeper->stopping, true);
		bookkeeper_turn(bookkeeper);
		mailbox_free(bookkeeper->inbox);
	}
	departed_reset(&bookkeeper->departed, "");
	forget_numbers(bookkeeper);
	if (bookkeeper->frames)
		frame_table_free(bookkeeper->frames);
	free(bookkeeper);
}

/* ---- the samplers' side ---- */

int bookkeeper_open(struct bookkeeper *bookkeeper, struct order *order, const struct engine_options *options)
{
	struct sum *sum = calloc(1, sizeof(*sum));

	if (!sum)
		return -ENOMEM;
	sum->message.kind = BOOKKEEPER_OPEN;
	sum->order = order;
	sum->max_nodes = options->max_nodes;
	sum->fallback_period_ns = options->period_ns;
	sum->begin_ns = monotonic_now_ns();
	mailbox_post(bookkeeper->inbox, &sum->message);
	return 0;
}

void bookkeeper_add(struct bookkeeper *bookkeeper, struct window *window)
{
	atomic_fetch_add_explicit(&bookkeeper->held_nodes, window->tree.count, memory_order_relaxed);
	window->message.kind = BOOKKEEPER_WINDOW;
	mailbox_post(bookkeeper->inbox, &window->message);
}

void bookkeeper_close(struct bookkeeper *bookkeeper, struct order *order)
{
	order->message.kind = BOOKKEEPER_CLOSE;
	mailbox_post(bookkeeper->inbox, &order->message);
}

bool bookkeeper_is_behind(struct bookkeeper *bookkeeper)
{
	return atomic_load_explicit(&bookkeeper->held_nodes, memory_order_relaxed) > MOST_HELD_NODES;
}

void bookkeeper_settle(struct bookkeeper *bookkeeper, struct unit_result **units, size_t count)
{
	struct settlement *settlement = calloc(1, sizeof(*settlement));

	if (!settlement) {
		for (size_t i = 0; i < count; i++)
			unit_result_free(units[i]);
		free(units);
		return;
	}
	settlement->message.kind = BOOKKEEPER_SETTLE;
	settlement->units = units;
	settlement->count = count;
	mailbox_post(bookkeeper->inbox, &settlement->message);
}

uint64_t bookkeeper_tree_bytes(const struct bookkeeper *bookkeeper)
{
	return atomic_load_explicit(&bookkeeper->tree_bytes, memory_order_relaxed);
}
