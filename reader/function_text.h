/* SPDX-License-Identifier: MIT
 *
 * PHP's strings as a person reads them: from remote zend_strings to bounded, valid UTF-8.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/layout.h"
#include "reader/remote.h"
#include "reader/view.h"

/* A zend_string longer than this is taken for garbage. */
#define FUNCTION_TEXT_MAX_REMOTE_BYTES 65536

/* Where the header of the zend_string at @string is, and as much of its bytes as most names have, without
 * crossing into the next page. */
struct remote_span function_text_span(const struct layout *layout, remote_addr string);

/* A number that tells two strings apart at the same address: of their hash (which PHP has computed for every
 * name) and length. @header is the zend_string's header. */
uint32_t function_text_mark(const struct layout *layout, const uint8_t *header);

/* Appends the zend_string at @string to @text (of @size bytes, terminated): up to its first NUL, what is not
 * UTF-8 as \xNN, cut with "…" where it doesn't fit. 0, or view_error(); REMOTE_E_FAULT for an absurd length.
 */
int function_text_append(
	struct view *view, const struct layout *layout, remote_addr string, char *text, size_t size);

/* The same, but replaces @text, and keeps the end of what is too long, with "…" in front. */
int function_text_tail(
	struct view *view, const struct layout *layout, remote_addr string, char *text, size_t size);
