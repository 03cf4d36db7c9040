/* SPDX-License-Identifier: MIT
 *
 * PHP is recognised by what it exports, not by its name: a worker maps dozens of files with "php" in their
 * names (extensions), and PHP itself may be an httpd with a libphp.so. Names only decide where to look first.
 * What can't be read or parsed is passed over: one odd file must not hide PHP.
 *
 * A program that is linked against libphp.so without PIE has copies of PHP's globals in itself (copy
 * relocations), and the library uses those. So each address is looked up as the dynamic linker would: first
 * in the executable.
 */
#include "symbols/php_image.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/mapped_file.h"

#define NAME_HINT "php"

/* All of them are exported by every PHP from 5 to 8.6; no other library has all four. */
static const char *const php_exports[] = {
	"executor_globals", "sapi_globals", "core_globals", "module_registry"};

/* ZTS builds have one set of globals a thread, and export where each lies in it (Zend/zend_globals_macros.h).
 */
static const char *const zts_exports[] = {"executor_globals_offset", "module_registry"};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static bool exports_all(const struct elf_image *image, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t value, bytes;

		if (elf_image_symbol(image, names[i], &value, &bytes) != 0)
			return false;
	}
	return true;
}

static bool same_file(const struct mapping *a, const struct mapping *b)
{
	return a && b && a->inode == b->inode && a->device_major == b->device_major &&
	       a->device_minor == b->device_minor;
}

static void file_deinit(struct php_image_file *file)
{
	if (file->image)
		elf_image_free(file->image);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct php_image_file){.fd = -1};
}

void php_image_deinit(struct php_image *image)
{
	file_deinit(&image->executable);
	file_deinit(&image->php);
}

/* Where the mapped file begins in memory: the last mapping of its offset 0 at or before @any. */
static const struct mapping *first_mapping(const struct procmap *maps, const struct mapping *any)
{
	for (const struct mapping *at = any;; at--) {
		if (same_file(at, any) && at->file_offset == 0)
			return at;
		if (at == maps->mappings)
			return NULL;
	}
}

/* Opens what is mapped at @mapping, through @fd if it is not -1, else from memory. */
static int load(const struct memory *memory, const struct procmap *maps, const struct mapping *mapping,
	int fd, struct php_image_file *ret_file)
{
	_cleanup_(elf_image_freep) struct elf_image *image = NULL;
	uint64_t bias;
	int r;

	if (fd >= 0) {
		r = elf_image_open(fd, &image);
	} else {
		const struct mapping *first = first_mapping(maps, mapping);

		r = first ? elf_image_open_memory(memory, first->start, &image) : ELF_IMAGE_E_NOT_LOADED;
	}
	if (r == 0)
		r = elf_image_load_bias(image, maps, mapping, &bias);
	if (r != 0)
		return r;
	*ret_file = (struct php_image_file){TAKE(image), bias, fd, mapping};
	return 0;
}

/* Is @file PHP? Then it becomes image->php. */
static bool take_if_php(struct php_image *image, struct php_image_file *file)
{
	if (exports_all(file->image, php_exports, LENGTH(php_exports)))
		image->thread_safe = false;
	else if (exports_all(file->image, zts_exports, LENGTH(zts_exports)))
		image->thread_safe = true;
	else
		return false;
	image->php = *file;
	*file = (struct php_image_file){.fd = -1};
	return true;
}

/* Looks at the executable; keeps it if it is not PHP. */
static int try_executable(
	pid_t pid, const struct memory *memory, const struct procmap *maps, struct php_image *image)
{
	const struct mapping *mapping;
	_cleanup_close_ int fd = -1;
	int r;

	/* Where this fails the executable is among the mapped files, and is looked at as one of them. */
	if (mapped_file_open_executable(pid, maps, &mapping, &fd) != 0)
		return PHP_IMAGE_E_NOT_PHP;
	r = load(memory, maps, mapping, fd, &image->executable);
	if (r == ELF_IMAGE_E_NOT_X86_64)
		return PHP_IMAGE_E_NOT_X86_64;
	if (r != 0)
		return PHP_IMAGE_E_NOT_PHP;
	fd = -1; /* the image has it */
	return take_if_php(image, &image->executable) ? 0 : PHP_IMAGE_E_NOT_PHP;
}

/* 0, PHP_IMAGE_E_NOT_PHP, or a negative errno: it could not be looked at. */
static int try_mapping(pid_t pid, const struct memory *memory, const struct procmap *maps,
	const struct mapping *mapping, struct php_image *image)
{
	struct php_image_file file = {.fd = -1};
	_cleanup_close_ int fd = -1;
	int r;

	if (mapped_file_open(pid, mapping, &fd) != 0)
		fd = -1;
	r = load(memory, maps, mapping, fd, &file);
	if (r != 0)
		return r < 0 ? r : PHP_IMAGE_E_NOT_PHP;
	fd = -1;
	if (take_if_php(image, &file))
		return 0;
	file_deinit(&file);
	return PHP_IMAGE_E_NOT_PHP;
}

static bool name_hints_at_php(const struct mapping *mapping)
{
	const char *slash = strrchr(mapping->path, '/');

	return strstr(slash ? slash : mapping->path, NAME_HINT) != NULL;
}

static int try_mapped_files(pid_t pid, const struct memory *memory, const struct procmap *maps, bool hinted,
	size_t *candidates, struct php_image *image)
{
	const struct mapping *last = image->executable.mapping;
	int result = PHP_IMAGE_E_NOT_PHP;

	for (size_t i = 0; i < maps->count && *candidates < PHP_IMAGE_MAX_CANDIDATES; i++) {
		const struct mapping *mapping = &maps->mappings[i];
		int r;

		/* Code comes from files; a file has one mapping with code as a rule, and two in a row else.
		 */
		if (!mapping->executable || !mapping->inode || mapping->path[0] != '/' ||
			name_hints_at_php(mapping) != hinted || same_file(mapping, last) ||
			same_file(mapping, image->executable.mapping))
			continue;
		last = mapping;
		++*candidates;
		r = try_mapping(pid, memory, maps, mapping, image);
		if (r == 0)
			return 0;
		if (r < 0)
			result = r;
	}
	return result;
}

int php_image_find(
	pid_t pid, const struct memory *memory, const struct procmap *maps, struct php_image *ret_image)
{
	_cleanup_(php_image_deinit) struct php_image image = {.executable.fd = -1, .php.fd = -1};
	size_t candidates = 0;
	int r;

	r = try_executable(pid, memory, maps, &image);
	if (r == PHP_IMAGE_E_NOT_PHP)
		r = try_mapped_files(pid, memory, maps, true, &candidates, &image);
	if (r < 0 || r == PHP_IMAGE_E_NOT_PHP) {
		int others = try_mapped_files(pid, memory, maps, false, &candidates, &image);

		if (others == 0 || r > 0)
			r = others;
	}
	if (r != 0)
		return r;
	*ret_image = image;
	image = (struct php_image){.executable.fd = -1, .php.fd = -1};
	return 0;
}

static remote_addr address_in(const struct php_image_file *file, const char *name)
{
	uint64_t value, bytes;

	if (!file->image || elf_image_symbol(file->image, name, &value, &bytes) != 0)
		return 0;
	return file->bias + value;
}

remote_addr php_image_address(const struct php_image *image, const char *name)
{
	remote_addr addr = address_in(&image->executable, name);

	return addr ? addr : address_in(&image->php, name);
}
