/* SPDX-License-Identifier: MIT
 *
 * UTF-8 after the table "Well-Formed UTF-8 Byte Sequences" of the Unicode standard (chapter 3.9): the first
 * byte says how many follow and which range the second may have; the others are 80…BF. That one look at the
 * second byte is what excludes overlong forms and surrogates. PHP's names and Linux's paths are just bytes,
 * and so is what a script or a client sends, but a JSON text must be UTF-8 and a terminal wants it: all that
 * comes in and goes out is looked at with this.
 */
#include "reader/utf8.h"

#include <stdbool.h>

static bool is_continuation(unsigned char byte)
{
	return byte >= 0x80 && byte <= 0xBF;
}

size_t utf8_character_bytes(const char *text, size_t bytes)
{
	const unsigned char *byte = (const unsigned char *)text;
	unsigned char first = byte[0], lowest = 0x80, highest = 0xBF;
	size_t length;

	if (first < 0x80)
		return 1;
	if (first >= 0xC2 && first <= 0xDF)
		length = 2;
	else if (first >= 0xE0 && first <= 0xEF)
		length = 3;
	else if (first >= 0xF0 && first <= 0xF4)
		length = 4;
	else
		return 0;
	if (bytes < length)
		return 0;

	if (first == 0xE0)
		lowest = 0xA0; /* below: overlong */
	else if (first == 0xED)
		highest = 0x9F; /* above: surrogates */
	else if (first == 0xF0)
		lowest = 0x90; /* below: overlong */
	else if (first == 0xF4)
		highest = 0x8F; /* above: beyond U+10FFFF */
	if (byte[1] < lowest || byte[1] > highest)
		return 0;
	for (size_t i = 2; i < length; i++)
		if (!is_continuation(byte[i]))
			return 0;
	return length;
}
