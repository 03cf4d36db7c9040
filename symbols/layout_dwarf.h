/* SPDX-License-Identifier: MIT
 *
 * The same layout, read from the debug information of a binary (or of its separate debug file) with libdw.
 */
#pragma once

#include "layout.h"

enum {
	LAYOUT_DWARF_E_NONE = 1, /* no debug information, in the file or by build id under /usr/lib/debug */
	LAYOUT_DWARF_E_PARTIAL,	 /* debug information that lacks structures layout.def names */
};

/* Fills @ret_layout from the DWARF of the file behind @fd. Fields the debug info doesn't have keep @fallback's
 * value; constants always do (DWARF has no macros at the usual -g). */
int layout_from_dwarf(int fd, const char *build_id, const struct layout *fallback, struct layout *ret_layout);
