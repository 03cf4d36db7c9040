/* SPDX-License-Identifier: MIT
 *
 * A fake address space: a handful of byte arrays at chosen addresses, with unmapped memory all around them,
 * read by the same rules as process_vm_readv(). For tests of what interprets memory.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "reader/view.h"

#define FAKE_MAX_REGIONS 64
#define FAKE_MAX_SPANS 1024

struct fake_region {
	remote_addr addr;
	size_t bytes;
	uint8_t *data;
};

struct fake_memory {
	struct fake_region regions[FAKE_MAX_REGIONS];
	size_t count;
	unsigned calls;    /* of fake_read() */
	size_t last_spans; /* of its last call */
	remote_addr last_addrs[FAKE_MAX_SPANS];
	void (*move)(struct fake_memory *memory,
		size_t span); /* called before each span is copied: the target runs */
	void *mover;
};

/* Maps @bytes of zeroes at @addr. */
static inline uint8_t *fake_map(struct fake_memory *memory, remote_addr addr, size_t bytes)
{
	struct fake_region *region = &memory->regions[memory->count++];

	if (memory->count > FAKE_MAX_REGIONS)
		abort();
	*region = (struct fake_region){.addr = addr, .bytes = bytes, .data = calloc(1, bytes)};
	return region->data;
}

static inline void fake_unmap(struct fake_memory *memory, remote_addr addr)
{
	for (size_t i = 0; i < memory->count; i++) {
		if (memory->regions[i].addr != addr)
			continue;
		free(memory->regions[i].data);
		memory->regions[i] = memory->regions[--memory->count];
		return;
	}
	abort();
}

static inline void fake_free(struct fake_memory *memory)
{
	for (size_t i = 0; i < memory->count; i++)
		free(memory->regions[i].data);
	memset(memory, 0, sizeof(*memory));
}

/* The byte at @addr, of which @bytes must be mapped in one region; NULL else. */
static inline uint8_t *fake_at(const struct fake_memory *memory, remote_addr addr, size_t bytes)
{
	for (size_t i = 0; i < memory->count; i++) {
		const struct fake_region *region = &memory->regions[i];

		if (addr >= region->addr && bytes <= region->bytes &&
			addr - region->addr <= region->bytes - bytes)
			return region->data + (addr - region->addr);
	}
	return NULL;
}

static inline void fake_put(struct fake_memory *memory, remote_addr addr, const void *bytes, size_t count)
{
	uint8_t *at = fake_at(memory, addr, count);

	if (!at)
		abort(); /* a mistake of the test */
	memcpy(at, bytes, count);
}

static inline void fake_put64(struct fake_memory *memory, remote_addr addr, uint64_t value)
{
	fake_put(memory, addr, &value, sizeof(value));
}

static inline void fake_put32(struct fake_memory *memory, remote_addr addr, uint32_t value)
{
	fake_put(memory, addr, &value, sizeof(value));
}

static inline void fake_put8(struct fake_memory *memory, remote_addr addr, uint8_t value)
{
	fake_put(memory, addr, &value, sizeof(value));
}

/* A view_read_fn. */
static inline int fake_read(void *context, const struct remote_span *spans, size_t count, size_t *ret_failed)
{
	struct fake_memory *memory = context;

	memory->calls++;
	memory->last_spans = count;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *from;

		memory->last_addrs[i] = spans[i].addr;
		if (memory->move)
			memory->move(memory, i);
		from = fake_at(memory, spans[i].addr, spans[i].bytes);
		if (!from) {
			*ret_failed = i;
			return REMOTE_E_FAULT;
		}
		memcpy(spans[i].into, from, spans[i].bytes);
	}
	return 0;
}
