/* SPDX-License-Identifier: MIT
 *
 * A list of chunks, of which there is one in steady state. When an instant needed more, the next reset puts
 * one chunk of the sum in their place.
 */
#include "reader/arena.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/* Resets between two looks at whether the arena is far too large. */
#define SHRINK_INTERVAL 256
#define MIN_CHUNK_BYTES ((size_t)4096)
/* Below this it is never too large. */
#define KEEP_BYTES (8 * MIN_CHUNK_BYTES)

struct arena_chunk {
	struct arena_chunk *next;
	size_t capacity, used;
	uint8_t bytes[] __attribute__((aligned(8)));
};

void arena_deinit(struct arena *arena)
{
	while (arena->chunks) {
		struct arena_chunk *next = arena->chunks->next;

		free(arena->chunks);
		arena->chunks = next;
	}
}

static int add_chunk(struct arena *arena, size_t capacity)
{
	struct arena_chunk *chunk = malloc(sizeof(*chunk) + capacity);

	if (!chunk)
		return -ENOMEM;
	chunk->capacity = capacity;
	chunk->used = 0;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	return 0;
}

int arena_reset(struct arena *arena, size_t bytes)
{
	size_t used = bytes, capacity = 0;
	bool oversized = false;

	for (const struct arena_chunk *chunk = arena->chunks; chunk; chunk = chunk->next) {
		used += chunk->used;
		capacity += chunk->capacity;
	}
	if (used > arena->peak_bytes)
		arena->peak_bytes = used;
	if (++arena->resets % SHRINK_INTERVAL == 0) {
		oversized = capacity > KEEP_BYTES && arena->peak_bytes < capacity / 4;
		arena->peak_bytes = used;
	}
	if (arena->chunks && !arena->chunks->next && arena->chunks->capacity >= bytes && !oversized) {
		arena->chunks->used = 0;
		return 0;
	}
	arena_deinit(arena);
	return add_chunk(arena, arena->peak_bytes + MIN_CHUNK_BYTES);
}

void *arena_take(struct arena *arena, size_t bytes)
{
	struct arena_chunk *chunk = arena->chunks;

	if (!chunk || chunk->capacity - chunk->used < bytes) {
		if (add_chunk(arena, bytes > MIN_CHUNK_BYTES ? bytes : MIN_CHUNK_BYTES) < 0)
			return NULL;
		chunk = arena->chunks;
	}
	chunk->used += bytes;
	return chunk->bytes + chunk->used - bytes;
}
