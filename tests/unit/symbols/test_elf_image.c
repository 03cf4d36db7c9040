/* SPDX-License-Identifier: MIT
 *
 * ELF images: compared with what the dynamic linker says of the same files, and fed with damaged ones.
 */
#include "support.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

#include "symbols/elf_image.h"

/* What small_library exports, and how it is built. */
#define SMALL_SOURCE                                                                    \
	"int answer(void) { return 42; }\nint number = 7;\nextern int nowhere(void);\n" \
	"int call_nowhere(void) { return nowhere(); }\n"
#define SMALL_BUILD_ID "00112233445566778899aabbccddeeff"

/* elf_image_find() is tried with a text in every block and across every border of blocks. */
#define TEXT_SPACING 4093
#define TEXT_COUNT 60

static struct elf_image *open_path(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_image *image = NULL;

	assert_true(fd >= 0);
	assert_int_equal(elf_image_open(fd, &image), 0);
	return image;
}

static int build_libraries(void **state)
{
	_cleanup_fclose_ FILE *file = NULL;

	if (make_scratch(state) != 0)
		return -1;
	write_file(in_scratch("small.c"), SMALL_SOURCE);
	compile(in_scratch("small.c"), in_scratch("small.so"), "-shared", "-fPIC", "-Wl,--hash-style=gnu",
		"-Wl,--build-id=0x" SMALL_BUILD_ID, NULL);
	compile(in_scratch("small.c"), in_scratch("sysv.so"), "-shared", "-fPIC", "-Wl,--hash-style=sysv",
		"-Wl,--build-id=none", NULL);
	file = fopen(in_scratch("texts.c"), "w");
	if (!file)
		return -1;
	fprintf(file, "const char texts[%d][%d] = {", TEXT_COUNT, TEXT_SPACING);
	for (int i = 0; i < TEXT_COUNT; i++)
		fprintf(file, "\"text-%02d-is-%03d\",", i, 2 * i);
	fprintf(file, "};\n");
	fflush(file);
	compile(in_scratch("texts.c"), in_scratch("texts.so"), "-shared", "-fPIC", NULL);
	return 0;
}

/* A copy of a file that can be damaged. */
struct copy {
	int fd;
	size_t bytes;
	unsigned char *content;
};

static struct copy copy_of(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct copy copy;
	struct stat status;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &status), 0);
	copy.bytes = (size_t)status.st_size;
	copy.content = malloc(copy.bytes);
	assert_non_null(copy.content);
	assert_int_equal(read(fd, copy.content, copy.bytes), copy.bytes);
	copy.fd = memfd_create("copy", MFD_CLOEXEC);
	assert_true(copy.fd >= 0);
	assert_int_equal(pwrite(copy.fd, copy.content, copy.bytes, 0), copy.bytes);
	return copy;
}

static void drop_copy(struct copy *copy)
{
	close(copy->fd);
	free(copy->content);
}

static void patch(const struct copy *copy, size_t offset, const void *bytes, size_t count)
{
	assert_int_equal(pwrite(copy->fd, bytes, count, (off_t)offset), count);
}

/* The program header of @type: its offset in the file. */
static size_t program_header(const struct copy *copy, uint32_t type)
{
	Elf64_Ehdr header;

	memcpy(&header, copy->content, sizeof(header));
	for (size_t i = 0; i < header.e_phnum; i++) {
		size_t offset = header.e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr segment;

		memcpy(&segment, copy->content + offset, sizeof(segment));
		if (segment.p_type == type)
			return offset;
	}
	fail_msg("no program header of type %u", type);
	return 0;
}

static void expect_symbols_of_libc(const struct elf_image *image, const struct procmap *maps, void *libc)
{
	static const char *const names[] = {
		"qsort", "strtoul", "getpid", "environ", "obstack_free", "wcstombs"};
	const struct mapping *any = procmap_find(maps, (uintptr_t)dlsym(libc, "qsort"));
	uint64_t bias, value, bytes;

	assert_non_null(any);
	assert_int_equal(elf_image_load_bias(image, maps, any, &bias), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(elf_image_symbol(image, names[i], &value, &bytes), 0);
		assert_int_equal(bias + value, (uintptr_t)dlsym(libc, names[i]));
		assert_true(bytes > 0);
	}
	assert_int_equal(elf_image_symbol(image, "executor_globals", &value, &bytes), ELF_IMAGE_E_NO_SYMBOL);
	assert_int_equal(elf_image_symbol(image, "", &value, &bytes), ELF_IMAGE_E_NO_SYMBOL);
}

static void symbols_of_libc_are_where_dlsym_says(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;
	_cleanup_(elf_image_freep) struct elf_image *image = NULL;
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	assert_non_null(libc);
	assert_int_equal(procmap_read(getpid(), &maps), 0);
	image = open_path(procmap_find(maps, (uintptr_t)dlsym(libc, "qsort"))->path);
	expect_symbols_of_libc(image, maps, libc);
	dlclose(libc);
}

static void the_same_symbols_are_found_in_memory_alone(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;
	_cleanup_(elf_image_freep) struct elf_image *image = NULL, *file = NULL;
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	const struct mapping *any;
	remote_addr base = 0;
	pid_t self = getpid();
	struct memory memory = process_memory(&self);

	assert_int_equal(procmap_read(self, &maps), 0);
	any = procmap_find(maps, (uintptr_t)dlsym(libc, "qsort"));
	for (size_t i = 0; i < maps->count && !base; i++)
		if (maps->mappings[i].inode == any->inode && maps->mappings[i].file_offset == 0)
			base = maps->mappings[i].start;
	assert_int_equal(elf_image_open_memory(&memory, base, &image), 0);
	expect_symbols_of_libc(image, maps, libc);
	file = open_path(any->path);
	assert_string_equal(elf_image_build_id(image), elf_image_build_id(file));
	dlclose(libc);
}

static void a_library_loaded_twice_has_two_biases(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;
	_cleanup_(elf_image_freep) struct elf_image *image = open_path(in_scratch("texts.so"));
	void *handles[2] = {dlmopen(LM_ID_NEWLM, in_scratch("texts.so"), RTLD_NOW),
		dlmopen(LM_ID_NEWLM, in_scratch("texts.so"), RTLD_NOW)};
	uint64_t bias, value, bytes;

	assert_non_null(handles[0]);
	assert_non_null(handles[1]);
	assert_int_equal(procmap_read(getpid(), &maps), 0);
	assert_int_equal(elf_image_symbol(image, "texts", &value, &bytes), 0);
	assert_int_equal(bytes, TEXT_COUNT * TEXT_SPACING);
	assert_ptr_not_equal(dlsym(handles[0], "texts"), dlsym(handles[1], "texts"));
	for (int i = 0; i < 2; i++) {
		const struct mapping *any = procmap_find(maps, (uintptr_t)dlsym(handles[i], "texts"));

		assert_int_equal(elf_image_load_bias(image, maps, any, &bias), 0);
		assert_int_equal(bias + value, (uintptr_t)dlsym(handles[i], "texts"));
		dlclose(handles[i]);
	}
}

static void a_file_that_is_not_mapped_has_no_bias(void **state)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;
	_cleanup_(elf_image_freep) struct elf_image *image = open_path(in_scratch("small.so"));
	static const char text[] = "1000-2000 r--p 00003000 08:01 7 /tmp/small.so\n";
	uint64_t bias = 99;

	assert_int_equal(procmap_parse(text, strlen(text), &maps), 0);
	assert_int_equal(elf_image_load_bias(image, maps, &maps->mappings[0], &bias), ELF_IMAGE_E_NOT_LOADED);
	assert_int_equal(bias, 99);
}

static void symbols_are_found_by_the_old_hash_table_too(void **state)
{
	_cleanup_(elf_image_freep) struct elf_image *image = open_path(in_scratch("sysv.so"));
	uint64_t value, bytes;

	assert_int_equal(elf_image_symbol(image, "number", &value, &bytes), 0);
	assert_int_equal(bytes, sizeof(int));
	assert_int_equal(elf_image_symbol(image, "answer", &value, &bytes), 0);
	assert_int_equal(elf_image_symbol(image, "nothing", &value, &bytes), ELF_IMAGE_E_NO_SYMBOL);
	assert_string_equal(elf_image_build_id(image), "");
}

static void an_imported_symbol_is_none(void **state)
{
	_cleanup_(elf_image_freep) struct elf_image *gnu = open_path(in_scratch("small.so"));
	_cleanup_(elf_image_freep) struct elf_image *sysv = open_path(in_scratch("sysv.so"));
	uint64_t value, bytes;

	assert_int_equal(elf_image_symbol(gnu, "nowhere", &value, &bytes), ELF_IMAGE_E_NO_SYMBOL);
	assert_int_equal(elf_image_symbol(sysv, "nowhere", &value, &bytes), ELF_IMAGE_E_NO_SYMBOL);
}

static void bytes_of_an_initialised_variable_are_its_value(void **state)
{
	_cleanup_(elf_image_freep) struct elf_image *image = open_path(in_scratch("small.so"));
	uint64_t value, bytes;
	int number = 0;

	assert_int_equal(elf_image_symbol(image, "number", &value, &bytes), 0);
	assert_int_equal(elf_image_bytes(image, value, &number, sizeof(number)), 0);
	assert_int_equal(number, 7);
	assert_int_equal(
		elf_image_bytes(image, UINT64_MAX - 1, &number, sizeof(number)), ELF_IMAGE_E_MALFORMED);
	assert_int_equal(elf_image_bytes(image, value, &number, SIZE_MAX), ELF_IMAGE_E_MALFORMED);
}

static void the_build_id_is_what_the_linker_was_told(void **state)
{
	_cleanup_(elf_image_freep) struct elf_image *image = open_path(in_scratch("small.so"));

	assert_string_equal(elf_image_build_id(image), SMALL_BUILD_ID);
}

static void section_headers_are_not_needed(void **state)
{
	_cleanup_(elf_image_freep) struct elf_image *whole = open_path(in_scratch("small.so"));
	_cleanup_(elf_image_freep) struct elf_image *image = NULL;
	struct copy copy = copy_of(in_scratch("small.so"));
	uint64_t value, bytes, value_of_whole;

	patch(&copy, offsetof(Elf64_Ehdr, e_shoff), &(uint64_t){0}, 8);
	patch(&copy, offsetof(Elf64_Ehdr, e_shnum), &(uint16_t){0}, 2);
	patch(&copy, offsetof(Elf64_Ehdr, e_shstrndx), &(uint16_t){0}, 2);
	assert_int_equal(elf_image_open(copy.fd, &image), 0);
	assert_int_equal(elf_image_symbol(whole, "answer", &value_of_whole, &bytes), 0);
	assert_int_equal(elf_image_symbol(image, "answer", &value, &bytes), 0);
	assert_int_equal(value, value_of_whole);
	assert_string_equal(elf_image_build_id(image), SMALL_BUILD_ID);
	drop_copy(&copy);
}

static void other_machines_and_classes_are_told_apart_from_garbage(void **state)
{
	struct copy copy = copy_of(in_scratch("small.so"));
	struct elf_image *image = NULL;
	_cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	patch(&copy, offsetof(Elf64_Ehdr, e_machine), &(uint16_t){EM_AARCH64}, 2);
	assert_int_equal(elf_image_open(copy.fd, &image), ELF_IMAGE_E_NOT_X86_64);
	patch(&copy, offsetof(Elf64_Ehdr, e_machine), &(uint16_t){EM_X86_64}, 2);
	patch(&copy, EI_CLASS, &(uint8_t){ELFCLASS32}, 1);
	assert_int_equal(elf_image_open(copy.fd, &image), ELF_IMAGE_E_NOT_X86_64);
	patch(&copy, 0, "#!/bin/sh", 9);
	assert_int_equal(elf_image_open(copy.fd, &image), ELF_IMAGE_E_NOT_ELF);
	assert_int_equal(elf_image_open(null, &image), ELF_IMAGE_E_NOT_ELF);
	assert_int_equal(elf_image_open(-1, &image), -EBADF);
	assert_null(image);
	drop_copy(&copy);
}

static void a_static_program_has_no_dynamic_section(void **state)
{
	struct copy copy = copy_of(in_scratch("small.so"));
	struct elf_image *image = NULL;

	patch(&copy, program_header(&copy, PT_DYNAMIC) + offsetof(Elf64_Phdr, p_type), &(uint32_t){PT_NULL},
		4);
	assert_int_equal(elf_image_open(copy.fd, &image), ELF_IMAGE_E_NO_DYNAMIC);
	drop_copy(&copy);
}

static void a_dynamic_section_beyond_the_bound_is_malformed(void **state)
{
	struct copy copy = copy_of(in_scratch("small.so"));
	struct elf_image *image = NULL;
	uint64_t bytes = (ELF_IMAGE_MAX_DYNAMIC + 1) * sizeof(Elf64_Dyn);

	patch(&copy, program_header(&copy, PT_DYNAMIC) + offsetof(Elf64_Phdr, p_filesz), &bytes, 8);
	assert_int_equal(elf_image_open(copy.fd, &image), ELF_IMAGE_E_MALFORMED);
	drop_copy(&copy);
}

/* Opens what @copy holds now; what can be opened must give the right answer or none. */
static void expect_truth_or_error(const struct copy *copy, uint64_t true_value)
{
	_cleanup_(elf_image_freep) struct elf_image *image = NULL;
	uint64_t value, bytes;
	char text[16];
	int r;

	r = elf_image_open(copy->fd, &image);
	assert_true(r >= 0);
	if (r != 0) {
		assert_null(image);
		return;
	}
	r = elf_image_symbol(image, "answer", &value, &bytes);
	assert_true(r >= 0);
	if (r == 0 && true_value)
		assert_int_equal(value, true_value);
	assert_true(elf_image_find(image, "no such text", text, sizeof(text)) > 0);
	assert_true(strlen(elf_image_build_id(image)) < ELF_IMAGE_MAX_BUILD_ID);
}

static void a_file_truncated_anywhere_gives_the_truth_or_an_error(void **state)
{
	_cleanup_(elf_image_freep) struct elf_image *whole = open_path(in_scratch("small.so"));
	struct copy copy = copy_of(in_scratch("small.so"));
	uint64_t value, bytes;

	assert_int_equal(elf_image_symbol(whole, "answer", &value, &bytes), 0);
	for (size_t length = copy.bytes; length-- > 0;) {
		assert_int_equal(ftruncate(copy.fd, (off_t)length), 0);
		expect_truth_or_error(&copy, value);
	}
	drop_copy(&copy);
}

static void flipped_bits_do_no_harm(void **state)
{
	struct copy copy = copy_of(in_scratch("small.so"));
	unsigned seed = 1;

	for (int round = 0; round < 10000; round++) {
		/* Half of them where the headers and tables are. */
		size_t range = round % 2 ? copy.bytes : 1536;
		size_t offset = (size_t)rand_r(&seed) % range;
		unsigned char flipped = copy.content[offset] ^ (unsigned char)(1u << (rand_r(&seed) % 8));

		patch(&copy, offset, &flipped, 1);
		expect_truth_or_error(&copy, 0);
		patch(&copy, offset, &copy.content[offset], 1);
	}
	drop_copy(&copy);
}

static void a_text_is_found_wherever_it_stands(void **state)
{
	_cleanup_(elf_image_freep) struct elf_image *image = open_path(in_scratch("texts.so"));
	char text[32], follows[4] = "";

	for (int i = 0; i < TEXT_COUNT; i++) {
		snprintf(text, sizeof(text), "text-%02d-is-", i);
		assert_int_equal(elf_image_find(image, text, follows, 3), 0);
		assert_int_equal(atoi(follows), 2 * i);
	}
	assert_int_equal(elf_image_find(image, "text-99-is-", follows, 2), ELF_IMAGE_E_NO_SYMBOL);
}

static int refuse_to_read(void *context, remote_addr addr, void *into, size_t bytes)
{
	return *(int *)context;
}

static void what_the_memory_says_is_passed_on(void **state)
{
	int answer = -EPERM;
	struct memory memory = {refuse_to_read, &answer};
	struct elf_image *image = NULL;

	assert_int_equal(elf_image_open_memory(&memory, 0x1000, &image), -EPERM);
	answer = SUPPORT_E_FAULT;
	assert_int_equal(elf_image_open_memory(&memory, 0x1000, &image), ELF_IMAGE_E_NOT_LOADED);
	assert_null(image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_of_libc_are_where_dlsym_says),
		cmocka_unit_test(the_same_symbols_are_found_in_memory_alone),
		cmocka_unit_test(a_library_loaded_twice_has_two_biases),
		cmocka_unit_test(a_file_that_is_not_mapped_has_no_bias),
		cmocka_unit_test(symbols_are_found_by_the_old_hash_table_too),
		cmocka_unit_test(an_imported_symbol_is_none),
		cmocka_unit_test(bytes_of_an_initialised_variable_are_its_value),
		cmocka_unit_test(the_build_id_is_what_the_linker_was_told),
		cmocka_unit_test(section_headers_are_not_needed),
		cmocka_unit_test(other_machines_and_classes_are_told_apart_from_garbage),
		cmocka_unit_test(a_static_program_has_no_dynamic_section),
		cmocka_unit_test(a_dynamic_section_beyond_the_bound_is_malformed),
		cmocka_unit_test(a_file_truncated_anywhere_gives_the_truth_or_an_error),
		cmocka_unit_test(flipped_bits_do_no_harm),
		cmocka_unit_test(a_text_is_found_wherever_it_stands),
		cmocka_unit_test(what_the_memory_says_is_passed_on),
	};

	return cmocka_run_group_tests_name("symbols/elf_image", tests, build_libraries, remove_scratch);
}
