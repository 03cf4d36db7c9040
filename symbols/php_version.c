/* SPDX-License-Identifier: MIT
 *
 * The version, asked of the live process. module_registry is a zend_array of zend_module_entry by name; the
 * module "standard" (ext/standard/basic_functions.c) is in every PHP and has PHP's own version. What is read
 * here lies at the same offsets in all versions from 7.0 on, which is why it can be asked before anything is
 * known: the oldest table serves for all. PHP 5's hash table is laid out otherwise and does not pass the
 * checks.
 */
#include "symbols/php_version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/layout.h"

#define POWERED_BY "X-Powered-By: PHP/"
#define MODULE_NAME "standard"
/* Modules in the registry; PHP with everything has about a hundred. */
#define MAX_MODULES 4096
/* "API20220829,NTS,debug" */
#define BUILD_ID_MAX_BYTES 64
/* Each part of a version. PHP_VERSION_ID leaves two digits to all but the first. */
#define MAX_VERSION_PART 99

/* Any table does: see above. */
static const struct layout *any_layout(void)
{
	return layout_for_version(70400);
}

static uint64_t word_at(const void *bytes, size_t offset)
{
	uint64_t word;

	memcpy(&word, (const char *)bytes + offset, sizeof(word));
	return word;
}

static uint32_t half_at(const void *bytes, size_t offset)
{
	uint32_t half;

	memcpy(&half, (const char *)bytes + offset, sizeof(half));
	return half;
}

int php_version_parse(const char *text, unsigned *ret_id)
{
	unsigned parts[3];

	for (int i = 0; i < 3; i++) {
		char *end;
		unsigned long part;

		if (*text < '0' || *text > '9')
			return -EINVAL;
		part = strtoul(text, &end, 10);
		if (part > MAX_VERSION_PART || (i < 2 && *end != '.'))
			return -EINVAL;
		parts[i] = (unsigned)part;
		text = end + (i < 2);
	}
	*ret_id = parts[0] * 10000 + parts[1] * 100 + parts[2];
	return 0;
}

/* The version goes into messages: a hostile one must not move a terminal's cursor. */
static bool is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			return false;
	return true;
}

/* Is the zend_string at @key "standard"? A key that can't be read is another's. */
static bool key_is_standard(const struct memory *memory, const struct layout *layout, remote_addr key)
{
	char name[sizeof(MODULE_NAME)];
	uint64_t length;

	return remote_addr_is_user(key) &&
	       memory_read(memory, key + layout->str_len, &length, sizeof(length)) == 0 &&
	       length == strlen(MODULE_NAME) &&
	       memory_read(memory, key + layout->str_val, name, sizeof(name)) == 0 &&
	       memcmp(name, MODULE_NAME, sizeof(name)) == 0;
}

/* zend_hash_func() (Zend/zend_string.h): DJB's times-33, with the top bit set. */
static uint64_t hash_of(const char *name)
{
	uint64_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash | UINT64_C(1) << 63;
}

/* Finds the zend_module_entry of "standard". */
static int find_module(const struct memory *memory, remote_addr registry, remote_addr *ret_module)
{
	const struct layout *layout = any_layout();
	_cleanup_free_ char *buckets = NULL;
	char table[64];
	uint32_t used, size;
	remote_addr data;
	int r;

	r = memory_read(memory, registry, table, layout->ht_sizeof);
	if (r != 0)
		return r > 0 ? PHP_VERSION_E_UNREADABLE : r;
	if (half_at(table, layout->ht_nNumOfElements) == 0 && half_at(table, layout->ht_nNumUsed) == 0)
		return PHP_VERSION_E_NOT_STARTED;
	used = half_at(table, layout->ht_nNumUsed);
	size = half_at(table, layout->ht_nTableSize);
	data = word_at(table, layout->ht_arData);
	if (used > size || used > MAX_MODULES || size & (size - 1) || data % 8 || !remote_addr_is_user(data))
		return PHP_VERSION_E_UNREADABLE;

	buckets = malloc((size_t)used * layout->bucket_sizeof);
	if (!buckets)
		return -ENOMEM;
	r = memory_read(memory, data, buckets, (size_t)used * layout->bucket_sizeof);
	if (r != 0)
		return r > 0 ? PHP_VERSION_E_UNREADABLE : r;
	for (uint32_t i = 0; i < used; i++) {
		const char *bucket = buckets + (size_t)i * layout->bucket_sizeof;
		remote_addr module = word_at(bucket, layout->bucket_val + layout->zval_value);

		if (word_at(bucket, layout->bucket_h) == hash_of(MODULE_NAME) &&
			key_is_standard(memory, layout, word_at(bucket, layout->bucket_key)) &&
			remote_addr_is_user(module)) {
			*ret_module = module;
			return 0;
		}
	}
	return PHP_VERSION_E_NOT_STARTED;
}

int php_version_read(
	const struct memory *memory, remote_addr module_registry, struct php_version *ret_version)
{
	const struct layout *layout = any_layout();
	char entry[256], name[sizeof(MODULE_NAME)], build_id[BUILD_ID_MAX_BYTES];
	struct php_version version = {0};
	remote_addr module;
	int r;

	_Static_assert(sizeof(entry) >= 168, "room for a zend_module_entry");
	r = find_module(memory, module_registry, &module);
	if (r != 0)
		return r;
	r = memory_read(memory, module, entry, layout->module_sizeof);
	if (r == 0)
		r = memory_read_string(memory, word_at(entry, layout->module_name), name, sizeof(name));
	if (r == 0)
		r = memory_read_string(
			memory, word_at(entry, layout->module_version), version.text, sizeof(version.text));
	if (r == 0)
		r = memory_read_string(
			memory, word_at(entry, layout->module_build_id), build_id, sizeof(build_id));
	if (r > 0 || r == -ENAMETOOLONG)
		return PHP_VERSION_E_UNREADABLE;
	if (r < 0)
		return r;
	if (strcmp(name, MODULE_NAME) != 0 || strncmp(build_id, "API", 3) != 0 ||
		!is_printable(version.text) || php_version_parse(version.text, &version.id) != 0)
		return PHP_VERSION_E_UNREADABLE;
	/* Zend/zend_modules.h: ZEND_MODULE_BUILD_ID is "API" number ",TS" or ",NTS", and ",debug" in debug
	 * builds. */
	version.zts = entry[layout->module_zts] != 0 || strstr(build_id, ",TS");
	version.debug = entry[layout->module_zend_debug] != 0 || strstr(build_id, ",debug");
	*ret_version = version;
	return 0;
}

int php_version_find(const struct elf_image *image, struct php_version *ret_version)
{
	struct php_version version = {0};
	int r;

	r = elf_image_find(image, POWERED_BY, version.text, sizeof(version.text));
	if (r != 0)
		return r;
	version.text[strcspn(version.text, "\r\n")] = '\0';
	version.text[sizeof(version.text) - 1] = '\0';
	if (!is_printable(version.text) || php_version_parse(version.text, &version.id) != 0)
		return ELF_IMAGE_E_NO_SYMBOL;
	*ret_version = version;
	return 0;
}
