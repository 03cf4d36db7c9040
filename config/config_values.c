/* SPDX-License-Identifier: MIT
 *
 * The grammar of single values. It is narrower than YAML's own: a truth is "true" or "false" and nothing
 * else, a duration has its unit, a mode is octal whatever YAML 1.1 or 1.2 would make of its zero. So that a
 * value means the same to the person who wrote it, to the next version of the library and to us; what is
 * refused is refused with the list of what is allowed. Knows single scalars; where they stand is config.c's.
 */
#include "config/config_values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

enum {
	MODE_MAX = 0777,
	MODE_DIGITS_MAX = 4,
	SHARE_DECIMALS = 4,
	SHARE_MAX = 100000000, /* a hundred CPUs: more digits are no share any more */
	MILLIONTHS_OF_A_PERCENT = 10000,
};

struct unit {
	const char *name;
	uint64_t factor;
};

/* From large to small: what a range is printed in is the first that divides it. */
static const struct unit duration_units[] = {{"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000},
	{"ms", 1000000}, {"us", 1000}, {"ns", 1}, {NULL, 0}};
static const struct unit size_units[] = {
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}, {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

/* Digits and one of @units, in one word. Zero needs no unit. */
static bool parse_number(const char *text, const struct unit *units, uint64_t *ret_number)
{
	char *end;
	uint64_t number;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (number == 0 && *end == '\0') {
		*ret_number = 0;
		return true;
	}
	for (; units->name; units++) {
		if (strcmp(end, units->name) == 0)
			return !__builtin_mul_overflow(number, units->factor, ret_number);
	}
	return false;
}

static void print_number(uint64_t number, const struct unit *units, char *text, size_t bytes)
{
	while (units->factor > 1 && (number == 0 || number % units->factor != 0))
		units++;
	snprintf(text, bytes, "%" PRIu64 "%s", number / units->factor, number ? units->name : "");
}

static const struct unit *units_of(enum config_kind kind)
{
	if (kind == CONFIG_DURATION)
		return duration_units;
	if (kind == CONFIG_SIZE32 || kind == CONFIG_SIZE64)
		return size_units;
	return no_units;
}

static bool parse_bool(const char *text, bool *ret_value)
{
	bool is_true = strcmp(text, "true") == 0;

	if (!is_true && strcmp(text, "false") != 0)
		return false;
	*ret_value = is_true;
	return true;
}

static bool parse_mode(const char *text, mode_t *ret_mode)
{
	size_t digits = strspn(text, "01234567");
	unsigned long mode;

	if (digits < 3 || digits > MODE_DIGITS_MAX || text[digits])
		return false;
	mode = strtoul(text, NULL, 8);
	if (mode > MODE_MAX)
		return false;
	*ret_mode = (mode_t)mode;
	return true;
}

/* "12%", "0.5%": up to four decimals are exact in millionths. */
static bool parse_share(const char *text, uint64_t *ret_millionths)
{
	uint64_t millionths = 0;
	unsigned decimals = 0;
	bool is_fraction = false;

	if (text[0] < '0' || text[0] > '9')
		return false;
	for (; *text != '%'; text++) {
		if (*text == '.' && !is_fraction) {
			is_fraction = true;
			continue;
		}
		if (*text < '0' || *text > '9' || millionths > SHARE_MAX)
			return false;
		decimals += is_fraction;
		millionths = millionths * 10 + (unsigned)(*text - '0');
	}
	if (decimals > SHARE_DECIMALS || (is_fraction && decimals == 0) || text[1])
		return false;
	for (; decimals < SHARE_DECIMALS; decimals++)
		millionths *= 10;
	*ret_millionths = millionths;
	return true;
}

static void print_share(uint64_t millionths, char *text, size_t bytes)
{
	snprintf(text, bytes, "%.6g%%", (double)millionths / MILLIONTHS_OF_A_PERCENT);
}

static bool parse_choice(const char *text, const char *const *choices, uint32_t *ret_index)
{
	for (uint32_t i = 0; choices[i]; i++) {
		if (strcmp(text, choices[i]) == 0) {
			*ret_index = i;
			return true;
		}
	}
	return false;
}

static void list_choices(const char *const *choices, char *list, size_t bytes)
{
	size_t length = 0;

	for (size_t i = 0; choices[i] && length < bytes; i++)
		length += (size_t)snprintf(list + length, bytes - length, "%s%s",
			i == 0           ? ""
			: choices[i + 1] ? ", "
					 : " or ",
			choices[i]);
}

static bool is_printable(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	}
	return true;
}

static bool is_made_of_name_characters(const char *text)
{
	return text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")] ==
	       '\0';
}

static bool is_text_allowed(enum config_kind kind, const char *text)
{
	switch (kind) {
	case CONFIG_NAME:
	case CONFIG_GROUP:
		return is_made_of_name_characters(text);
	case CONFIG_PATH:
		return text[0] == '/' && is_printable(text);
	case CONFIG_GLOB:
		return text[0] && is_printable(text);
	case CONFIG_PATH_GLOB:
		return (text[0] == '/' || text[0] == '*') && is_printable(text);
	case CONFIG_BOOL:
	case CONFIG_COUNT:
	case CONFIG_PID:
	case CONFIG_SIZE32:
	case CONFIG_SIZE64:
	case CONFIG_DURATION:
	case CONFIG_RATE:
	case CONFIG_SHARE:
	case CONFIG_CHOICE:
	case CONFIG_MODE:
		break;
	}
	return false;
}

static bool parse_text(const struct config_key *key, const struct config_scalar *scalar, char *storage)
{
	/* What YAML calls null is no text. */
	if (!scalar->is_quoted &&
		(scalar->bytes == 0 || strcmp(scalar->text, "~") == 0 || strcmp(scalar->text, "null") == 0))
		return false;
	if (scalar->bytes >= key->size || !is_text_allowed(key->kind, scalar->text))
		return false;
	memset(storage, 0, key->size);
	memcpy(storage, scalar->text, scalar->bytes);
	return true;
}

bool config_value_is_plain(const struct config_key *key)
{
	switch (key->kind) {
	case CONFIG_BOOL:
	case CONFIG_COUNT:
	case CONFIG_PID:
	case CONFIG_SIZE32:
	case CONFIG_SIZE64:
	case CONFIG_DURATION:
	case CONFIG_RATE:
	case CONFIG_SHARE:
		return true;
	case CONFIG_CHOICE:
	case CONFIG_MODE:
	case CONFIG_NAME:
	case CONFIG_GROUP:
	case CONFIG_PATH:
	case CONFIG_GLOB:
	case CONFIG_PATH_GLOB:
		break;
	}
	return false;
}

bool config_value_parse(const struct config_key *key, const struct config_scalar *scalar, void *base)
{
	void *storage = (char *)base + key->offset;
	uint64_t number = 0;

	if (strlen(scalar->text) != scalar->bytes || (scalar->is_quoted && config_value_is_plain(key)))
		return false;
	switch (key->kind) {
	case CONFIG_NAME:
	case CONFIG_GROUP:
	case CONFIG_PATH:
	case CONFIG_GLOB:
	case CONFIG_PATH_GLOB:
		return parse_text(key, scalar, storage);
	case CONFIG_MODE:
		return parse_mode(scalar->text, storage);
	case CONFIG_BOOL:
		return parse_bool(scalar->text, storage);
	case CONFIG_CHOICE:
		return parse_choice(scalar->text, key->choices, storage);
	case CONFIG_COUNT:
	case CONFIG_PID:
	case CONFIG_SIZE32:
	case CONFIG_SIZE64:
	case CONFIG_DURATION:
	case CONFIG_RATE:
	case CONFIG_SHARE:
		break;
	}
	if (key->kind == CONFIG_SHARE && strcmp(scalar->text, "none") == 0) {
		*(uint32_t *)storage = 0;
		return true;
	}
	if (key->kind == CONFIG_SHARE ? !parse_share(scalar->text, &number)
				      : !parse_number(scalar->text, units_of(key->kind), &number))
		return false;
	if (number < key->min || number > key->max)
		return false;
	if (key->kind == CONFIG_RATE)
		number = 1000000000 / number; /* NOLINT(clang-analyzer-core.DivideZero): min is 1 */
	if (key->kind == CONFIG_PID)
		*(pid_t *)storage = (pid_t)number;
	else if (key->size == sizeof(uint32_t))
		*(uint32_t *)storage = (uint32_t)number;
	else
		*(uint64_t *)storage = number;
	return true;
}

void config_value_allowed(const struct config_key *key, char ret_allowed[CONFIG_ALLOWED_BYTES])
{
	char least[32], most[32];

	print_number(key->min, units_of(key->kind), least, sizeof(least));
	print_number(key->max, units_of(key->kind), most, sizeof(most));
	switch (key->kind) {
	case CONFIG_BOOL:
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES, "true or false");
		break;
	case CONFIG_COUNT:
	case CONFIG_PID:
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES, "a whole number from %s to %s", least, most);
		break;
	case CONFIG_RATE:
		snprintf(
			ret_allowed, CONFIG_ALLOWED_BYTES, "a whole number of Hz from %s to %s", least, most);
		break;
	case CONFIG_SIZE32:
	case CONFIG_SIZE64:
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES,
			"a size from %s to %s, as a number of bytes or with KiB, MiB, GiB", least, most);
		break;
	case CONFIG_DURATION:
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES,
			"a time from %s to %s, a whole number with ns, us, ms, s, m, h", least, most);
		break;
	case CONFIG_SHARE:
		print_share(key->min, least, sizeof(least));
		print_share(key->max, most, sizeof(most));
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES,
			"a share of one CPU from %s to %s, with at most four decimals, or none", least, most);
		break;
	case CONFIG_CHOICE:
		list_choices(key->choices, ret_allowed, CONFIG_ALLOWED_BYTES);
		break;
	case CONFIG_MODE:
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES, "an octal mode from 0000 to 0777");
		break;
	case CONFIG_NAME:
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES,
			"up to %zu of the characters a-z A-Z 0-9 _ . -, or \"\" for none", key->size - 1);
		break;
	case CONFIG_GROUP:
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES,
			"the name or number of a group, up to %zu bytes, or \"\" for none", key->size - 1);
		break;
	case CONFIG_PATH:
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES, "an absolute path of up to %zu bytes",
			key->size - 1);
		break;
	case CONFIG_GLOB:
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES, "a pattern with * ? [ ] of up to %zu bytes",
			key->size - 1);
		break;
	case CONFIG_PATH_GLOB:
		snprintf(ret_allowed, CONFIG_ALLOWED_BYTES,
			"a pattern with * ? [ ] of up to %zu bytes that begins with / or *", key->size - 1);
		break;
	}
}

void config_value_quote(const struct config_scalar *scalar, char ret_found[CONFIG_FOUND_BYTES])
{
	const size_t room = CONFIG_FOUND_BYTES - sizeof("\"...\"");
	size_t length = scalar->bytes < room ? scalar->bytes : room;

	if (scalar->bytes == 0 && !scalar->is_quoted) {
		snprintf(ret_found, CONFIG_FOUND_BYTES, "nothing");
		return;
	}
	ret_found[0] = '"';
	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)scalar->text[i];

		ret_found[1 + i] = (char)(byte >= 0x20 && byte < 0x7f ? byte : '?');
	}
	snprintf(ret_found + 1 + length, CONFIG_FOUND_BYTES - 1 - length, "%s\"",
		length < scalar->bytes ? "..." : "");
}
