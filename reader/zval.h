/* SPDX-License-Identifier: MIT
 *
 * Strings and symbol tables in another process, through INDIRECT and REFERENCE.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "symbols/layout.h"
#include "reader/view.h"

#define ZVAL_MAX_HOPS 4   /* symbol table -> INDIRECT -> REFERENCE -> value, and one to spare */
#define ZVAL_MAX_CHAIN 64 /* buckets looked at in one hash chain */

enum {
	ZVAL_E_ABSENT = 48, /* no such key, or the value is undefined or null */
	ZVAL_E_NOT_STRING,
	ZVAL_E_TOO_LONG,
	ZVAL_E_MALFORMED, /* counts or pointers that PHP can't have written */
};

/* A zend_string's bytes (not 0-terminated; valid until the view's next refresh). 0, ZVAL_E_TOO_LONG,
 * ZVAL_E_MALFORMED, or what view_error() says. */
int zval_string(struct view *view, const struct layout *layout, remote_addr string, size_t max_bytes,
	const char **ret_text, size_t *ret_bytes);

/* PHP's hash of a key (zend_inline_hash_func in Zend/zend_string.h, all versions): DJBX33A with the top bit
 * set. */
uint64_t zval_hash(const char *key, size_t bytes);

/* The string under @key in the zend_array at @table. *ret_zend_string is its address. 0, ZVAL_E_*, or what
 * view_error() says. PHP may be in the middle of changing the table, which a view's guard can't tell:
 * ZVAL_E_MALFORMED and REMOTE_E_FAULT may be gone in the next instant. */
int zval_symbol_string(struct view *view, const struct layout *layout, remote_addr table, const char *key,
	size_t key_bytes, size_t max_bytes, const char **ret_text, size_t *ret_bytes,
	remote_addr *ret_zend_string);
