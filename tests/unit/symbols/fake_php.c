/* SPDX-License-Identifier: MIT
 *
 * Not part of any program: test_php_binary.c compiles this into processes that look like a PHP 8.2 in all
 * that php_binary examines, of versions and builds that can't be installed beside each other.
 *
 *	fake_php VERSION BUILD_ID [starting|php5|broken|running]
 *
 * Compiled with
 * - FAKE_ZTS: a thread-safe build, which exports offsets in place of globals;
 * - FAKE_POWERED_BY: carries this version in an X-Powered-By header;
 * - FAKE_LIBRARY: PHP alone, without main(), and FAKE_PROGRAM: the program around it;
 * - FAKE_MOVED: executor_globals has a member more than PHP's, as a distribution's patch might add. Only
 * debug information tells.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int fake_php_main(int argc, char **argv);

#ifdef FAKE_PROGRAM
extern struct _zend_executor_globals executor_globals;
/* Without PIE this use makes the linker copy the library's globals into the program. */
struct _zend_executor_globals *volatile used;

int main(int argc, char **argv)
{
	used = &executor_globals;
	return fake_php_main(argc, argv);
}
#else

typedef struct {
	uint64_t value;
	uint32_t type_info, u2;
} zval;

struct _zend_string {
	uint64_t refcounted, h, len;
	char val[16];
} standard_key = {.len = 8, .val = "standard"};

struct _Bucket {
	zval val;
	uint64_t h;
	struct _zend_string *key;
} bucket;

struct _zend_module_entry {
	char head[8];
	unsigned char zend_debug, zts;
	char pad1[22];
	const char *name;
	char pad2[48];
	const char *version;
	char pad3[64];
	const char *build_id;
} standard = {.name = "standard"};

struct hash_table {
	uint64_t refcounted;
	uint32_t flags, nTableMask;
	struct _Bucket *arData;
	uint32_t nNumUsed, nNumOfElements, nTableSize, nInternalPointer;
	uint64_t rest[2];
} module_registry;

struct _zend_op_array {
	unsigned char type;
	char rest[247];
} function = {.type = 2};

struct _zend_op {
	char rest[32];
} op;

struct _zend_class_entry {
	char rest[600];
} ce;

struct _zend_execute_data {
	void *opline, *call, *return_value;
	struct _zend_op_array *func;
	zval This;
	struct _zend_execute_data *prev_execute_data;
	void *rest[3];
};

struct _zend_vm_stack {
	void *top, *end, *prev;
} * vm_stack;

_Alignas(16) char page[4096];

struct _zend_executor_globals {
	zval uninitialized_zval, error_zval;
	char pad[424];
#ifdef FAKE_MOVED
	void *patched;
#endif
	void *vm_stack_top, *vm_stack_end, *vm_stack;
	uint64_t vm_stack_page_size;
	struct _zend_execute_data *current_execute_data;
	char rest[1400];
};

#ifdef FAKE_ZTS
uint64_t executor_globals_offset = 64, sapi_globals_offset = 2048, core_globals_offset = 4096;
static struct _zend_executor_globals executor_globals;
#else
struct _zend_executor_globals executor_globals;
char sapi_globals[512], core_globals[768], compiler_globals[600];
#endif

struct {
	const char *name;
	char rest[300];
} sapi_module = {.name = "fa\033ke"};

#ifdef FAKE_POWERED_BY
const char *powered_by = "X-Powered-By: PHP/" FAKE_POWERED_BY "\r\n";
#endif

/* Zend/zend_alloc.c and Zend/zend_gc.c: the heap is in a chunk of 2 MiB, which begins with its address. */
static struct {
	void *mm_heap;
} alloc_globals;

static struct {
	void *buf;
	_Bool gc_enabled, gc_active, gc_protected, gc_full;
} gc_globals = {.gc_enabled = 1};

_Alignas(2 << 20) static void *chunk[64];

void *zend_mm_get_heap(void);
_Bool gc_enabled(void);
void gc_enable(_Bool on);

__attribute__((noinline)) void *zend_mm_get_heap(void)
{
	return alloc_globals.mm_heap;
}

__attribute__((noinline)) _Bool gc_enabled(void)
{
	return gc_globals.gc_enabled;
}

void gc_enable(_Bool on)
{
	gc_globals.gc_enabled = on;
}

static uint64_t hash_of(const char *name)
{
	uint64_t hash = 5381;

	while (*name)
		hash = hash * 33 + (unsigned char)*name++;
	return hash | UINT64_C(1) << 63;
}

static void fill_registry(const char *version, const char *build_id)
{
	standard.version = version;
	standard.build_id = build_id;
	standard.zend_debug = strstr(build_id, "debug") != NULL;
	bucket = (struct _Bucket){{(uintptr_t)&standard, 13, 0}, hash_of("standard"), &standard_key};
	module_registry = (struct hash_table){.arData = &bucket,
		.nNumUsed = 1,
		.nNumOfElements = 1,
		.nTableSize = 8,
		.nTableMask = (uint32_t)-16};
}

static void run_a_function(void)
{
	struct _zend_execute_data *frame = (struct _zend_execute_data *)(page + 64);

	vm_stack = (struct _zend_vm_stack *)page;
	vm_stack->end = page + sizeof(page);
	frame->func = &function;
	executor_globals.vm_stack = page;
	executor_globals.vm_stack_top = frame + 1;
	executor_globals.vm_stack_end = page + sizeof(page);
	executor_globals.vm_stack_page_size = sizeof(page);
	executor_globals.current_execute_data = frame;
}

int fake_php_main(int argc, char **argv)
{
	const char *state = argc > 3 ? argv[3] : "";

	chunk[0] = alloc_globals.mm_heap = &chunk[8];
	gc_enable(zend_mm_get_heap() != NULL);
	executor_globals.uninitialized_zval.type_info = 1;
	executor_globals.error_zval.type_info = 15;
	if (strcmp(state, "starting") != 0)
		fill_registry(argv[1], argv[2]);
	if (strcmp(state, "php5") == 0)
		memset(&module_registry, 0x55, sizeof(module_registry));
	if (strcmp(state, "broken") == 0)
		executor_globals.error_zval.type_info = 1;
	if (strcmp(state, "running") == 0)
		run_a_function();
	printf("ready\n");
	fflush(stdout);
	for (;;)
		pause();
}

#ifndef FAKE_LIBRARY
int main(int argc, char **argv)
{
	return fake_php_main(argc, argv);
}
#endif
#endif
