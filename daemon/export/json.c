/* SPDX-License-Identifier: MIT
 *
 * cJSON keeps every number as a double. Those of 16 digits and more (handles, clocks) go in as raw text
 * instead, so that a reader gets all their digits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/export/export.h"
#include "daemon/export/json.h"
#include "reader/utf8.h"

/* cJSON prints 15 digits and is content when they are within a rounding error: from 4.5e15 on not all of the
 * digits a double has, and in exponent form, which is a float to PHP. */
#define LARGEST_PRINTED_EXACTLY UINT64_C(999999999999999)

bool json_add_count(cJSON *object, const char *key, uint64_t value)
{
	char digits[24];

	if (value <= LARGEST_PRINTED_EXACTLY)
		return cJSON_AddNumberToObject(object, key, (double)value);
	snprintf(digits, sizeof(digits), "%" PRIu64, value);
	return cJSON_AddRawToObject(object, key, digits);
}

bool json_add_signed(cJSON *object, const char *key, int64_t value)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRId64, value);
	return cJSON_AddRawToObject(object, key, digits);
}

bool json_add_bool(cJSON *object, const char *key, bool value)
{
	return cJSON_AddBoolToObject(object, key, value);
}

bool json_add_null(cJSON *object, const char *key)
{
	return cJSON_AddNullToObject(object, key);
}

static size_t character_bytes(const char *text)
{
	return utf8_character_bytes(text, strnlen(text, UTF8_MAX_CHARACTER_BYTES));
}

static bool is_utf8(const char *text)
{
	while (*text) {
		size_t length = character_bytes(text);

		if (length == 0)
			return false;
		text += length;
	}
	return true;
}

bool json_add_string(cJSON *object, const char *key, const char *value)
{
	if (is_utf8(value))
		return cJSON_AddStringToObject(object, key, value);

	_cleanup_text_ struct text text = {0};
	for (const char *at = value; *at;) {
		size_t length = character_bytes(at);

		if (length > 0)
			text_append_bytes(&text, at, length);
		else
			text_append(&text, "\\x%02X", (unsigned char)*at);
		at += length > 0 ? length : 1;
	}
	return text.error == 0 && cJSON_AddStringToObject(object, key, text.bytes);
}

bool json_add_string_or_null(cJSON *object, const char *key, const char *value)
{
	return value[0] ? json_add_string(object, key, value) : json_add_null(object, key);
}

bool json_add_item(cJSON *object, const char *key, cJSON *item)
{
	if (item && cJSON_AddItemToObject(object, key, item))
		return true;
	cJSON_Delete(item);
	return false;
}

bool json_append_item(cJSON *array, cJSON *item)
{
	if (item && cJSON_AddItemToArray(array, item))
		return true;
	cJSON_Delete(item);
	return false;
}
