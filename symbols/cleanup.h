/* SPDX-License-Identifier: MIT
 *
 * Ownership of locals. A local that owns something says so where it is declared, and gives it up with TAKE()
 * when it hands it over:
 *
 *	_cleanup_(procmap_freep) struct procmap *maps = NULL;
 *	_cleanup_close_ int fd = -1;
 *	*ret_maps = TAKE(maps);
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))

/* Gives a pointer away: yields its value and leaves NULL behind. */
#define TAKE(pointer)                                   \
	({                                              \
		__typeof__(pointer) taken_ = (pointer); \
		(pointer) = NULL;                       \
		taken_;                                 \
	})

/* Gives a file descriptor away: yields its value and leaves -1 behind. */
#define TAKE_FD(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

/* Defines void NAME##p(type **), the form that _cleanup_() wants, from void NAME(type *).
 * NOLINTBEGIN(bugprone-macro-parentheses): a type can't stand in parentheses. */
#define DEFINE_CLEANUP(type, name)                                                                \
	static inline void name##p(type **owned) /* NOLINT(bugprone-macro-parentheses): a type */ \
	{                                                                                         \
		if (*owned)                                                                       \
			name(*owned);                                                             \
	}

/* @owned points to a pointer of any type, which may not be read as one to void. */
static inline void cleanup_free(void *owned)
{
	void *pointer;

	memcpy(&pointer, owned, sizeof(pointer));
	free(pointer);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)
#define _cleanup_fclose_ _cleanup_(cleanup_fclose)
