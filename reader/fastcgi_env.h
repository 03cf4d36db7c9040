/* SPDX-License-Identifier: MIT
 *
 * The variables a web server sent along with the request that a FastCGI worker serves: REQUEST_METHOD,
 * REQUEST_URI, HTTP_*.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "symbols/layout.h"
#include "reader/view.h"

#define FASTCGI_ENV_MAX_VARIABLES 8 /* looked up at once */
/* Buckets looked at for one variable: a client chooses header names, and PHP's hash is easy to collide. */
#define FASTCGI_ENV_MAX_CHAIN 16

struct fastcgi_variable {
	const char *name;
	size_t max_bytes; /* of the value, to be read: what is behind them never leaves the target */

	bool found;
	const char *value; /* not 0-terminated; valid until the view's next refresh */
	size_t bytes;      /* read */
};

/* Looks up all of @variables in the fcgi_request at @request, SG(server_context): one vectored read a step,
 * whatever their number. A variable that is not there, or can't be read, is not found. 0, VIEW_E_TORN,
 * REMOTE_E_GONE or a negative errno. */
int fastcgi_env_read(struct view *view, const struct layout *layout, remote_addr request,
	struct fastcgi_variable *variables, size_t count);
