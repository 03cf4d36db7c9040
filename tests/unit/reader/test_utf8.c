/* SPDX-License-Identifier: MIT
 *
 * The edges of the table of well-formed UTF-8.
 */
#include "reader/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void utf8_is_what_the_unicode_standard_says(void **state)
{
	assert_int_equal(utf8_character_bytes("a", 1), 1);
	assert_int_equal(utf8_character_bytes("\xc2\x80", 2), 2);
	assert_int_equal(utf8_character_bytes("\xef\xbf\xbf", 3), 3);
	assert_int_equal(utf8_character_bytes("\xf4\x8f\xbf\xbf", 4), 4);
	assert_int_equal(utf8_character_bytes("\xc2\x80", 1), 0);         /* cut off */
	assert_int_equal(utf8_character_bytes("\x80", 1), 0);             /* a continuation alone */
	assert_int_equal(utf8_character_bytes("\xc1\xbf", 2), 0);         /* overlong */
	assert_int_equal(utf8_character_bytes("\xe0\x9f\xbf", 3), 0);     /* overlong */
	assert_int_equal(utf8_character_bytes("\xf0\x8f\xbf\xbf", 4), 0); /* overlong */
	assert_int_equal(utf8_character_bytes("\xed\xa0\x80", 3), 0);     /* a surrogate */
	assert_int_equal(utf8_character_bytes("\xf4\x90\x80\x80", 4), 0); /* beyond U+10FFFF */
	assert_int_equal(utf8_character_bytes("\xf5\x80\x80\x80", 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(utf8_is_what_the_unicode_standard_says),
	};

	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
