/* SPDX-License-Identifier: MIT
 *
 * What cJSON lacks for us: 64-bit numbers that arrive exactly, strings that are valid UTF-8 whatever a target
 * put into them. All return false when memory ran out; callers gather that with &=.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "symbols/cleanup.h"

DEFINE_CLEANUP(cJSON, cJSON_Delete)

bool json_add_count(cJSON *object, const char *key, uint64_t value);
bool json_add_signed(cJSON *object, const char *key, int64_t value);
bool json_add_bool(cJSON *object, const char *key, bool value);
bool json_add_null(cJSON *object, const char *key);

/* Bytes that are no UTF-8 are written as the text \xNN. */
bool json_add_string(cJSON *object, const char *key, const char *value);
/* The same; an empty string is null. */
bool json_add_string_or_null(cJSON *object, const char *key, const char *value);

/* Adds @item, which may be NULL (false), and owns it from now on. */
bool json_add_item(cJSON *object, const char *key, cJSON *item);
bool json_append_item(cJSON *array, cJSON *item);
