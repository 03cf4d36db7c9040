/* SPDX-License-Identifier: MIT
 *
 * Puts together what the other files of this room find out: the image, the version, the layout, and the proof
 * that they fit the live process. And says no: a build whose layout isn't known is refused with a sentence,
 * never read on a guess, since a wrong offset shows as a plausible wrong profile.
 *
 * Of the two sources of a layout the debug information is the binary's own word: where it is at hand and
 * differs from the table (a distribution's patch), it wins, and layout_source says so.
 */
#include "symbols/php_binary.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/elf_image.h"
#include "symbols/layout_dwarf.h"
#include "symbols/php_accessors.h"
#include "symbols/php_image.h"
#include "symbols/php_self_test.h"
#include "symbols/php_version.h"
#include "symbols/printable.h"

/* A process that executes another program meanwhile (FPM reloads that way) is looked at again, this often. */
#define MAX_ATTEMPTS 3

struct examination {
	pid_t pid;
	const struct memory *memory;
	struct procmap *maps;
	struct php_image image;
	struct php_binary *binary;
	char *why;
	size_t why_bytes;
};

/* Writes the sentence and passes @result through. */
__attribute__((format(printf, 3, 4))) static int refuse(
	struct examination *e, int result, const char *format, ...)
{
	va_list arguments;
	int prefix;

	if (!e->why || !e->why_bytes)
		return result;
	prefix = snprintf(e->why, e->why_bytes, "process %d: ", (int)e->pid);
	if (prefix < 0 || (size_t)prefix >= e->why_bytes)
		return result;
	va_start(arguments, format);
	vsnprintf(e->why + prefix, e->why_bytes - (size_t)prefix, format, arguments);
	va_end(arguments);
	return result;
}

static int refuse_unreadable(struct examination *e, int error)
{
	if (error == -ESRCH)
		return refuse(
			e, error, "there is no such process, or it has ended; `ps` lists those there are");
	if (error == -EACCES || error == -EPERM)
		return refuse(e, error,
			"its memory may not be read (%s): run as root or with CAP_SYS_PTRACE; `cbox-profd "
			"doctor %d` "
			"says what stands in the way",
			strerror(-error), (int)e->pid);
	return refuse(e, error,
		"its memory can't be read (%s); `cbox-profd doctor %d` says what stands in the way",
		strerror(-error), (int)e->pid);
}

static int refuse_version(struct examination *e, const char *text, unsigned id)
{
	const char *known = layout_known_versions();

	if (id < 70400)
		return refuse(e, PHP_BINARY_E_UNKNOWN_VERSION,
			"PHP %s is older than this build knows (%s); only an update of PHP helps", text,
			known);
	return refuse(e, PHP_BINARY_E_UNKNOWN_VERSION,
		"PHP %s is newer than this build knows (%s); look for a newer cbox-profd", text, known);
}

static int refuse_thread_safe(struct examination *e, const char *version)
{
	return refuse(e, PHP_BINARY_E_ZTS,
		"PHP %s is a thread-safe (ZTS) build, which keeps its state per thread; only non-thread-safe "
		"(NTS) "
		"builds can be read: run PHP from such a package",
		version);
}

/* The program's name, for the message that says it isn't PHP. */
static void read_program_name(pid_t pid, char *name, size_t bytes)
{
	char link[64], target[256];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
	length = readlink(link, target, sizeof(target) - 1);
	target[length > 0 ? length : 0] = '\0';
	printable_copy(name, bytes, length > 0 ? target : "its program");
}

static int locate(struct examination *e)
{
	char program[256];
	int r;

	r = php_image_find(e->pid, e->memory, e->maps, &e->image);
	if (r == PHP_IMAGE_E_NOT_X86_64)
		return refuse(e, PHP_BINARY_E_NOT_X86_64,
			"it runs a program that is not x86-64; only x86-64 PHP can be read");
	if (r == PHP_IMAGE_E_NOT_PHP) {
		read_program_name(e->pid, program, sizeof(program));
		return refuse(e, PHP_BINARY_E_NOT_PHP,
			"neither %s nor a library it has mapped is PHP (none exports executor_globals); name "
			"a "
			"php-fpm or php process",
			program);
	}
	return r == 0 ? 0 : refuse_unreadable(e, r);
}

static void note_addresses(struct examination *e)
{
	struct php_binary *binary = e->binary;

	printable_copy(binary->path, sizeof(binary->path), e->image.php.mapping->path);
	snprintf(binary->build_id, sizeof(binary->build_id), "%s", elf_image_build_id(e->image.php.image));
	binary->executor_globals = php_image_address(&e->image, "executor_globals");
	binary->compiler_globals = php_image_address(&e->image, "compiler_globals");
	binary->sapi_globals = php_image_address(&e->image, "sapi_globals");
	binary->core_globals = php_image_address(&e->image, "core_globals");
	binary->module_registry = php_image_address(&e->image, "module_registry");
	binary->sapi_module = php_image_address(&e->image, "sapi_module");
}

/* Whatever the live process can't say is asked of the binary, so that the reason given is the true one. */
static int explain_version_failure(struct examination *e, int failure)
{
	struct php_version version = {.text = "of unknown version"};
	int found = php_version_find(e->image.php.image, &version);

	if (e->image.thread_safe)
		return refuse_thread_safe(e, version.text);
	if (found == 0 && !layout_for_version(version.id))
		return refuse_version(e, version.text, version.id);
	if (failure == PHP_VERSION_E_NOT_STARTED)
		return refuse(e, PHP_BINARY_E_NOT_STARTED,
			"PHP %s has not finished starting; try again in a moment", version.text);
	return refuse(e, PHP_BINARY_E_UNKNOWN_VERSION,
		"PHP %s keeps its list of modules in a way this build does not know (%s); use a PHP of these "
		"versions",
		version.text, layout_known_versions());
}

static int identify(struct examination *e)
{
	struct php_version version;
	int r;

	r = php_version_read(e->memory, e->binary->module_registry, &version);
	if (r < 0)
		return refuse_unreadable(e, r);
	if (r > 0)
		return explain_version_failure(e, r);
	if (e->image.thread_safe || version.zts)
		return refuse_thread_safe(e, version.text);
	if (!layout_for_version(version.id))
		return refuse_version(e, version.text, version.id);
	snprintf(e->binary->version, sizeof(e->binary->version), "%s", version.text);
	e->binary->version_id = version.id;
	e->binary->debug = version.debug;
	return 0;
}

static int choose_layout(struct examination *e)
{
	struct php_binary *binary = e->binary;
	const struct layout *table = layout_for_version(binary->version_id);
	_cleanup_free_ struct layout *own = malloc(sizeof(*own));
	const char *field;
	size_t iterator = 0;
	uint32_t a, b;

	if (!own)
		return refuse(e, -ENOMEM, "out of memory while reading its layout");
	binary->layout = table;
	if (layout_from_dwarf(e->image.php.fd, binary->build_id, table, own) != 0) {
		if (binary->debug)
			return refuse(e, PHP_BINARY_E_DEBUG,
				"PHP %s is a debug build, whose layout only its debug information tells, and "
				"there is none "
				"for build id %s; install its debug symbols or use a release build",
				binary->version, binary->build_id[0] ? binary->build_id : "(none)");
		binary->layout_source = LAYOUT_FROM_TABLE;
	} else if (layout_difference(table, own, &iterator, &field, &a, &b) == 0) {
		binary->layout_source = LAYOUT_TABLE_AND_DWARF;
	} else {
		binary->layout_source = LAYOUT_FROM_DWARF;
		binary->layout = binary->own_layout = TAKE(own);
	}
	return 0;
}

static void read_sapi_name(struct examination *e)
{
	char name[sizeof(e->binary->sapi)];
	remote_addr text;

	if (e->binary->sapi_module &&
		memory_read(e->memory, e->binary->sapi_module + e->binary->layout->sapi_module_name, &text,
			sizeof(text)) == 0 &&
		memory_read_string(e->memory, text, name, sizeof(name)) == 0)
		printable_copy(e->binary->sapi, sizeof(e->binary->sapi), name);
}

static int prove(struct examination *e)
{
	const struct php_image_file *php = &e->image.php;
	struct php_binary *binary = e->binary;
	const char *what;
	int r;

	r = php_self_test(e->memory, binary->executor_globals, binary->layout, &what);
	if (r < 0)
		return refuse_unreadable(e, r);
	if (r > 0)
		return refuse(e, PHP_BINARY_E_SELF_TEST,
			"PHP %s does not fit the layout of PHP %s: %s; install its debug symbols (build id "
			"%s) or report it",
			binary->version, binary->layout->version, what,
			binary->build_id[0] ? binary->build_id : "none");
	read_sapi_name(e);
	binary->mm_heap_pointer = php_accessors_mm_heap_pointer(php->image, php->bias, e->memory, e->maps);
	binary->gc_globals = php_accessors_gc_globals(php->image, php->bias, e->memory, e->maps);
	return 0;
}

static int examine(struct examination *e)
{
	int r;

	r = procmap_read(e->pid, &e->maps);
	/* Kernel threads and processes that have ended but are not waited for have no memory. */
	if (r == 0 && e->maps->count == 0)
		r = -ESRCH;
	if (r != 0)
		return refuse_unreadable(e, r);
	r = locate(e);
	if (r != 0)
		return r;
	note_addresses(e);
	r = identify(e);
	if (r == 0)
		r = choose_layout(e);
	if (r == 0)
		r = prove(e);
	return r;
}

/* Does the process still run the program whose maps were read? -ESRCH if it has ended. */
static int same_program(const struct examination *e)
{
	_cleanup_(procmap_freep) struct procmap *now = NULL;
	int r;

	r = procmap_read(e->pid, &now);
	if (r != 0)
		return r;
	if (now->count == 0)
		return -ESRCH;
	return e->maps->count && now->mappings[0].start == e->maps->mappings[0].start &&
	       now->mappings[0].inode == e->maps->mappings[0].inode;
}

static void examination_deinit(struct examination *e)
{
	php_image_deinit(&e->image);
	if (e->maps)
		procmap_free(e->maps);
	if (e->binary)
		php_binary_free(e->binary);
}

int php_binary_examine(pid_t pid, const struct memory *memory, struct php_binary **ret_binary, char *ret_why,
	size_t why_bytes)
{
	int r = -ESRCH;

	for (int attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
		_cleanup_(examination_deinit) struct examination e = {
			.pid = pid,
			.memory = memory,
			.image = {.executable.fd = -1, .php.fd = -1},
			.binary = calloc(1, sizeof(*e.binary)),
			.why = ret_why,
			.why_bytes = why_bytes,
		};
		int same;

		if (!e.binary)
			return refuse(&e, -ENOMEM, "out of memory");
		r = examine(&e);
		if (r == 0)
			*ret_binary = TAKE(e.binary);
		if (r <= 0)
			return r;
		/* What failed may have failed because the process ended, or became another program. */
		same = same_program(&e);
		if (same < 0)
			return refuse_unreadable(&e, same);
		if (same)
			return r;
	}
	return r;
}

void php_binary_free(struct php_binary *binary)
{
	free(binary->own_layout);
	free(binary);
}
