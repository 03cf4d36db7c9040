/* SPDX-License-Identifier: MIT
 *
 * See printable.h. ASCII alone is let through: whether what lies above is one character or the start of a
 * control sequence depends on a terminal nobody here knows. Knows nothing of who is named.
 */
#include "symbols/printable.h"

void printable_copy(char *into, size_t bytes, const char *text)
{
	size_t length = 0;

	for (; length + 1 < bytes && text[length]; length++) {
		into[length] = text[length];
		if (text[length] < ' ' || text[length] > '~')
			into[length] = '?';
	}
	into[length] = '\0';
}
