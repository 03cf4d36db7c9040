/* SPDX-License-Identifier: MIT
 *
 * ELF files, as far as a profiler needs them: program headers (by libelf), dynamic section, build id. An
 * image is a way to read bytes at a virtual address of the file; all else is built on that. Two ways exist:
 * from the file, and from the memory of a process that has it loaded. Both go through the same bounds.
 *
 * The file is read with pread, never mapped, although mapping would be a little faster: a file that is
 * truncated while it is mapped kills the one who looks at it with SIGBUS, and here anyone who may be profiled
 * could do that. Little is read: the headers, and per symbol a few words (elf_symbols.c), none of which is
 * kept.
 */
#include "symbols/elf_image.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/elf_symbols.h"

/* Mappings begin at pages, whatever a segment's p_align says. */
#define PAGE_BYTES UINT64_C(4096)
/* Read at a time by elf_image_find(). */
#define FIND_BLOCK_BYTES 65536
/* Longest text, with what follows it, that elf_image_find() handles. */
#define FIND_MAX_BYTES 256
/* Searched by elf_image_find() in all: PHP has 5 to 30 MiB. */
#define FIND_MAX_SEARCHED_BYTES (UINT64_C(128) << 20)

struct segment {
	uint64_t file_offset, value, file_bytes, memory_bytes;
	bool writable;
};

struct elf_image {
	int fd;                      /* from a file; else -1 */
	const struct memory *memory; /* from a process's memory; else NULL */
	uint64_t memory_bias;        /* what to add to a value there */

	struct segment segments[ELF_IMAGE_MAX_SEGMENTS];
	size_t segment_count;
	uint64_t dynamic_value, dynamic_bytes;
	struct elf_symbol_tables tables;
	char build_id[ELF_IMAGE_MAX_BUILD_ID];
};

static uint64_t page_of(uint64_t addr)
{
	return addr & ~(PAGE_BYTES - 1);
}

/* The loaded segment that holds all @bytes at @value, or NULL. What a file image can give ends with the
 * file's part of a segment; in memory the zeroed rest (.bss) is there too. */
static const struct segment *find_segment(const struct elf_image *image, uint64_t value, uint64_t bytes)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct segment *segment = &image->segments[i];
		uint64_t size = image->memory ? segment->memory_bytes : segment->file_bytes;

		if (value >= segment->value && value - segment->value <= size &&
			bytes <= size - (value - segment->value))
			return segment;
	}
	return NULL;
}

/* Is @value an address of the loaded file, .bss included? */
static bool value_is_loaded(const struct elf_image *image, uint64_t value)
{
	for (size_t i = 0; i < image->segment_count; i++)
		if (value >= image->segments[i].value &&
			value - image->segments[i].value < image->segments[i].memory_bytes)
			return true;
	return false;
}

int elf_image_bytes(const struct elf_image *image, uint64_t value, void *into, size_t bytes)
{
	const struct segment *segment = find_segment(image, value, bytes);
	ssize_t got;

	if (!segment)
		return ELF_IMAGE_E_MALFORMED;
	if (image->memory) {
		int r = memory_read(image->memory, image->memory_bias + value, into, bytes);

		return r > 0 ? ELF_IMAGE_E_MALFORMED : r;
	}
	got = pread(image->fd, into, bytes, (off_t)(segment->file_offset + (value - segment->value)));
	if (got < 0)
		return -errno;
	return (size_t)got == bytes ? 0 : ELF_IMAGE_E_MALFORMED;
}

static bool segment_is_sane(const GElf_Phdr *header)
{
	return header->p_filesz <= header->p_memsz && header->p_vaddr <= UINT64_MAX / 2 &&
	       header->p_memsz <= UINT64_MAX / 4 && header->p_offset <= INT64_MAX / 2 &&
	       header->p_filesz <= INT64_MAX / 2 &&
	       header->p_offset % PAGE_BYTES == header->p_vaddr % PAGE_BYTES;
}

/* Takes down segments and the dynamic section's place. @elf may be of the file or of a copy of its first
 * page. */
static int read_program_headers(struct elf_image *image, Elf *elf)
{
	size_t headers = 0;
	GElf_Ehdr ehdr;

	if (elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &ehdr))
		return ELF_IMAGE_E_NOT_ELF;
	if (gelf_getclass(elf) != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
		ehdr.e_machine != EM_X86_64)
		return ELF_IMAGE_E_NOT_X86_64;
	if (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN)
		return ELF_IMAGE_E_NOT_ELF;
	if (elf_getphdrnum(elf, &headers) != 0 || headers > ELF_IMAGE_MAX_SEGMENTS)
		return ELF_IMAGE_E_MALFORMED;
	for (size_t i = 0; i < headers; i++) {
		GElf_Phdr header;

		if (!gelf_getphdr(elf, (int)i, &header))
			return ELF_IMAGE_E_MALFORMED;
		if (header.p_type == PT_LOAD) {
			if (!segment_is_sane(&header))
				return ELF_IMAGE_E_MALFORMED;
			image->segments[image->segment_count++] = (struct segment){
				.file_offset = header.p_offset,
				.value = header.p_vaddr,
				.file_bytes = header.p_filesz,
				.memory_bytes = header.p_memsz,
				.writable = header.p_flags & PF_W,
			};
		} else if (header.p_type == PT_DYNAMIC) {
			image->dynamic_value = header.p_vaddr;
			image->dynamic_bytes = header.p_filesz;
		}
	}
	return image->segment_count ? 0 : ELF_IMAGE_E_MALFORMED;
}

/* A dynamic entry's pointer as a value of the file. In memory glibc has added the load bias to those it uses
 * (it does so where the section can be written to: elf/get-dynamic-info.h); other dynamic linkers have not.
 */
static uint64_t file_value(const struct elf_image *image, uint64_t pointer)
{
	if (image->memory && !value_is_loaded(image, pointer))
		return pointer - image->memory_bias;
	return pointer;
}

static int read_dynamic(struct elf_image *image)
{
	if (!image->dynamic_bytes)
		return ELF_IMAGE_E_NO_DYNAMIC;
	if (image->dynamic_bytes / sizeof(Elf64_Dyn) > ELF_IMAGE_MAX_DYNAMIC)
		return ELF_IMAGE_E_MALFORMED;
	for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= image->dynamic_bytes; at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn entry;
		int r;

		r = elf_image_bytes(image, image->dynamic_value + at, &entry, sizeof(entry));
		if (r != 0)
			return r;
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_SYMTAB)
			image->tables.symbols = file_value(image, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_STRTAB)
			image->tables.names = file_value(image, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_STRSZ)
			image->tables.names_bytes = entry.d_un.d_val;
		else if (entry.d_tag == DT_GNU_HASH)
			image->tables.gnu_hash = file_value(image, entry.d_un.d_ptr);
		else if (entry.d_tag == DT_HASH)
			image->tables.sysv_hash = file_value(image, entry.d_un.d_ptr);
	}
	return 0;
}

static void write_build_id(struct elf_image *image, const unsigned char *id, size_t bytes)
{
	static const char digits[] = "0123456789abcdef";

	if (2 * bytes >= sizeof(image->build_id))
		return;
	for (size_t i = 0; i < bytes; i++) {
		image->build_id[2 * i] = digits[id[i] >> 4];
		image->build_id[2 * i + 1] = digits[id[i] & 15];
	}
	image->build_id[2 * bytes] = '\0';
}

/* Looks for NT_GNU_BUILD_ID among the notes of one segment. */
static void scan_notes(struct elf_image *image, const unsigned char *notes, size_t bytes, size_t align)
{
	size_t at = 0;

	while (bytes - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, id;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		if (note.n_namesz > bytes || note.n_descsz > bytes)
			return;
		id = (name + note.n_namesz + align - 1) & ~(align - 1);
		if (id > bytes || note.n_descsz > bytes - id)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
			memcmp(notes + name, "GNU", sizeof("GNU")) == 0) {
			write_build_id(image, notes + id, note.n_descsz);
			return;
		}
		at = (id + note.n_descsz + align - 1) & ~(align - 1);
		if (at > bytes)
			return;
	}
}

/* The build id is wanted, not needed: what can't be read is left out. */
static int read_build_id(struct elf_image *image, Elf *elf)
{
	size_t headers = 0;

	elf_getphdrnum(elf, &headers);
	for (size_t i = 0; i < headers && !image->build_id[0]; i++) {
		_cleanup_free_ unsigned char *notes = NULL;
		GElf_Phdr header;

		if (!gelf_getphdr(elf, (int)i, &header) || header.p_type != PT_NOTE || !header.p_filesz ||
			header.p_filesz > ELF_IMAGE_MAX_NOTE_BYTES)
			continue;
		notes = malloc(header.p_filesz);
		if (!notes)
			return -ENOMEM;
		if (elf_image_bytes(image, header.p_vaddr, notes, header.p_filesz) == 0)
			scan_notes(image, notes, header.p_filesz, header.p_align == 8 ? 8 : 4);
	}
	return 0;
}

static void elf_endp(Elf **elf)
{
	elf_end(*elf);
}

int elf_image_open(int fd, struct elf_image **ret_image)
{
	_cleanup_(elf_image_freep) struct elf_image *image = NULL;
	_cleanup_(elf_endp) Elf *elf = NULL;
	int r;

	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (image->fd < 0)
		return -errno;
	elf_version(EV_CURRENT);
	elf = elf_begin(image->fd, ELF_C_READ, NULL);
	if (!elf)
		return ELF_IMAGE_E_NOT_ELF;
	r = read_program_headers(image, elf);
	if (r == 0)
		r = read_dynamic(image);
	if (r == 0)
		r = read_build_id(image, elf);
	if (r != 0)
		return r;
	*ret_image = TAKE(image);
	return 0;
}

/* The ELF header and the program headers are in the first page of every file a linker writes. */
static int read_from_first_page(struct elf_image *image, remote_addr base)
{
	_cleanup_(elf_endp) Elf *elf = NULL;
	char page[PAGE_BYTES] __attribute__((aligned(16)));
	Elf64_Ehdr header;
	int r;

	r = memory_read(image->memory, base, page, sizeof(page));
	if (r != 0)
		return r > 0 ? ELF_IMAGE_E_NOT_LOADED : r;
	/* Section headers aren't loaded: libelf must not look for them. */
	memcpy(&header, page, sizeof(header));
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	memcpy(page, &header, sizeof(header));

	elf_version(EV_CURRENT);
	elf = elf_memory(page, sizeof(page));
	if (!elf)
		return ELF_IMAGE_E_NOT_ELF;
	r = read_program_headers(image, elf);
	if (r != 0)
		return r;
	for (size_t i = 0; i < image->segment_count; i++)
		if (image->segments[i].file_offset == 0) {
			image->memory_bias = base - image->segments[i].value;
			r = read_dynamic(image);
			return r != 0 ? r : read_build_id(image, elf);
		}
	return ELF_IMAGE_E_MALFORMED;
}

int elf_image_open_memory(const struct memory *memory, remote_addr base, struct elf_image **ret_image)
{
	_cleanup_(elf_image_freep) struct elf_image *image = NULL;
	int r;

	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->fd = -1;
	image->memory = memory;
	r = read_from_first_page(image, base);
	if (r != 0)
		return r;
	*ret_image = TAKE(image);
	return 0;
}

int elf_image_symbol(
	const struct elf_image *image, const char *name, uint64_t *ret_value, uint64_t *ret_bytes)
{
	uint64_t value, bytes;
	int r;

	r = elf_symbols_find(image, &image->tables, name, &value, &bytes);
	if (r != 0)
		return r;
	if (!value_is_loaded(image, value))
		return ELF_IMAGE_E_MALFORMED;
	*ret_value = value;
	*ret_bytes = bytes;
	return 0;
}

static bool same_file(const struct mapping *a, const struct mapping *b)
{
	return a->inode == b->inode && a->device_major == b->device_major &&
	       a->device_minor == b->device_minor;
}

/* With @bias added, does no segment begin at another offset of the file than the mappings say? A segment that
 * is mapped otherwise is no contradiction: programs move their code to huge pages. */
static bool bias_fits(
	const struct elf_image *image, const struct procmap *maps, const struct mapping *file, uint64_t bias)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		remote_addr start = bias + page_of(image->segments[i].value);
		const struct mapping *mapping = procmap_find(maps, start);

		if (mapping && same_file(mapping, file) &&
			mapping->file_offset + (start - mapping->start) !=
				page_of(image->segments[i].file_offset))
			return false;
	}
	return true;
}

static bool bias_covers(const struct elf_image *image, uint64_t bias, remote_addr addr)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		remote_addr start = bias + page_of(image->segments[i].value);

		if (addr >= start && addr - start < image->segments[i].memory_bytes + PAGE_BYTES)
			return true;
	}
	return false;
}

int elf_image_load_bias(const struct elf_image *image, const struct procmap *maps, const struct mapping *any,
	uint64_t *ret_bias)
{
	const struct segment *first = &image->segments[0];

	for (size_t i = 0; i < maps->count; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		uint64_t bias = mapping->start - page_of(first->value);

		if (!same_file(mapping, any) || mapping->file_offset != page_of(first->file_offset))
			continue;
		if (!bias_covers(image, bias, any->start) || !bias_fits(image, maps, any, bias))
			continue;
		*ret_bias = bias;
		return 0;
	}
	return ELF_IMAGE_E_NOT_LOADED;
}

int elf_image_find(const struct elf_image *image, const char *text, void *into, size_t bytes)
{
	const size_t text_bytes = strlen(text), wanted = text_bytes + bytes;
	_cleanup_free_ char *block = NULL;
	uint64_t searched = 0;

	if (wanted > FIND_MAX_BYTES)
		return -EINVAL;
	block = malloc(FIND_BLOCK_BYTES);
	if (!block)
		return -ENOMEM;
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct segment *segment = &image->segments[i];

		if (segment->writable)
			continue;
		/* Blocks overlap by what is looked for, so that none is missed across their borders. */
		for (uint64_t at = 0; segment->file_bytes - at >= wanted; at += FIND_BLOCK_BYTES - wanted) {
			uint64_t left = segment->file_bytes - at;
			size_t size = left < FIND_BLOCK_BYTES ? (size_t)left : FIND_BLOCK_BYTES;
			const char *found;

			if ((searched += size) > FIND_MAX_SEARCHED_BYTES)
				return ELF_IMAGE_E_NO_SYMBOL;
			if (elf_image_bytes(image, segment->value + at, block, size) != 0)
				break;
			found = memmem(block, size - bytes, text, text_bytes);
			if (found) {
				memcpy(into, found + text_bytes, bytes);
				return 0;
			}
			if (size == left)
				break;
		}
	}
	return ELF_IMAGE_E_NO_SYMBOL;
}

const char *elf_image_build_id(const struct elf_image *image)
{
	return image->build_id;
}

void elf_image_free(struct elf_image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	free(image);
}
