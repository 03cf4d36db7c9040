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

/* The length of the UTF-8 character at @bytes, 0 if it is none (overlong forms and surrogates included). */
static size_t character_bytes(const unsigned char *bytes)
{
	unsigned char lead = bytes[0];

	if (lead < 0x80)
		return 1;
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	for (size_t i = 1; i < length; i++) {
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((lead == 0xe0 && bytes[1] < 0xa0) || (lead == 0xed && bytes[1] > 0x9f) ||
		(lead == 0xf0 && bytes[1] < 0x90) || (lead == 0xf4 && bytes[1] > 0x8f))
		return 0;
	return length;
}

static bool is_utf8(const char *value)
{
	const unsigned char *at = (const unsigned char *)value;

	while (*at) {
		size_t length = character_bytes(at);

		if (length == 0)
			return false;
		at += length;
	}
	return true;
}

bool json_add_string(cJSON *object, const char *key, const char *value)
{
	if (is_utf8(value))
		return cJSON_AddStringToObject(object, key, value);

	_cleanup_text_ struct text text = {0};
	for (const unsigned char *at = (const unsigned char *)value; *at;) {
		size_t length = character_bytes(at);

		if (length > 0)
			text_append_bytes(&text, (const char *)at, length);
		else
			text_append(&text, "\\x%02X", *at);
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
