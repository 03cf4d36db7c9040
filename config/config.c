/* SPDX-License-Identifier: MIT
 *
 * Reads the configuration file. It takes libyaml's events one by one instead of a document tree: every event
 * knows its line and column, aliases can be refused where they stand (a file of a kilobyte could otherwise
 * stand for gigabytes), and the shape of the file is so fixed that the reader needs no recursion: sections of
 * scalars, and one list of such. The whole is read into a copy that replaces the caller's only when
 * everything was right.
 *
 * What the keys are is config_keys.c's, what a value may be config_values.c's.
 */
#include "config/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "config/config_keys.h"

#define _cleanup_(fn) __attribute__((cleanup(fn)))

enum {
	MAX_KEYS = 16, /* of one section */
	KEY_PATH_BYTES = 96,
};

/* Where something stood; lines and columns from 1. 0: nowhere. */
struct place {
	size_t line, column;
};

struct reader {
	yaml_parser_t yaml;
	yaml_event_t event; /* the one being looked at */
	bool has_event;
	const char *name; /* of the file */
	const char *text;
	size_t bytes;
	char *why;
	size_t why_bytes;
	struct config *config;
	/* For what can only be checked when all was read. */
	struct place rate, max_rate, clients_per_uid, pool_rates[CONFIG_MAX_POOLS];
};

static void reader_deinit(struct reader *reader)
{
	if (reader->has_event)
		yaml_event_delete(&reader->event);
	yaml_parser_delete(&reader->yaml);
}

__attribute__((format(printf, 3, 4))) static int complain(
	struct reader *reader, struct place place, const char *format, ...)
{
	char message[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(message, sizeof(message), format, arguments);
	va_end(arguments);
	snprintf(reader->why, reader->why_bytes, "%s:%zu:%zu: %s", reader->name, place.line, place.column,
		message);
	return -EINVAL;
}

static struct place place_of(const yaml_mark_t *mark)
{
	return (struct place){.line = mark->line + 1, .column = mark->column + 1};
}

static struct place here(const struct reader *reader)
{
	return place_of(&reader->event.start_mark);
}

static struct place place_at_offset(const struct reader *reader, size_t offset)
{
	struct place place = {1, 1};

	for (size_t i = 0; i < offset && i < reader->bytes; i++) {
		place.column++;
		if (reader->text[i] == '\n')
			place = (struct place){place.line + 1, 1};
	}
	return place;
}

/* Does a tab stand before anything else in this line (counted from 0)? */
static bool is_indented_by_tab(const struct reader *reader, size_t line)
{
	size_t offset = 0;

	for (; line && offset < reader->bytes; offset++)
		line -= reader->text[offset] == '\n';
	while (offset < reader->bytes && reader->text[offset] == ' ')
		offset++;
	return offset < reader->bytes && reader->text[offset] == '\t';
}

/* What libyaml could not read. Its message for a tab, by far the most frequent, names everything but the tab.
 */
static int complain_of_syntax(struct reader *reader)
{
	const yaml_parser_t *yaml = &reader->yaml;
	const char *problem = yaml->problem ? yaml->problem : "not enough memory";

	if (yaml->error == YAML_READER_ERROR)
		return complain(reader, place_at_offset(reader, yaml->problem_offset),
			"not UTF-8 text: %s; save the file as UTF-8", problem);
	if (is_indented_by_tab(reader, yaml->problem_mark.line))
		return complain(reader, place_of(&yaml->problem_mark), "a tab; indentation is spaces only");
	return complain(reader, place_of(&yaml->problem_mark), "not YAML: %s%s%s",
		yaml->context ? yaml->context : "", yaml->context ? ": " : "", problem);
}

/* Moves to the next event. */
static int next(struct reader *reader)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (reader->has_event)
		yaml_event_delete(&reader->event);
	reader->has_event = false;
	if (!yaml_parser_parse(&reader->yaml, &reader->event))
		return complain_of_syntax(reader);
	reader->has_event = true;
	if (reader->event.type == YAML_ALIAS_EVENT)
		return complain(reader, here(reader), "an alias (*); allowed: the value itself");
	if (reader->event.type == YAML_SCALAR_EVENT) {
		anchor = reader->event.data.scalar.anchor;
		tag = reader->event.data.scalar.tag;
	} else if (reader->event.type == YAML_MAPPING_START_EVENT) {
		anchor = reader->event.data.mapping_start.anchor;
		tag = reader->event.data.mapping_start.tag;
	} else if (reader->event.type == YAML_SEQUENCE_START_EVENT) {
		anchor = reader->event.data.sequence_start.anchor;
		tag = reader->event.data.sequence_start.tag;
	}
	if (anchor || tag)
		return complain(reader, here(reader), "%s; allowed: the value alone",
			anchor ? "an anchor (&)" : "a tag (!)");
	return 0;
}

static struct config_scalar scalar_of(const struct reader *reader)
{
	return (struct config_scalar){
		.text = (const char *)reader->event.data.scalar.value,
		.bytes = reader->event.data.scalar.length,
		.is_quoted = reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE,
	};
}

static bool is_scalar(const struct reader *reader)
{
	return reader->event.type == YAML_SCALAR_EVENT;
}

/* Is the event exactly this name? A name that a NUL ends early is not. */
static bool is_named(const struct reader *reader, const char *name)
{
	struct config_scalar scalar;

	if (!is_scalar(reader))
		return false;
	scalar = scalar_of(reader);
	return scalar.bytes == strlen(name) && memcmp(scalar.text, name, scalar.bytes) == 0;
}

/* "key:" with nothing behind it. */
static bool is_nothing(const struct reader *reader)
{
	struct config_scalar scalar;

	if (!is_scalar(reader))
		return false;
	scalar = scalar_of(reader);
	return scalar.bytes == 0 && !scalar.is_quoted;
}

static void quote_event(const struct reader *reader, char ret_found[CONFIG_FOUND_BYTES])
{
	struct config_scalar scalar;

	if (is_scalar(reader)) {
		scalar = scalar_of(reader);
		config_value_quote(&scalar, ret_found);
		return;
	}
	snprintf(ret_found, CONFIG_FOUND_BYTES, "%s",
		reader->event.type == YAML_SEQUENCE_START_EVENT ? "a list" : "a group of keys");
}

static void list_keys(const struct config_section *section, char *list, size_t bytes)
{
	size_t length = 0;

	list[0] = '\0';
	for (size_t i = 0; i < section->key_count && length < bytes; i++)
		length += (size_t)snprintf(
			list + length, bytes - length, "%s%s", i ? ", " : "", section->keys[i].name);
}

/* The index of the key that the event names, or -EINVAL: unknown, given twice, or given together with one
 * that it excludes. */
static int read_key(struct reader *reader, const struct config_section *section, const char *path,
	const struct place *seen)
{
	char found[CONFIG_FOUND_BYTES], allowed[256];

	quote_event(reader, found);
	for (size_t i = 0; i < section->key_count; i++) {
		if (!is_named(reader, section->keys[i].name))
			continue;
		if (seen[i].line)
			return complain(reader, here(reader),
				"%s.%s: given a second time; it stands in line %zu already", path,
				section->keys[i].name, seen[i].line);
		for (size_t j = 0; section->keys[i].excludes && j < section->key_count; j++) {
			if (strcmp(section->keys[j].name, section->keys[i].excludes) == 0 && seen[j].line)
				return complain(reader, here(reader),
					"%s.%s: %s is given too, in line %zu; one of the two is allowed",
					path, section->keys[i].name, section->keys[j].name, seen[j].line);
		}
		return (int)i;
	}
	list_keys(section, allowed, sizeof(allowed));
	return complain(reader, here(reader), "%s: unknown key %s; allowed: %s", path, found, allowed);
}

static int read_value(struct reader *reader, const struct config_key *key, const char *path, void *base)
{
	char found[CONFIG_FOUND_BYTES], allowed[CONFIG_ALLOWED_BYTES];
	struct config_scalar scalar;
	bool by_quotes = false;

	if (is_scalar(reader)) {
		scalar = scalar_of(reader);
		if (config_value_parse(key, &scalar, base))
			return 0;
		by_quotes = scalar.is_quoted && config_value_is_plain(key);
	}
	quote_event(reader, found);
	config_value_allowed(key, allowed);
	return complain(reader, here(reader), "%s.%s: found %s%s; allowed: %s", path, key->name, found,
		by_quotes ? " in quotes" : "", allowed);
}

/* A group of keys into @base. @ret_seen has a place for each key of @section: where it stood. */
static int read_group(struct reader *reader, const struct config_section *section, const char *path,
	void *base, struct place ret_seen[MAX_KEYS])
{
	char found[CONFIG_FOUND_BYTES], allowed[256];

	if (reader->event.type != YAML_MAPPING_START_EVENT) {
		quote_event(reader, found);
		list_keys(section, allowed, sizeof(allowed));
		return complain(reader, here(reader), "%s: found %s; allowed: a group of the keys %s", path,
			found, allowed);
	}
	for (;;) {
		int index, r;

		r = next(reader);
		if (r < 0)
			return r;
		if (reader->event.type == YAML_MAPPING_END_EVENT)
			return 0;
		index = read_key(reader, section, path, ret_seen);
		if (index < 0)
			return index;
		r = next(reader);
		if (r < 0)
			return r;
		ret_seen[index] = here(reader);
		r = read_value(reader, &section->keys[index], path, base);
		if (r < 0)
			return r;
	}
}

static struct place place_of_key(
	const struct config_section *section, const char *name, const struct place seen[MAX_KEYS])
{
	for (size_t i = 0; i < section->key_count; i++) {
		if (strcmp(section->keys[i].name, name) == 0)
			return seen[i];
	}
	return (struct place){0, 0};
}

static struct place place_of_rate(const struct config_section *section, const struct place seen[MAX_KEYS])
{
	struct place rate = place_of_key(section, "rate", seen);

	return rate.line ? rate : place_of_key(section, "period", seen);
}

static int read_section(struct reader *reader, const struct config_section *section)
{
	struct place seen[MAX_KEYS] = {{0}};
	int r;

	/* All keys of a section commented out. */
	if (is_nothing(reader))
		return 0;
	r = read_group(reader, section, section->name, reader->config, seen);
	if (r < 0)
		return r;
	if (strcmp(section->name, "sampling") == 0)
		reader->rate = place_of_rate(section, seen);
	reader->max_rate = place_of_key(section, "max_rate", seen);
	if (strcmp(section->name, "socket") == 0)
		reader->clients_per_uid = place_of_key(section, "max_clients_per_uid", seen);
	return 0;
}

static int read_pool(struct reader *reader)
{
	const struct config_section *section = &config_pool_section;
	struct place start = here(reader), seen[MAX_KEYS] = {{0}};
	size_t number = reader->config->pool_count;
	struct config_pool *pool = &reader->config->pools[number];
	char path[KEY_PATH_BYTES];
	int ways, r;

	if (number == CONFIG_MAX_POOLS)
		return complain(reader, start, "pools: more than %d entries; allowed: up to %d",
			CONFIG_MAX_POOLS, CONFIG_MAX_POOLS);
	snprintf(path, sizeof(path), "pools[%zu]", number);
	memset(pool, 0, sizeof(*pool));
	r = read_group(reader, section, path, pool, seen);
	if (r < 0)
		return r;
	ways = (pool->fpm_pool[0] != 0) + (pool->master_pid != 0) + (pool->pid_file[0] != 0) +
	       (pool->executable[0] != 0);
	if (ways != 1)
		return complain(reader, start,
			"%s: found %d of fpm_pool, master_pid, pid_file, executable; allowed: exactly one",
			path, ways);
	reader->pool_rates[number] = place_of_rate(section, seen);
	reader->config->pool_count++;
	return 0;
}

static int read_pools(struct reader *reader)
{
	char found[CONFIG_FOUND_BYTES];

	if (is_nothing(reader))
		return 0;
	if (reader->event.type != YAML_SEQUENCE_START_EVENT) {
		quote_event(reader, found);
		return complain(reader, here(reader),
			"pools: found %s; allowed: a list of groups of keys, or []", found);
	}
	reader->config->pool_count = 0;
	for (;;) {
		int r = next(reader);

		if (r < 0)
			return r;
		if (reader->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		r = read_pool(reader);
		if (r < 0)
			return r;
	}
}

/* One section name and what is behind it. @seen has a place for each section, and one for pools at the end.
 */
static int read_entry(struct reader *reader, struct place *seen)
{
	char found[CONFIG_FOUND_BYTES];
	size_t index = 0;
	int r;

	while (index < config_section_count && !is_named(reader, config_sections[index].name))
		index++;
	if (index == config_section_count && !is_named(reader, config_pool_section.name)) {
		quote_event(reader, found);
		return complain(reader, here(reader),
			"unknown key %s; allowed: sampling, limits, discovery, socket, trace, pools", found);
	}
	if (seen[index].line)
		return complain(reader, here(reader),
			"%s: given a second time; it stands in line %zu already",
			index == config_section_count ? config_pool_section.name
						      : config_sections[index].name,
			seen[index].line);
	seen[index] = here(reader);
	r = next(reader);
	if (r < 0)
		return r;
	return index == config_section_count ? read_pools(reader)
					     : read_section(reader, &config_sections[index]);
}

static int read_document(struct reader *reader)
{
	struct place seen[MAX_KEYS] = {{0}};
	char found[CONFIG_FOUND_BYTES];
	int r;

	r = next(reader);
	if (r < 0 || is_nothing(reader))
		return r;
	if (reader->event.type != YAML_MAPPING_START_EVENT) {
		quote_event(reader, found);
		return complain(reader, here(reader),
			"found %s; allowed: groups of keys, as in the file that comes with the program",
			found);
	}
	for (;;) {
		r = next(reader);
		if (r < 0)
			return r;
		if (reader->event.type == YAML_MAPPING_END_EVENT)
			return 0;
		r = read_entry(reader, seen);
		if (r < 0)
			return r;
	}
}

static int read_stream(struct reader *reader)
{
	int r;

	r = next(reader); /* the stream's start */
	if (r < 0)
		return r;
	r = next(reader);
	if (r < 0 || reader->event.type == YAML_STREAM_END_EVENT)
		return r;
	r = read_document(reader);
	if (r < 0)
		return r;
	r = next(reader); /* the document's end */
	if (r < 0)
		return r;
	r = next(reader);
	if (r < 0)
		return r;
	if (reader->event.type != YAML_STREAM_END_EVENT)
		return complain(reader, here(reader), "a second document; allowed: one");
	return 0;
}

static void allow_written_rates(struct config *config)
{
	uint64_t *fastest_ns = &config->sampling.min_period_ns;

	if (config->sampling.period_ns < *fastest_ns)
		*fastest_ns = config->sampling.period_ns;
	for (size_t i = 0; i < config->pool_count; i++)
		if (config->pools[i].period_ns && config->pools[i].period_ns < *fastest_ns)
			*fastest_ns = config->pools[i].period_ns;
}

/* What takes more than one key to decide. A default gives way to what is written down; two things written
 * down must fit. */
static int check_together(struct reader *reader)
{
	struct config *config = reader->config;
	uint64_t max_hz;

	if (!reader->max_rate.line)
		allow_written_rates(config);
	max_hz = 1000000000 / config->sampling.min_period_ns;
	if (!reader->rate.line && config->sampling.period_ns < config->sampling.min_period_ns)
		config->sampling.period_ns = config->sampling.min_period_ns;
	if (!reader->clients_per_uid.line && config->socket.max_clients_per_uid > config->socket.max_clients)
		config->socket.max_clients_per_uid = config->socket.max_clients;
	if (config->sampling.period_ns < config->sampling.min_period_ns)
		return complain(reader, reader->rate,
			"sampling.rate: faster than sampling.max_rate; allowed: up to %llu Hz",
			(unsigned long long)max_hz);
	for (size_t i = 0; i < config->pool_count; i++) {
		if (config->pools[i].period_ns && config->pools[i].period_ns < config->sampling.min_period_ns)
			return complain(reader, reader->pool_rates[i],
				"pools[%zu].rate: faster than sampling.max_rate; allowed: up to %llu Hz", i,
				(unsigned long long)max_hz);
	}
	if (config->socket.max_clients_per_uid > config->socket.max_clients)
		return complain(reader, reader->clients_per_uid,
			"socket.max_clients_per_uid: found %u; allowed: up to socket.max_clients, which is "
			"%u",
			config->socket.max_clients_per_uid, config->socket.max_clients);
	return 0;
}

int config_parse(const char *text, size_t bytes, const char *name, struct config *ret_config, char *ret_why,
	size_t why_bytes)
{
	_cleanup_(reader_deinit) struct reader reader = {
		.name = name, .text = text, .bytes = bytes, .why = ret_why, .why_bytes = why_bytes};
	struct config config;
	int r;

	if (!yaml_parser_initialize(&reader.yaml)) {
		snprintf(ret_why, why_bytes, "%s: not enough memory", name);
		return -ENOMEM;
	}
	if (bytes > CONFIG_MAX_FILE_BYTES)
		return complain(&reader, (struct place){1, 1}, "more than %d bytes; allowed: up to 1 MiB",
			CONFIG_MAX_FILE_BYTES);
	yaml_parser_set_encoding(&reader.yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader.yaml, (const unsigned char *)text, bytes);
	config_init(&config);
	reader.config = &config;
	r = read_stream(&reader);
	if (r < 0)
		return r;
	r = check_together(&reader);
	if (r < 0)
		return r;
	*ret_config = config;
	return 0;
}
