/* SPDX-License-Identifier: MIT
 *
 * Words out of bytes that came from another process, and what an address there can be.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "symbols/memory.h"

/* x86-64 user space with four-level page tables; the lowest page is never mapped (vm.mmap_min_addr). */
#define USER_SPACE_FIRST UINT64_C(0x1000)
#define USER_SPACE_END UINT64_C(0x800000000000)

static inline uint8_t load_u8(const void *at)
{
	return *(const uint8_t *)at;
}

static inline uint32_t load_u32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline uint64_t load_u64(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Can one of PHP's structures be there? They are all aligned to 8 bytes. */
static inline bool plausible_address(remote_addr addr)
{
	return addr >= USER_SPACE_FIRST && addr < USER_SPACE_END && addr % 8 == 0;
}
