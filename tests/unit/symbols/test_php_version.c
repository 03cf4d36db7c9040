/* SPDX-License-Identifier: MIT
 *
 * The version from a made-up module registry: a healthy one, ones that are not filled yet, and hostile ones.
 */
#include "support.h"

#include "symbols/php_version.h"

#define BASE 0x100000
/* Where the parts stand in the made-up memory. */
#define REGISTRY (BASE + 0x0)
#define BUCKETS (BASE + 0x1000)
#define KEYS (BASE + 0x2000)
#define ENTRIES (BASE + 0x3000)
#define TEXTS (BASE + 0x8000)

#define BUCKET_BYTES 32
#define KEY_BYTES 64
#define ENTRY_BYTES 168
#define TEXT_BYTES 64

/* zend_hash_func("standard"), worked out apart from the code:
 * h = 5381; for c in b"standard": h = (h * 33 + c) & (2**64 - 1); h | 1 << 63 */
#define HASH_OF_STANDARD UINT64_C(0x801ae78c68ece096)

static struct saved_memory saved;
static struct memory memory = {read_saved, &saved};

static void put_module(
	unsigned index, const char *name, uint64_t hash, const char *version, const char *build_id)
{
	remote_addr bucket = BUCKETS + index * BUCKET_BYTES, key = KEYS + index * KEY_BYTES;
	remote_addr entry = ENTRIES + index * ENTRY_BYTES, texts = TEXTS + index * 3 * TEXT_BYTES;

	put_word(&saved, bucket, entry);
	put_half(&saved, bucket + 8, 13); /* IS_PTR */
	put_word(&saved, bucket + 16, hash);
	put_word(&saved, bucket + 24, key);
	put_word(&saved, key + 8, hash);
	put_word(&saved, key + 16, strlen(name));
	put(&saved, key + 24, name, strlen(name) + 1);
	put_half(&saved, entry, ENTRY_BYTES);
	put_word(&saved, entry + 32, texts);
	put_word(&saved, entry + 88, texts + TEXT_BYTES);
	put_word(&saved, entry + 160, texts + 2 * TEXT_BYTES);
	put(&saved, texts, name, strlen(name) + 1);
	put(&saved, texts + TEXT_BYTES, version, strlen(version) + 1);
	put(&saved, texts + 2 * TEXT_BYTES, build_id, strlen(build_id) + 1);
}

static void put_registry(uint32_t used)
{
	put_half(&saved, REGISTRY + 12, (uint32_t)-16);
	put_word(&saved, REGISTRY + 16, BUCKETS);
	put_half(&saved, REGISTRY + 24, used);
	put_half(&saved, REGISTRY + 28, used);
	put_half(&saved, REGISTRY + 32, 8);
}

static int forget(void **state)
{
	memset(&saved, 0, sizeof(saved));
	saved.base = BASE;
	return 0;
}

static void put_healthy(const char *version, const char *build_id)
{
	put_module(0, "Core", 0x800000017c8a2d1e, version, build_id);
	put_module(1, "date", 0x800000017c953a4d, version, build_id);
	put_module(2, "standard", HASH_OF_STANDARD, version, build_id);
	put_registry(3);
}

static int read_version(struct php_version *ret_version)
{
	return php_version_read(&memory, REGISTRY, ret_version);
}

static void a_version_is_three_numbers_and_whatever_follows(void **state)
{
	unsigned id = 0;

	assert_int_equal(php_version_parse("8.2.36", &id), 0);
	assert_int_equal(id, 80236);
	assert_int_equal(php_version_parse("7.4.0", &id), 0);
	assert_int_equal(id, 70400);
	assert_int_equal(php_version_parse("8.6.0RC3", &id), 0);
	assert_int_equal(id, 80600);
	assert_int_equal(php_version_parse("8.4.5-1ubuntu1", &id), 0);
	assert_int_equal(id, 80405);
	assert_int_equal(php_version_parse("10.0.99", &id), 0);
	assert_int_equal(id, 100099);
}

static void what_is_no_version_is_refused(void **state)
{
	static const char *const texts[] = {"", "8", "8.2", "8.2.", "8..2", ".8.2.1", "a.b.c", "8.2.x",
		"-8.2.1", " 8.2.1", "8.100.0", "8.2.99999999999999999999", "8. 2.1", "+8.2.1"};
	unsigned id = 1;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(php_version_parse(texts[i], &id), -EINVAL);
	assert_int_equal(id, 1);
}

static void the_version_is_that_of_the_module_standard(void **state)
{
	struct php_version version;

	put_healthy("8.2.36", "API20220829,NTS");
	put_module(0, "Core", 0x800000017c8a2d1e, "9.9.9", "API1,TS,debug");
	assert_int_equal(read_version(&version), 0);
	assert_string_equal(version.text, "8.2.36");
	assert_int_equal(version.id, 80236);
	assert_false(version.zts);
	assert_false(version.debug);
}

static void the_build_id_and_the_entrys_bytes_tell_thread_safe_and_debug_builds(void **state)
{
	struct php_version version;

	put_healthy("8.4.1", "API20240924,TS");
	assert_int_equal(read_version(&version), 0);
	assert_true(version.zts);
	assert_false(version.debug);
	put_healthy("8.4.1", "API20240924,NTS,debug");
	assert_int_equal(read_version(&version), 0);
	assert_false(version.zts);
	assert_true(version.debug);
	put_healthy("8.4.1", "API20240924,NTS");
	put(&saved, ENTRIES + 2 * ENTRY_BYTES + 8, "\1", 1); /* zend_debug */
	put(&saved, ENTRIES + 2 * ENTRY_BYTES + 9, "\1", 1); /* zts */
	assert_int_equal(read_version(&version), 0);
	assert_true(version.zts);
	assert_true(version.debug);
}

static void an_empty_registry_has_not_started(void **state)
{
	struct php_version version;

	assert_int_equal(read_version(&version), PHP_VERSION_E_NOT_STARTED);
	/* Initialised, with nothing in it yet. */
	put_registry(0);
	assert_int_equal(read_version(&version), PHP_VERSION_E_NOT_STARTED);
}

static void a_registry_without_standard_has_not_started(void **state)
{
	struct php_version version;

	put_healthy("8.2.36", "API20220829,NTS");
	put_registry(2);
	assert_int_equal(read_version(&version), PHP_VERSION_E_NOT_STARTED);
}

static void a_bucket_with_the_hash_of_standard_and_another_key_is_not_it(void **state)
{
	struct php_version version;

	put_healthy("8.2.36", "API20220829,NTS");
	put_module(0, "standarD", HASH_OF_STANDARD, "1.2.3", "API20220829,NTS");
	put_word(&saved, KEYS + KEY_BYTES + 16, UINT64_MAX); /* a key as long as the address space */
	assert_int_equal(read_version(&version), 0);
	assert_string_equal(version.text, "8.2.36");
}

static void tables_that_can_not_be_php_s_are_refused(void **state)
{
	struct php_version version = {.text = "untouched"};

	put_healthy("8.2.36", "API20220829,NTS");
	put_half(&saved, REGISTRY + 24, 9); /* more used than there is room for */
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
	put_half(&saved, REGISTRY + 24, 0x7fffffff);
	put_half(&saved, REGISTRY + 32, 0x80000000);
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
	put_registry(3);
	put_half(&saved, REGISTRY + 32, 7); /* no power of two */
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
	put_registry(3);
	put_word(&saved, REGISTRY + 16, BUCKETS + 1);
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
	put_word(&saved, REGISTRY + 16, 0xffff800000000000);
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
	put_word(&saved, REGISTRY + 16, 0x7fffdead0000);
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
	assert_string_equal(version.text, "untouched");
}

/* PHP 5's HashTable: size, mask, elements, next free element, internal pointer, list head and tail, buckets.
 */
static void php_5_s_hash_table_is_refused(void **state)
{
	struct php_version version;

	put_half(&saved, REGISTRY + 0, 64);
	put_half(&saved, REGISTRY + 4, 63);
	put_half(&saved, REGISTRY + 8, 37);
	put_word(&saved, REGISTRY + 24, 0x55d0c1a00000);
	put_word(&saved, REGISTRY + 32, 0x55d0c1a00000);
	put_word(&saved, REGISTRY + 40, 0x55d0c1a00800);
	put_word(&saved, REGISTRY + 48, 0x55d0c1a10000);
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
}

static void an_entry_that_makes_no_sense_is_refused(void **state)
{
	struct php_version version;

	put_healthy("8.2.36", "NTS");
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
	put_healthy("eight", "API20220829,NTS");
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
	put_healthy("8.2.36\033[2J", "API20220829,NTS");
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
	put_healthy("8.2.3600000000000000000000000000000000", "API20220829,NTS");
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
	put_healthy("8.2.36", "API20220829,NTS");
	put_word(&saved, ENTRIES + 2 * ENTRY_BYTES + 88, 0);
	assert_int_equal(read_version(&version), PHP_VERSION_E_UNREADABLE);
}

static int refuse_to_read(void *context, remote_addr addr, void *into, size_t bytes)
{
	return -EPERM;
}

static void a_refusal_of_the_kernel_is_passed_on(void **state)
{
	struct memory refusing = {refuse_to_read, NULL};
	struct php_version version;

	assert_int_equal(php_version_read(&refusing, REGISTRY, &version), -EPERM);
}

static void random_registries_do_no_harm(void **state)
{
	unsigned seed = 3;

	for (int round = 0; round < 5000; round++) {
		struct php_version version;
		int r;

		forget(NULL);
		put_healthy("8.2.36", "API20220829,NTS");
		for (int change = 0; change < 8; change++) {
			static const size_t ranges[] = {56, 0x1060, 0x2200, 0x3200, 0x8300};
			size_t range = ranges[(size_t)rand_r(&seed) % 5];

			saved.image[(size_t)rand_r(&seed) % range] = (unsigned char)rand_r(&seed);
		}
		r = read_version(&version);
		assert_true(r >= 0 && r <= PHP_VERSION_E_UNREADABLE);
		/* One page of memory was asked for at most a few times, not a page of modules. */
		assert_true(saved.reads < 40);
	}
}

#define each(test) cmocka_unit_test_setup(test, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		each(a_version_is_three_numbers_and_whatever_follows),
		each(what_is_no_version_is_refused),
		each(the_version_is_that_of_the_module_standard),
		each(the_build_id_and_the_entrys_bytes_tell_thread_safe_and_debug_builds),
		each(an_empty_registry_has_not_started),
		each(a_registry_without_standard_has_not_started),
		each(a_bucket_with_the_hash_of_standard_and_another_key_is_not_it),
		each(tables_that_can_not_be_php_s_are_refused),
		each(php_5_s_hash_table_is_refused),
		each(an_entry_that_makes_no_sense_is_refused),
		each(a_refusal_of_the_kernel_is_passed_on),
		each(random_registries_do_no_harm),
	};

	return cmocka_run_group_tests_name("symbols/php_version", tests, NULL, NULL);
}
