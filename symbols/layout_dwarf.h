/* SPDX-License-Identifier: MIT
 *
 * The same layout, read from the debug information of a binary (or of its separate debug file) with libdw.
 */
#pragma once

#include "layout.h"

enum {
	LAYOUT_DWARF_E_NONE = 1, /* no debug information, in the file or by build id under /usr/lib/debug */
	LAYOUT_DWARF_E_PARTIAL,  /* it lacks what a stack can't be read without, or contradicts itself */
};

/* Larger sizes and offsets are not PHP's. */
#define LAYOUT_DWARF_MAX_OFFSET 65536

/* Fills @ret_layout from the DWARF of the file behind @fd (-1: only a debug file is looked for), or else of
 * the debug file of @build_id. Fields the debug info doesn't have keep @fallback's value; constants always do
 * (DWARF has no macros at the usual -g). No field lies outside its structure, where layout.def has the
 * structure's sizeof. Takes microseconds where there is no debug information, and else about half a
 * millisecond for each compilation unit that has to be read until all structures are found. */
int layout_from_dwarf(int fd, const char *build_id, const struct layout *fallback, struct layout *ret_layout);
