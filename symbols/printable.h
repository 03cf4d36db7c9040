/* SPDX-License-Identifier: MIT
 *
 * Names that a process gave itself end in terminals and logs, where an escape sequence would act.
 */
#pragma once

#include <stddef.h>

/* Copies @text, cut to fit, into the @bytes (at least 1) of @into; what isn't printable ASCII becomes '?'. */
void printable_copy(char *into, size_t bytes, const char *text);
