/* SPDX-License-Identifier: MIT
 *
 * Is the next character UTF-8? Pure.
 */
#pragma once

#include <stddef.h>

#define UTF8_MAX_CHARACTER_BYTES 4
#define UTF8_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

/* How many bytes the character at @text takes (1 to 4), looking at no more than @bytes (at least 1); 0: it is
 * not UTF-8. Overlong forms, surrogates and what lies beyond U+10FFFF are not. */
size_t utf8_character_bytes(const char *text, size_t bytes);
