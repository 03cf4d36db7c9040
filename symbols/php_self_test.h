/* SPDX-License-Identifier: MIT
 *
 * Does a layout describe the PHP that runs in this process? Asked once at attach, before anything is
 * believed.
 */
#pragma once

#include "layout.h"
#include "memory.h"

enum {
	PHP_SELF_TEST_E_FAILED = 1, /* what is there is not what the layout says should be there */
};

/* 0, PHP_SELF_TEST_E_FAILED with *@ret_why naming what was wrong (a constant string), or a negative errno. */
int php_self_test(const struct memory *memory, remote_addr executor_globals, const struct layout *layout,
	const char **ret_why);
