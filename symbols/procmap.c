/* SPDX-License-Identifier: MIT
 *
 * The parser of /proc/PID/maps. It knows the format of proc_pid_maps(5) and nothing of what is mapped.
 *
 * A line is believed only if it is of the format to the last character and lies behind the one before it: a
 * process can put any byte into the names of the files it maps, so a parser that resynchronised on garbage
 * could be shown mappings that don't exist. Of a path the kernel escapes the newline alone (as \012), which
 * is undone here; a path that really holds the four characters \012 is thereby misread, and a file really
 * named "x (deleted)" is taken for a deleted one. Neither matters: whoever opens a path compares device and
 * inode.
 */
#include "symbols/procmap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DELETED_SUFFIX " (deleted)"
#define ESCAPED_NEWLINE "\\012"

/* A text longer than this is refused with -E2BIG. vm.max_map_count mappings of 250 characters each. */
#define PROCMAP_MAX_BYTES (16u << 20)

/* The kernel walks the mappings anew for each read() of the file, so that lines of two reads can overlap when
 * the process maps and unmaps meanwhile. Such a text is thrown away, this often. */
#define PROCMAP_MAX_ATTEMPTS 4

/* What is left of one line. */
struct cursor {
	char *at, *end;
};

static bool take_number(struct cursor *line, unsigned base, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;
	char *start = line->at;

	for (; line->at < line->end; line->at++) {
		char c = *line->at;
		unsigned digit;

		if (c >= '0' && c <= '9')
			digit = (unsigned)(c - '0');
		else if (base == 16 && c >= 'a' && c <= 'f')
			digit = (unsigned)(c - 'a' + 10);
		else
			break;
		if (number > (max - digit) / base)
			return false;
		number = number * base + digit;
	}
	if (line->at == start)
		return false;
	*ret_number = number;
	return true;
}

static bool take_char(struct cursor *line, char expected)
{
	if (line->at == line->end || *line->at != expected)
		return false;
	line->at++;
	return true;
}

/* One of the four letters of "rwxp": @set, or @unset. */
static bool take_flag(struct cursor *line, char set, char unset, bool *ret_is_set)
{
	*ret_is_set = line->at < line->end && *line->at == set;
	return take_char(line, set) || take_char(line, unset);
}

static void unescape_newlines(char *path)
{
	const size_t escape_bytes = strlen(ESCAPED_NEWLINE);
	char *to = strstr(path, ESCAPED_NEWLINE), *from = to;

	if (!to)
		return;
	while (*from) {
		if (strncmp(from, ESCAPED_NEWLINE, escape_bytes) == 0) {
			*to++ = '\n';
			from += escape_bytes;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

/* Takes what is left of the line, which ends in a NUL, as the path. */
static void take_path(struct cursor *line, struct mapping *mapping)
{
	const size_t suffix_bytes = strlen(DELETED_SUFFIX);
	size_t bytes;

	while (take_char(line, ' '))
		;
	bytes = (size_t)(line->end - line->at);
	mapping->deleted =
		bytes > suffix_bytes && memcmp(line->end - suffix_bytes, DELETED_SUFFIX, suffix_bytes) == 0;
	if (mapping->deleted)
		line->at[bytes - suffix_bytes] = '\0';
	unescape_newlines(line->at);
	mapping->path = line->at;
}

static bool parse_line(struct cursor line, struct mapping *ret_mapping)
{
	struct mapping mapping = {0};
	uint64_t major, minor;
	bool private;

	if (!take_number(&line, 16, UINT64_MAX, &mapping.start) || !take_char(&line, '-') ||
		!take_number(&line, 16, UINT64_MAX, &mapping.end) || !take_char(&line, ' ') ||
		!take_flag(&line, 'r', '-', &mapping.readable) ||
		!take_flag(&line, 'w', '-', &mapping.writable) ||
		!take_flag(&line, 'x', '-', &mapping.executable) || !take_flag(&line, 'p', 's', &private) ||
		!take_char(&line, ' ') || !take_number(&line, 16, UINT64_MAX, &mapping.file_offset) ||
		!take_char(&line, ' ') || !take_number(&line, 16, UINT32_MAX, &major) ||
		!take_char(&line, ':') || !take_number(&line, 16, UINT32_MAX, &minor) ||
		!take_char(&line, ' ') || !take_number(&line, 10, UINT64_MAX, &mapping.inode))
		return false;
	if (line.at != line.end && *line.at != ' ')
		return false;
	mapping.shared = !private;
	mapping.device_major = (uint32_t)major;
	mapping.device_minor = (uint32_t)minor;
	if (mapping.end <= mapping.start)
		return false;
	take_path(&line, &mapping);
	*ret_mapping = mapping;
	return true;
}

static size_t count_lines(const char *text, size_t bytes)
{
	size_t lines = 0;

	for (const char *at = text, *end = text + bytes;
		at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
		lines++;
	return lines;
}

int procmap_parse(const char *text, size_t bytes, struct procmap **ret_maps)
{
	_cleanup_(procmap_freep) struct procmap *maps = NULL;
	size_t lines;
	char *at;

	if (bytes > PROCMAP_MAX_BYTES)
		return -E2BIG;
	lines = count_lines(text, bytes);
	if (lines > PROCMAP_MAX_MAPPINGS)
		return -E2BIG;
	/* The kernel ends every line: a text that doesn't was cut, perhaps in mid-path. */
	if (bytes && (text[bytes - 1] != '\n' || memchr(text, '\0', bytes)))
		return -EINVAL;

	maps = calloc(1, sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	maps->text = malloc(bytes + 1);
	maps->mappings = calloc(lines + 1, sizeof(*maps->mappings));
	if (!maps->text || !maps->mappings)
		return -ENOMEM;
	if (bytes)
		memcpy(maps->text, text, bytes);
	maps->text[bytes] = '\0';

	at = maps->text;
	for (size_t i = 0; i < lines; i++) {
		char *newline = memchr(at, '\n', bytes - (size_t)(at - maps->text));

		*newline = '\0';
		if (!parse_line((struct cursor){at, newline}, &maps->mappings[i]))
			return -EINVAL;
		if (i && maps->mappings[i].start < maps->mappings[i - 1].end)
			return -EINVAL;
		at = newline + 1;
	}
	maps->count = lines;
	*ret_maps = TAKE(maps);
	return 0;
}

static int read_maps_text(pid_t pid, char **ret_text, size_t *ret_bytes)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = -1;
	size_t used = 0, room = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	for (;;) {
		ssize_t got;

		if (used == room) {
			char *larger;

			if (room >= PROCMAP_MAX_BYTES)
				return -E2BIG;
			room = room ? 2 * room : 65536;
			larger = realloc(text, room);
			if (!larger)
				return -ENOMEM;
			text = larger;
		}
		got = read(fd, text + used, room - used);
		if (got < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (got == 0)
			break;
		used += (size_t)got;
	}
	*ret_text = TAKE(text);
	*ret_bytes = used;
	return 0;
}

int procmap_read(pid_t pid, struct procmap **ret_maps)
{
	int r = -EINVAL;

	for (int attempt = 0; attempt < PROCMAP_MAX_ATTEMPTS && r == -EINVAL; attempt++) {
		_cleanup_free_ char *text = NULL;
		size_t bytes = 0;

		r = read_maps_text(pid, &text, &bytes);
		if (r == 0)
			r = procmap_parse(text, bytes, ret_maps);
	}
	return r;
}

const struct mapping *procmap_find(const struct procmap *maps, remote_addr addr)
{
	size_t low = 0, high = maps->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct mapping *mapping = &maps->mappings[middle];

		if (addr < mapping->start)
			high = middle;
		else if (addr >= mapping->end)
			low = middle + 1;
		else
			return mapping;
	}
	return NULL;
}

void procmap_free(struct procmap *maps)
{
	free(maps->mappings);
	free(maps->text);
	free(maps);
}
