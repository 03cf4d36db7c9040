/* SPDX-License-Identifier: MIT
 *
 * Fuzzes ELF images: the same bytes as a file, and as the memory of a process that has it loaded. Seeds are
 * small shared objects (`gcc -shared -nostdlib`).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "symbols/elf_image.h"

/* Where the bytes are in the made-up memory. */
#define BASE 0x10000000
/* Larger than any seed: what libFuzzer appends beyond that tells nothing new. */
#define MAX_BYTES (1u << 20)

struct input {
	const uint8_t *data;
	size_t bytes;
};

/* Memory behind the input reads as zero up to MAX_BYTES, as .bss does. */
static int read_input(void *context, remote_addr addr, void *into, size_t bytes)
{
	const struct input *input = context;
	uint64_t offset = addr - BASE;

	if (addr < BASE || offset > MAX_BYTES || bytes > MAX_BYTES - offset)
		return 1;
	memset(into, 0, bytes);
	if (offset < input->bytes)
		memcpy(into, input->data + offset,
			bytes < input->bytes - offset ? bytes : input->bytes - offset);
	return 0;
}

static void use(const struct elf_image *image)
{
	static const char *const names[] = {"executor_globals", "number", "a", ""};
	static const char text[] = "2000-3000 r-xp 00000000 08:01 7 /a\n3000-4000 rw-p 00001000 08:01 7 /a\n";
	_cleanup_(procmap_freep) struct procmap *maps = NULL;
	uint64_t value, bytes;
	char into[32];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (elf_image_symbol(image, names[i], &value, &bytes) == 0)
			elf_image_bytes(image, value, into, sizeof(into));
	elf_image_find(image, "X-Powered-By: PHP/", into, sizeof(into));
	if (strlen(elf_image_build_id(image)) >= ELF_IMAGE_MAX_BUILD_ID ||
		procmap_parse(text, strlen(text), &maps) != 0)
		abort();
	elf_image_load_bias(image, maps, &maps->mappings[1], &value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	_cleanup_(elf_image_freep) struct elf_image *file = NULL, *loaded = NULL;
	_cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct input input = {data, bytes};
	struct memory memory = {read_input, &input};

	if (fd < 0 || bytes > MAX_BYTES || write(fd, data, bytes) != (ssize_t)bytes)
		return 0;
	if (elf_image_open(fd, &file) == 0)
		use(file);
	if (elf_image_open_memory(&memory, BASE, &loaded) == 0)
		use(loaded);
	return 0;
}
