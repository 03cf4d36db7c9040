/* SPDX-License-Identifier: MIT
 *
 * Reads the fields that layout.def names from debug information: the structures are looked for by name among
 * the top-level entries of all units, and each field's path ("request_info.request_uri", "This.u1.type_info")
 * is followed through members, typedefs and nameless members.
 *
 * A structure is the same in every unit that has it, so the first definition serves and the search ends with
 * the last structure found. What is missing (an SAPI that doesn't have FastCGI) keeps the table's value; but
 * debug information that lacks executor_globals or execute_data is of something else than PHP.
 *
 * Debug information is a file's content like any other: searches and nesting are bounded.
 */
#include "symbols/layout_dwarf.h"

#include <ctype.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEBUG_FILE_DIRECTORY "/usr/lib/debug/.build-id"
/* Top-level entries looked at: a unit that includes php.h has some 600, and PHP some hundreds of units, of
 * which the first few have most of the structures. */
#define MAX_ENTRIES 4000000u
/* Members looked at for one field: executor_globals has about a hundred. */
#define MAX_MEMBERS 100000u
/* Typedefs and qualifiers around a type, and nameless structures within each other. */
#define MAX_NESTING 16
/* A file with debug information is read whole; a larger one is not PHP's. */
#define MAX_FILE_BYTES (INT64_C(1) << 30)
#define WORD_BYTES 8

enum structure_id {
#define STRUCTURE(prefix, c_name) STRUCTURE_##prefix,
#define FIELD(prefix, name, path, ...)
#define CONSTANT(name, ...)
#include "symbols/layout.def"
#undef STRUCTURE
#undef FIELD
#undef CONSTANT
	STRUCTURE_COUNT
};

static const char *const structure_names[STRUCTURE_COUNT] = {
#define STRUCTURE(prefix, c_name) [STRUCTURE_##prefix] = (c_name),
#define FIELD(prefix, name, path, ...)
#define CONSTANT(name, ...)
#include "symbols/layout.def"
#undef STRUCTURE
#undef FIELD
#undef CONSTANT
};

static const struct {
	enum structure_id structure;
	const char *path;
	size_t offset; /* of the field's number in struct layout */
} fields[] = {
#define STRUCTURE(prefix, c_name)
#define FIELD(prefix, name, path, ...) {STRUCTURE_##prefix, path, offsetof(struct layout, prefix##_##name)},
#define CONSTANT(name, ...)
#include "symbols/layout.def"
#undef STRUCTURE
#undef FIELD
#undef CONSTANT
};

/* Without these no stack can be read and no frame named. */
static const enum structure_id essential[] = {
	STRUCTURE_eg,
	STRUCTURE_ex,
	STRUCTURE_op_array,
	STRUCTURE_ce,
	STRUCTURE_str,
	STRUCTURE_op,
	STRUCTURE_vm_stack,
};

struct found {
	Dwarf_Die structures[STRUCTURE_COUNT];
	bool is_found[STRUCTURE_COUNT];
	size_t left;
};

/* Follows typedefs and qualifiers to what has members. */
static bool strip_type(Dwarf_Die *type)
{
	for (int i = 0; i < MAX_NESTING; i++) {
		int tag = dwarf_tag(type);
		Dwarf_Attribute attribute;

		if (tag == DW_TAG_structure_type || tag == DW_TAG_union_type)
			return !dwarf_hasattr(type, DW_AT_declaration);
		if (tag != DW_TAG_typedef && tag != DW_TAG_const_type && tag != DW_TAG_volatile_type)
			return false;
		if (!dwarf_attr_integrate(type, DW_AT_type, &attribute) ||
			!dwarf_formref_die(&attribute, type))
			return false;
	}
	return false;
}

static bool member_type(Dwarf_Die *member, Dwarf_Die *ret_type)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(member, DW_AT_type, &attribute) &&
	       dwarf_formref_die(&attribute, ret_type) && strip_type(ret_type);
}

static uint64_t member_offset(Dwarf_Die *member)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset;

	if (dwarf_attr(member, DW_AT_data_member_location, &attribute) &&
		dwarf_formudata(&attribute, &offset) == 0)
		return offset;
	if (dwarf_attr(member, DW_AT_data_bit_offset, &attribute) &&
		dwarf_formudata(&attribute, &offset) == 0)
		return offset / 8;
	return 0; /* members of a union have none */
}

struct member_search {
	const char *name;
	size_t name_bytes;
	unsigned members_left; /* to be looked at */
	Dwarf_Die member;      /* what was found */
	uint64_t offset;       /* of it */
};

/* Finds the member in @structure, which begins at @base, also within nameless members. */
/* NOLINTNEXTLINE(misc-no-recursion): MAX_NESTING levels at most, and members_left members in all */
static bool find_member(struct member_search *search, Dwarf_Die structure, uint64_t base, int depth)
{
	Dwarf_Die member;

	if (depth >= MAX_NESTING || dwarf_child(&structure, &member) != 0)
		return false;
	while (search->members_left) {
		const char *name = dwarf_diename(&member);
		Dwarf_Die inner;

		search->members_left--;
		if (dwarf_tag(&member) == DW_TAG_member) {
			uint64_t offset = base + member_offset(&member);

			if (name && strlen(name) == search->name_bytes &&
				memcmp(name, search->name, search->name_bytes) == 0) {
				search->member = member;
				search->offset = offset;
				return true;
			}
			if (!name && member_type(&member, &inner) &&
				find_member(search, inner, offset, depth + 1))
				return true;
		}
		if (dwarf_siblingof(&member, &member) != 0)
			break;
	}
	return false;
}

static bool resolve_path(Dwarf_Die structure, const char *path, uint32_t *ret_offset)
{
	uint64_t offset = 0;

	if (strcmp(path, "sizeof") == 0) {
		Dwarf_Word bytes;

		if (dwarf_aggregate_size(&structure, &bytes) != 0 || bytes >= LAYOUT_ABSENT)
			return false;
		*ret_offset = (uint32_t)bytes;
		return true;
	}
	for (;;) {
		struct member_search search = {path, strcspn(path, "."), .members_left = MAX_MEMBERS};

		if (!find_member(&search, structure, offset, 0) || search.offset >= LAYOUT_ABSENT)
			return false;
		offset = search.offset;
		path += search.name_bytes;
		if (!*path)
			break;
		path++;
		if (!member_type(&search.member, &structure))
			return false;
	}
	*ret_offset = (uint32_t)offset;
	return true;
}

/* Takes down @entry if it defines one of the structures, or is a typedef of its name. */
static void consider(struct found *found, Dwarf_Die *entry)
{
	int tag = dwarf_tag(entry);
	const char *name;

	if (tag != DW_TAG_structure_type && tag != DW_TAG_union_type && tag != DW_TAG_typedef)
		return;
	name = dwarf_diename(entry);
	if (!name)
		return;
	for (size_t i = 0; i < STRUCTURE_COUNT; i++) {
		Dwarf_Die type = *entry;

		if (found->is_found[i] || strcmp(name, structure_names[i]) != 0 || !strip_type(&type))
			continue;
		found->structures[i] = type;
		found->is_found[i] = true;
		found->left--;
	}
}

static void find_structures(Dwarf *dwarf, struct found *found)
{
	unsigned entries = 0;
	Dwarf_CU *unit = NULL;
	Dwarf_Die unit_die;

	while (found->left && dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &unit_die, NULL) == 0) {
		Dwarf_Die entry;

		if (dwarf_child(&unit_die, &entry) != 0)
			continue;
		do {
			if (++entries > MAX_ENTRIES)
				return;
			consider(found, &entry);
		} while (found->left && dwarf_siblingof(&entry, &entry) == 0);
	}
}

static uint32_t value_of(const struct layout *layout, size_t field)
{
	uint32_t value;

	memcpy(&value, (const char *)layout + fields[field].offset, sizeof(value));
	return value;
}

/* Structures of which @fallback has no field are of another version: nothing to look for. */
static void expect_structures(const struct layout *fallback, struct found *found)
{
	for (size_t i = 0; i < STRUCTURE_COUNT; i++)
		found->is_found[i] = true;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (value_of(fallback, i) != LAYOUT_ABSENT)
			found->is_found[fields[i].structure] = false;
	}
	for (size_t i = 0; i < STRUCTURE_COUNT; i++)
		found->left += !found->is_found[i];
}

/* How much of its structure there is from a field on, up to a word; where the structure's size isn't known, a
 * word. */
static uint32_t room_behind(const struct layout *layout, size_t field)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].structure == fields[field].structure && strcmp(fields[i].path, "sizeof") == 0) {
			uint32_t size = value_of(layout, i), offset = value_of(layout, field);

			if (i == field)
				return size < WORD_BYTES ? size : WORD_BYTES;
			if (offset > size)
				return 0;
			return size - offset < WORD_BYTES ? size - offset : WORD_BYTES;
		}
	return WORD_BYTES;
}

/* The reader copies structures whole and looks at their fields in the copy: sizes and offsets must agree,
 * whatever a file says. */
static bool offsets_are_in_bounds(const struct layout *layout, const struct layout *fallback)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (value_of(fallback, i) == LAYOUT_ABSENT)
			continue;
		if (value_of(layout, i) > LAYOUT_DWARF_MAX_OFFSET ||
			room_behind(layout, i) < room_behind(fallback, i))
			return false;
	}
	return true;
}

static int read_layout(Dwarf *dwarf, const struct layout *fallback, struct layout *ret_layout)
{
	struct found expected = {0}, found;
	struct layout layout = *fallback;

	expect_structures(fallback, &expected);
	found = expected;
	find_structures(dwarf, &found);
	for (size_t i = 0; i < sizeof(essential) / sizeof(essential[0]); i++)
		if (!found.is_found[essential[i]])
			return LAYOUT_DWARF_E_PARTIAL;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		enum structure_id id = fields[i].structure;
		uint32_t offset;

		if (!expected.is_found[id] && found.is_found[id] &&
			resolve_path(found.structures[id], fields[i].path, &offset))
			memcpy((char *)&layout + fields[i].offset, &offset, sizeof(offset));
	}
	if (!offsets_are_in_bounds(&layout, fallback))
		return LAYOUT_DWARF_E_PARTIAL;
	*ret_layout = layout;
	return 0;
}

static void elf_endp(Elf **elf)
{
	elf_end(*elf);
}

static void dwarf_endp(Dwarf **dwarf)
{
	dwarf_end(*dwarf);
}

/* libdw reads all debug sections at once: look whether there are any before asking it. */
static bool has_debug_info(Elf *elf)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		if (name && (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0))
			return true;
	}
	return false;
}

static int layout_from_file(int fd, const struct layout *fallback, struct layout *ret_layout)
{
	_cleanup_(elf_endp) Elf *elf = NULL;
	_cleanup_(dwarf_endp) Dwarf *dwarf = NULL;
	struct stat status;

	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size > MAX_FILE_BYTES)
		return LAYOUT_DWARF_E_NONE;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL); /* not mapped: see elf_image.c */
	if (!elf || elf_kind(elf) != ELF_K_ELF || !has_debug_info(elf))
		return LAYOUT_DWARF_E_NONE;
	dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	if (!dwarf)
		return LAYOUT_DWARF_E_NONE;
	return read_layout(dwarf, fallback, ret_layout);
}

/* /usr/lib/debug/.build-id/ab/cdef….debug, as distributions install it. */
static int open_debug_file(const char *build_id)
{
	char path[512];

	for (const char *c = build_id; *c; c++)
		if (!isxdigit((unsigned char)*c))
			return -1;
	if (strlen(build_id) < 3)
		return -1;
	snprintf(path, sizeof(path), DEBUG_FILE_DIRECTORY "/%.2s/%s.debug", build_id, build_id + 2);
	return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int layout_from_dwarf(int fd, const char *build_id, const struct layout *fallback, struct layout *ret_layout)
{
	_cleanup_close_ int debug_fd = -1;
	int r = LAYOUT_DWARF_E_NONE;

	if (fd >= 0)
		r = layout_from_file(fd, fallback, ret_layout);
	if (r != LAYOUT_DWARF_E_NONE)
		return r;
	debug_fd = open_debug_file(build_id);
	return debug_fd < 0 ? LAYOUT_DWARF_E_NONE : layout_from_file(debug_fd, fallback, ret_layout);
}
