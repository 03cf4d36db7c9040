/* SPDX-License-Identifier: MIT
 *
 * zend_function -> name, file and lines, as debug_backtrace() prints them. A cache by address that proves its
 * entries before it uses them: without opcache PHP frees functions and uses their addresses again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/cleanup.h"
#include "symbols/layout.h"
#include "reader/outer_frames.h"
#include "reader/stack.h"
#include "reader/view.h"

#define FUNCTION_MAX_NAME_BYTES 512  /* Class::method together; longer names are cut and end in "…" */
#define FUNCTION_MAX_FILE_BYTES 1024 /* cut at the front: the end of a path tells more; begins with "…" */
/* Functions a target's cache holds, some 100 bytes each: 64 full caches are 13 MiB. Past it closures and
 * included code are forgotten first, then everything; it fills again. */
#define FUNCTION_CACHE_MAX_ENTRIES 2048

enum function_kind {
	FUNCTION_USER,
	FUNCTION_INTERNAL,
	FUNCTION_MAIN,    /* the script's top level: "{main}" */
	FUNCTION_INCLUDE, /* an included file's: "include", "require_once", … as debug_backtrace() says */
	FUNCTION_EVAL,    /* eval()'d code: "eval" */
	FUNCTION_CLOSURE,
};

struct function_name {
	const char *name; /* "Namespace\Class::method", "strlen", "{main}"; UTF-8, other bytes as \xNN */
	const char *file; /* "" for internal functions */
	uint32_t line;    /* where it is declared; 0 for internal functions */
	enum function_kind kind;
};

/* Where names go: gives each distinct (name, file, line) a number. Supplied by the daemon. */
struct frame_names {
	uint32_t (*intern)(void *context, const struct function_name *name);
	void *context;
	uint32_t epoch; /* changed when all numbers given so far become invalid */
};

struct frame {
	uint32_t name_id; /* what intern() gave */
	uint32_t line;    /* the line that runs; 0 for internal functions */
	bool line_approximate;
	enum function_kind kind;
};

/* A stack with names. */
struct named_stack {
	struct frame *end;             /* the caller's: behind the outermost frame; there is room before it */
	const struct frame *frames;    /* leaf first; the last one lies just before @end */
	size_t count;                  /* may be less than the raw stack's: a fiber's base is no frame */
	size_t omitted, omitted_after; /* as in struct raw_stack */
	size_t same_outer;             /* so many of the outermost stood there already, the same */
	uint8_t holds[STACK_MAX_FRAMES]; /* enum frame_hold of each frame of the raw stack */
};

enum { FUNCTION_E_STALE = 80 }; /* a function was replaced that should have outlived its request */

struct function_cache;

/* @executor_globals is where the target's EG() is: a frame that is unwound for an exception points into it.
 */
int function_cache_new(
	const struct layout *layout, remote_addr executor_globals, struct function_cache **ret_cache);
void function_cache_free(struct function_cache *cache);
DEFINE_CLEANUP(struct function_cache, function_cache_free)

/* To be called when a new request has begun: what was proved counts as unproved. */
void function_cache_new_request(struct function_cache *cache);

/* Names all of @stack into @ret_named (whose @end the caller has set). Of the frames that it has joined the
 * names stand before @end already: those that need a look get one. Reads with at most one call for
 * functions not proved yet, one more for their names and lines, one more for the names of their classes;
 * nothing when all is known. These reads go on when the target moves meanwhile, since functions outlive
 * calls; VIEW_E_TORN only where it can't be told whether one did. FUNCTION_E_STALE: the joined frames must
 * all be named anew. Also VIEW_E_FULL, REMOTE_E_GONE, negative errno. On any error the names of the joined
 * frames may be gone, too. A frame whose function can't be read is named "<unread>". */
int function_cache_name(struct function_cache *cache, struct view *view, const struct raw_stack *stack,
	const struct frame_names *names, struct named_stack *ret_named);
