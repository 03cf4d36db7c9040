/* SPDX-License-Identifier: MIT
 *
 * alloc_globals and gc_globals are static in their .c files, and release binaries are stripped. But two
 * exported functions return a field of theirs, and compile to a single load from an address relative to the
 * instruction, AG(mm_heap) and GC_G(gc_enabled):
 *
 *	zend_mm_get_heap	[endbr64] 48 8b 05 disp32 c3	mov disp32(%rip),%rax; ret
 *	gc_enabled		[endbr64] 0f b6 05 disp32 c3	movzbl disp32(%rip),%eax; ret
 *
 * (php-src Zend/zend_alloc.c and Zend/zend_gc.c, 7.4 to 8.6, with gcc and clang.) A function of any other
 * shape is not guessed at, and what was decoded must look like the variable it should be: PHP's counters are
 * worth having, but not worth being wrong.
 */
#include "symbols/php_accessors.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

/* zend_gc_globals (Zend/zend_gc.c): "gc_root_buffer *buf; bool gc_enabled; bool gc_active; bool gc_protected;
 * bool gc_full;" begin it, 7.4 to 8.6. In 7.4 the bools are zend_bool, a byte too. */
#define GC_ENABLED_OFFSET 8
#define GC_FLAGS 4

/* ZEND_MM_CHUNK_SIZE (Zend/zend_alloc_sizes.h): chunks are aligned to it, and the heap is in the first of
 * them. */
#define MM_CHUNK_BYTES (UINT64_C(2) << 20)

static const unsigned char endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
static const unsigned char load_pointer[] = {0x48, 0x8b, 0x05};
static const unsigned char load_byte[] = {0x0f, 0xb6, 0x05};
#define OPCODE_BYTES sizeof(load_pointer)
#define RET 0xc3

/* The address that the exported function @name loads from and returns, or 0. */
static remote_addr decode(
	const struct elf_image *image, uint64_t bias, const char *name, const unsigned char *opcode)
{
	unsigned char code[sizeof(endbr64) + OPCODE_BYTES + sizeof(int32_t) + 1];
	uint64_t value, bytes;
	const unsigned char *at = code;
	int32_t displacement;

	if (elf_image_symbol(image, name, &value, &bytes) != 0 ||
		elf_image_bytes(image, value, code, sizeof(code)) != 0)
		return 0;
	if (memcmp(at, endbr64, sizeof(endbr64)) == 0)
		at += sizeof(endbr64);
	if (memcmp(at, opcode, OPCODE_BYTES) != 0 || at[OPCODE_BYTES + sizeof(displacement)] != RET)
		return 0;
	memcpy(&displacement, at + OPCODE_BYTES, sizeof(displacement));
	at += OPCODE_BYTES + sizeof(displacement);
	return bias + value + (uint64_t)(at - code) + (uint64_t)(int64_t)displacement;
}

static bool is_variable(const struct procmap *maps, remote_addr addr)
{
	const struct mapping *mapping = procmap_find(maps, addr);

	return mapping && mapping->readable && mapping->writable;
}

remote_addr php_accessors_mm_heap_pointer(
	const struct elf_image *image, uint64_t bias, const struct memory *memory, const struct procmap *maps)
{
	remote_addr variable = decode(image, bias, "zend_mm_get_heap", load_pointer), heap, first_word;

	if (!variable || variable % 8 || !is_variable(maps, variable) ||
		memory_read(memory, variable, &heap, sizeof(heap)) != 0)
		return 0;
	/* A chunk begins with the address of its heap. Not so with USE_ZEND_ALLOC=0, whose heap counts
	 * nothing. */
	if (!heap || heap % 8 ||
		memory_read(memory, heap & ~(MM_CHUNK_BYTES - 1), &first_word, sizeof(first_word)) != 0 ||
		first_word != heap)
		return 0;
	return variable;
}

remote_addr php_accessors_gc_globals(
	const struct elf_image *image, uint64_t bias, const struct memory *memory, const struct procmap *maps)
{
	remote_addr flags = decode(image, bias, "gc_enabled", load_byte), globals = flags - GC_ENABLED_OFFSET;
	unsigned char values[GC_FLAGS];

	if (!flags || globals % 8 || !is_variable(maps, globals) ||
		memory_read(memory, flags, values, sizeof(values)) != 0)
		return 0;
	for (int i = 0; i < GC_FLAGS; i++)
		if (values[i] > 1)
			return 0;
	return globals;
}
