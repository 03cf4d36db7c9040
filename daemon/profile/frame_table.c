/* SPDX-License-Identifier: MIT
 *
 * Frames by content. A frame is looked up by the hash of (name, file, declaration line) in an open-addressing
 * table of numbers; entry and text lie together in chunks that are never moved, and the entries' addresses in
 * an array as large as it may ever be (of which the kernel gives what is used). So what frame_table_get()
 * gave stays valid while the table grows, and can be asked for meanwhile by other threads: a number that has
 * travelled to them was in its place before it did.
 *
 * The names come from other processes' memory, so both bounds are hard: past them every new frame is
 * FRAME_OTHER, and counted. The fixed frames are in the table like any other: a frame that is called
 * "<unread>" and has no file *is* FRAME_UNREAD, wherever it was named.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/profile/frame_table.h"

#define CHUNK_BYTES ((size_t)64 * 1024)
#define FIRST_SLOTS 1024u

struct entry {
	struct function_name name;
	uint64_t hash;
};

struct chunk {
	struct chunk *next;
	size_t used;
	size_t room;
	_Alignas(struct entry) char bytes[];
};

struct frame_table {
	_Atomic unsigned references;
	uint32_t max_frames;
	size_t max_bytes;

	struct entry **entries; /* by number; room for max_frames */
	_Atomic uint32_t count;

	uint32_t *slots; /* number + 1; 0: empty */
	uint32_t slot_count;

	struct chunk *chunks; /* newest first */
	size_t chunk_bytes;   /* of all chunks */
	uint64_t overflows;
};

static const char *const fixed_names[FRAME_FIRST_PHP] = {
	[FRAME_ROOT] = "{root}",
	[FRAME_TORN] = "<torn>",
	[FRAME_UNREAD] = "<unread>",
	[FRAME_ENGINE] = "<engine>",
	[FRAME_TRUNCATED] = "<truncated>",
	[FRAME_OTHER] = "<other>",
};

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (const unsigned char *byte = (const unsigned char *)text; *byte; byte++)
		hash = (hash ^ *byte) * 0x100000001b3;
	return hash * 0x9e3779b97f4a7c15; /* ends the field: ("ab", "c") is not ("a", "bc") */
}

static uint64_t hash_frame(const struct function_name *name)
{
	uint64_t hash = hash_text(hash_text(0xcbf29ce484222325, name->name), name->file);

	hash = (hash ^ name->line) * 0xff51afd7ed558ccd;
	return hash ^ hash >> 32;
}

static bool same_frame(const struct function_name *a, const struct function_name *b)
{
	return a->line == b->line && strcmp(a->name, b->name) == 0 && strcmp(a->file, b->file) == 0;
}

/* The slot that holds the frame's number, or the empty one where it belongs. */
static uint32_t *find_slot(const struct frame_table *table, const struct function_name *name, uint64_t hash)
{
	uint32_t mask = table->slot_count - 1;

	for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
		uint32_t number = table->slots[i];

		if (number == 0)
			return &table->slots[i];
		const struct entry *entry = table->entries[number - 1];
		if (entry->hash == hash && same_frame(&entry->name, name))
			return &table->slots[i];
	}
}

/* Puts that many empty slots in place of those there were. */
static int make_slots(struct frame_table *table, uint32_t slot_count)
{
	uint32_t *slots = calloc(slot_count, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	free(table->slots);
	table->slots = slots;
	table->slot_count = slot_count;
	return 0;
}

static int grow_slots(struct frame_table *table, uint32_t slot_count)
{
	int r = make_slots(table, slot_count);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < table->count; i++)
		*find_slot(table, &table->entries[i]->name, table->entries[i]->hash) = i + 1;
	return 0;
}

static void *take_bytes(struct frame_table *table, size_t bytes)
{
	bytes = (bytes + _Alignof(struct entry) - 1) & ~(_Alignof(struct entry) - 1);
	struct chunk *chunk = table->chunks;
	if (!chunk || chunk->room - chunk->used < bytes) {
		size_t room = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

		if (table->chunk_bytes + room > table->max_bytes)
			return NULL;
		chunk = malloc(sizeof(*chunk) + room);
		if (!chunk)
			return NULL;
		chunk->next = table->chunks;
		chunk->used = 0;
		chunk->room = room;
		table->chunks = chunk;
		table->chunk_bytes += room;
	}
	void *taken = chunk->bytes + chunk->used;
	chunk->used += bytes;
	return taken;
}

static int add_frame(struct frame_table *table, const struct function_name *name, uint64_t hash)
{
	size_t name_bytes = strlen(name->name) + 1, file_bytes = strlen(name->file) + 1;
	const char *file = NULL;
	int r;

	/* At most two thirds full. */
	if (table->count * 3 >= table->slot_count * 2 && (r = grow_slots(table, table->slot_count * 2)) < 0)
		return r;

	/* Functions are met file by file: sharing the text with the frame before saves most of the copies. */
	if (table->count > 0 && strcmp(table->entries[table->count - 1]->name.file, name->file) == 0) {
		file = table->entries[table->count - 1]->name.file;
		file_bytes = 0;
	}
	struct entry *entry = take_bytes(table, sizeof(*entry) + name_bytes + file_bytes);
	if (!entry)
		return -ENOMEM;
	char *text = (char *)(entry + 1);
	memcpy(text, name->name, name_bytes);
	if (!file) {
		memcpy(text + name_bytes, name->file, file_bytes);
		file = text + name_bytes;
	}
	entry->name = (struct function_name){
		.name = text,
		.file = file,
		.line = name->line,
		.kind = name->kind,
	};
	entry->hash = hash;
	table->entries[table->count] = entry;
	*find_slot(table, &entry->name, hash) = ++table->count;
	return 0;
}

static int add_fixed_frames(struct frame_table *table)
{
	for (uint32_t id = 0; id < FRAME_FIRST_PHP; id++) {
		struct function_name name = {.name = fixed_names[id], .file = "", .kind = FUNCTION_INTERNAL};
		int r = add_frame(table, &name, hash_frame(&name));

		if (r < 0)
			return r;
	}
	return 0;
}

int frame_table_new(uint32_t max_frames, size_t max_bytes, struct frame_table **ret_table)
{
	_cleanup_(frame_table_freep) struct frame_table *table = calloc(1, sizeof(*table));
	int r;

	if (!table)
		return -ENOMEM;
	atomic_init(&table->references, 1);
	table->max_bytes = max_bytes > CHUNK_BYTES ? max_bytes : CHUNK_BYTES;
	/* As many as there is room for. */
	if (max_frames > table->max_bytes / sizeof(struct entry))
		max_frames = (uint32_t)(table->max_bytes / sizeof(struct entry));
	table->max_frames = max_frames > FRAME_FIRST_PHP ? max_frames : FRAME_FIRST_PHP;
	table->entries = calloc(table->max_frames, sizeof(struct entry *));
	if (!table->entries)
		return -ENOMEM;
	r = make_slots(table, FIRST_SLOTS);
	if (r < 0)
		return r;
	r = add_fixed_frames(table);
	if (r < 0)
		return r;
	*ret_table = TAKE(table);
	return 0;
}

static void free_chunks(struct frame_table *table)
{
	while (table->chunks) {
		struct chunk *chunk = table->chunks;

		table->chunks = chunk->next;
		free(chunk);
	}
	table->chunk_bytes = 0;
}

struct frame_table *frame_table_ref(struct frame_table *table)
{
	atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
	return table;
}

void frame_table_free(struct frame_table *table)
{
	if (atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) > 1)
		return;
	free_chunks(table);
	free(table->entries);
	free(table->slots);
	free(table);
}

uint32_t frame_table_intern(struct frame_table *table, const struct function_name *name)
{
	uint64_t hash = hash_frame(name);
	uint32_t number = *find_slot(table, name, hash);

	if (number > 0)
		return number - 1;
	if (table->count >= table->max_frames || add_frame(table, name, hash) < 0) {
		table->overflows++;
		return FRAME_OTHER;
	}
	return table->count - 1;
}

const struct function_name *frame_table_get(const struct frame_table *table, uint32_t id)
{
	return &table->entries[id < table->count ? id : FRAME_OTHER]->name;
}

int frame_table_prune(const struct frame_table *table, uint32_t *numbers, struct frame_table **ret_pruned)
{
	_cleanup_(frame_table_freep) struct frame_table *pruned = NULL;
	int r = frame_table_new(table->max_frames, table->max_bytes, &pruned);

	if (r < 0)
		return r;
	for (uint32_t id = FRAME_FIRST_PHP; id < table->count; id++)
		if (numbers[id])
			frame_table_intern(pruned, &table->entries[id]->name);
	if (pruned->overflows)
		return -ENOMEM;
	for (uint32_t id = 0, next = FRAME_FIRST_PHP; id < table->count; id++)
		numbers[id] = id < FRAME_FIRST_PHP ? id : numbers[id] ? next++ : 0;
	pruned->overflows = table->overflows;
	*ret_pruned = TAKE(pruned);
	return 0;
}

uint32_t frame_table_count(const struct frame_table *table)
{
	return table->count;
}

size_t frame_table_bytes(const struct frame_table *table)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the entries are pointers, into the chunks */
	return sizeof(*table) + table->chunk_bytes + table->count * sizeof(*table->entries) +
	       table->slot_count * sizeof(*table->slots);
}

uint64_t frame_table_overflows(const struct frame_table *table)
{
	return table->overflows;
}
