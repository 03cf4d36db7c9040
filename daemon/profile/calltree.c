/* SPDX-License-Identifier: MIT
 *
 * The calltree is on the sampling path: each accepted sample descends it from the root to the leaf, up to
 * STACK_MAX_FRAMES steps. Two things make that cheap. Nodes lie in one array, found by a hash over (parent,
 * frame, line) with open addressing, no pointers and no allocation once it has grown. And the tree remembers
 * the path it descended last: stacks of successive samples share most of their outer frames. Where the reader
 * has found these unchanged, and the tree descended that very sample before, the descent begins where the
 * stacks part: the nodes above have left the caches long ago. Otherwise they are compared, one array element
 * after the other, and the hash is asked only below the point where they differ.
 *
 * Frames and lines come from another process. The hash is mixed with the tree's own address, which that
 * process doesn't know, so that it can't choose keys that collide. When the tree is full, time still has to
 * go somewhere: a part of the nodes is kept back for FRAME_OTHER, and should even those run out, the nearest
 * ancestor's FRAME_OTHER is used; the root's always fits.
 */
#include <errno.h>
#include <string.h>

#include "daemon/profile/calltree.h"
#include "daemon/profile/frame_table.h"

#define FIRST_ROOM 256u
/* Up to as many nodes are copied when they are taken, so that the tree keeps the memory it has grown to. */
#define MOST_COPIED 1024u
#define SLOT_EMPTY CALLTREE_NONE

struct calltree {
	struct calltree_node *nodes; /* node 0 is the root */
	uint32_t count, room, max_nodes;
	uint32_t *slots; /* node index or SLOT_EMPTY; at least twice as many as room */
	uint32_t slot_mask;
	uint64_t seed;

	/* The nodes of the stack descended last, below the root, outermost first. */
	uint32_t *path;
	size_t path_count, path_room;
	size_t path_outer;    /* so many of them are nodes of its outermost frames, without a gap */
	uint64_t path_serial; /* its number; 0: it has none */
};

static uint32_t power_of_two_from(uint32_t least)
{
	uint32_t power = 1;

	while (power < least)
		power *= 2;
	return power;
}

static uint32_t hash_key(const struct calltree *tree, uint32_t parent, uint32_t frame, uint32_t line)
{
	uint64_t hash = ((uint64_t)parent << 32 | frame) ^ tree->seed;

	/* The finaliser of splitmix64, with the line let in half-way. */
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9;
	hash += line;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111eb;
	return (uint32_t)(hash >> 32);
}

static bool is_key(const struct calltree_node *node, uint32_t parent, uint32_t frame, uint32_t line)
{
	return node->parent == parent && node->frame == frame && node->line == line;
}

/* The slot of a child, or the empty one where it belongs. */
static uint32_t *find_slot(const struct calltree *tree, uint32_t parent, uint32_t frame, uint32_t line)
{
	for (uint32_t i = hash_key(tree, parent, frame, line) & tree->slot_mask;;
		i = (i + 1) & tree->slot_mask) {
		uint32_t node = tree->slots[i];

		if (node == SLOT_EMPTY || is_key(&tree->nodes[node], parent, frame, line))
			return &tree->slots[i];
	}
}

static void clear_slots(struct calltree *tree)
{
	memset(tree->slots, 0xff, ((size_t)tree->slot_mask + 1) * sizeof(*tree->slots));
}

static void fill_slots(struct calltree *tree)
{
	clear_slots(tree);
	for (uint32_t i = CALLTREE_ROOT + 1; i < tree->count; i++) {
		const struct calltree_node *node = &tree->nodes[i];

		*find_slot(tree, node->parent, node->frame, node->line) = i;
	}
}

static uint32_t first_room(const struct calltree *tree)
{
	return tree->max_nodes < FIRST_ROOM ? tree->max_nodes : FIRST_ROOM;
}

static int set_room(struct calltree *tree, uint32_t room)
{
	uint32_t slot_count = power_of_two_from(room * 2);
	struct calltree_node *nodes = realloc(tree->nodes, room * sizeof(*nodes));

	if (!nodes)
		return -ENOMEM;
	tree->nodes = nodes;
	uint32_t *slots = malloc(slot_count * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(tree->slots);
	tree->slots = slots;
	tree->slot_mask = slot_count - 1;
	tree->room = room;
	fill_slots(tree);
	return 0;
}

int calltree_new(uint32_t max_nodes, struct calltree **ret_tree)
{
	if (max_nodes < CALLTREE_MIN_NODES || max_nodes > CALLTREE_MAX_NODES)
		return -EINVAL;

	_cleanup_(calltree_freep) struct calltree *tree = calloc(1, sizeof(*tree));
	if (!tree)
		return -ENOMEM;
	tree->max_nodes = max_nodes;
	tree->seed = (uint64_t)(uintptr_t)tree * 0x9e3779b97f4a7c15;
	int r = set_room(tree, first_room(tree));
	if (r < 0)
		return r;
	calltree_clear(tree);
	*ret_tree = TAKE(tree);
	return 0;
}

void calltree_free(struct calltree *tree)
{
	free(tree->nodes);
	free(tree->slots);
	free(tree->path);
	free(tree);
}

void calltree_clear(struct calltree *tree)
{
	clear_slots(tree);
	tree->nodes[CALLTREE_ROOT] = (struct calltree_node){.parent = CALLTREE_NONE, .frame = FRAME_ROOT};
	tree->count = 1;
	tree->path_count = tree->path_outer = 0;
	tree->path_serial = 0;
}

static int copy_nodes(struct calltree *tree, struct calltree_node **ret_nodes)
{
	size_t bytes = tree->count * sizeof(*tree->nodes);
	struct calltree_node *nodes = malloc(bytes);

	if (!nodes)
		return -ENOMEM;
	*ret_nodes = memcpy(nodes, tree->nodes, bytes);
	return 0;
}

/* Leaves the tree as small as a new one. */
static int give_nodes_away(struct calltree *tree, struct calltree_node **ret_nodes)
{
	struct calltree grown = *tree;
	int r;

	tree->nodes = NULL;
	tree->slots = NULL;
	tree->count = 0;
	r = set_room(tree, first_room(tree));
	if (r < 0) {
		free(tree->nodes);
		*tree = grown;
		return r;
	}
	free(grown.slots);
	*ret_nodes = grown.nodes;
	return 0;
}

int calltree_take_nodes(struct calltree *tree, struct calltree_node **ret_nodes, uint32_t *ret_count)
{
	uint32_t count = tree->count;
	int r = count <= MOST_COPIED ? copy_nodes(tree, ret_nodes) : give_nodes_away(tree, ret_nodes);

	if (r < 0)
		return r;
	*ret_count = count;
	calltree_clear(tree);
	return 0;
}

void calltree_renumber_frames(struct calltree *tree, const uint32_t *numbers)
{
	for (uint32_t i = 0; i < tree->count; i++)
		tree->nodes[i].frame = numbers[tree->nodes[i].frame];
	fill_slots(tree);
	tree->path_serial = 0;
}

/* Adds what find_slot() did not find. @spare nodes must still fit afterwards. CALLTREE_NONE: no room. */
static uint32_t add_node(
	struct calltree *tree, uint32_t parent, uint32_t frame, uint32_t line, uint32_t spare)
{
	if (tree->max_nodes - tree->count <= spare)
		return CALLTREE_NONE;
	/* One place is always left, so that the root's <other> needs no memory when there is none. */
	bool last_resort = parent == CALLTREE_ROOT && frame == FRAME_OTHER;
	if (tree->room - tree->count < (last_resort ? 1 : 2)) {
		uint32_t room = tree->room > tree->max_nodes / 2 ? tree->max_nodes : tree->room * 2;

		if (room == tree->room || set_room(tree, room) < 0)
			return CALLTREE_NONE;
	}
	uint32_t node = tree->count++;
	tree->nodes[node] = (struct calltree_node){.parent = parent, .frame = frame, .line = line};
	*find_slot(tree, parent, frame, line) = node;
	return node;
}

static uint32_t other_child(struct calltree *tree, uint32_t parent)
{
	for (;; parent = tree->nodes[parent].parent) {
		uint32_t node = *find_slot(tree, parent, FRAME_OTHER, 0);

		if (node == SLOT_EMPTY)
			node = add_node(tree, parent, FRAME_OTHER, 0, parent == CALLTREE_ROOT ? 0 : 1);
		if (node != CALLTREE_NONE)
			return node;
	}
}

uint32_t calltree_child(
	struct calltree *tree, uint32_t parent, uint32_t frame, uint32_t line, bool *ret_overflow)
{
	uint32_t node = *find_slot(tree, parent, frame, line);

	if (node == SLOT_EMPTY)
		node = add_node(tree, parent, frame, line, CALLTREE_RESERVE(tree->max_nodes));
	*ret_overflow = node == CALLTREE_NONE;
	return node != CALLTREE_NONE ? node : other_child(tree, parent);
}

/* Room in the remembered path for @depth steps. Without memory the path is merely not remembered further. */
static void reserve_path(struct calltree *tree, size_t depth)
{
	if (depth <= tree->path_room)
		return;
	uint32_t *path = realloc(tree->path, depth * 2 * sizeof(*path));
	if (path) {
		tree->path = path;
		tree->path_room = depth * 2;
	}
}

/* A descent under way. */
struct descent {
	uint32_t node;
	size_t depth;
	bool on_last_path;
	bool overflow;
};

static inline void step(struct calltree *tree, struct descent *descent, uint32_t frame, uint32_t line)
{
	if (descent->overflow)
		return;
	if (descent->on_last_path) {
		if (descent->depth < tree->path_count) {
			uint32_t node = tree->path[descent->depth];

			if (is_key(&tree->nodes[node], descent->node, frame, line)) {
				descent->node = node;
				descent->depth++;
				return;
			}
		}
		descent->on_last_path = false;
	}
	descent->node = calltree_child(tree, descent->node, frame, line, &descent->overflow);
	if (descent->depth < tree->path_room)
		tree->path[descent->depth++] = descent->node;
}

/* How many of the stack's outermost frames are known to have the nodes that the path has. */
static size_t known_outer(const struct calltree *tree, const struct calltree_stack *stack)
{
	size_t known = stack->same_outer < stack->outer ? stack->same_outer : stack->outer;

	if (stack->since == 0 || stack->since != tree->path_serial)
		return 0;
	return known < tree->path_outer ? known : tree->path_outer;
}

uint32_t calltree_descend(struct calltree *tree, const struct calltree_stack *stack, bool *ret_overflow)
{
	size_t known = known_outer(tree, stack);
	struct descent descent = {
		.node = known > 0 ? tree->path[known - 1] : CALLTREE_ROOT,
		.depth = known,
		.on_last_path = true,
	};

	reserve_path(tree, stack->inner + stack->outer + 1);
	for (size_t i = known + 1; i <= stack->outer; i++)
		step(tree, &descent, stack->frames[stack->count - i].name_id,
			stack->frames[stack->count - i].line);
	tree->path_outer = descent.overflow ? 0 : descent.depth;
	if (stack->truncated)
		step(tree, &descent, FRAME_TRUNCATED, 0);
	for (size_t i = stack->inner; i-- > 0;)
		step(tree, &descent, stack->frames[i].name_id, stack->frames[i].line);
	tree->path_count = descent.depth;
	tree->path_serial = stack->serial;
	*ret_overflow = descent.overflow;
	return descent.node;
}

struct calltree_node *calltree_node(struct calltree *tree, uint32_t node)
{
	return &tree->nodes[node];
}

const struct calltree_node *calltree_nodes(const struct calltree *tree)
{
	return tree->nodes;
}

uint32_t calltree_count(const struct calltree *tree)
{
	return tree->count;
}

size_t calltree_bytes(const struct calltree *tree)
{
	return sizeof(*tree) + tree->room * sizeof(*tree->nodes) +
	       ((size_t)tree->slot_mask + 1) * sizeof(*tree->slots) + tree->path_room * sizeof(*tree->path);
}

static void add_figures(struct calltree_node *sum, const struct calltree_node *node)
{
	sum->samples += node->samples;
	sum->line_approximate_samples += node->line_approximate_samples;
	sum->wall_ns += node->wall_ns;
	sum->cpu_ns += node->cpu_ns;
	sum->queue_ns += node->queue_ns;
}

struct calltree_node calltree_sum(const struct calltree *tree)
{
	struct calltree_node sum = {.parent = CALLTREE_NONE, .frame = FRAME_ROOT};

	for (uint32_t i = 0; i < tree->count; i++)
		add_figures(&sum, &tree->nodes[i]);
	return sum;
}

int calltree_add(struct calltree *into, const struct calltree_node *nodes, uint32_t count)
{
	_cleanup_free_ uint32_t *places = malloc(count * sizeof(*places));
	int without_room = 0;

	if (!places)
		return -ENOMEM;
	places[0] = CALLTREE_ROOT;
	for (uint32_t i = 0; i < count; i++) {
		bool overflow = false;

		if (i > 0)
			places[i] = calltree_child(
				into, places[nodes[i].parent], nodes[i].frame, nodes[i].line, &overflow);
		without_room += overflow;
		add_figures(calltree_node(into, places[i]), &nodes[i]);
	}
	return without_room;
}
