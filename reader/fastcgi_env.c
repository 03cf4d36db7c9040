/* SPDX-License-Identifier: MIT
 *
 * PHP keeps FastCGI variables in a hash table of its own (main/fastcgi.c, the same from 7.4 to 8.6): 128
 * chains of buckets, a hash made of three characters and the length. It is read here and not
 * SG(request_info), whose request_uri is, under FPM, the script's name.
 *
 * The table is filled before a request's first instruction and emptied after its last, and its memory is used
 * again: the caller must know that a request is being served (its last one's pointers dangle in an idle
 * worker).
 *
 * All look-ups advance together, so that each step is one read for all of them: the heads of the chains, the
 * buckets, names and values. A client that sends headers made to collide costs further steps, up to a bound.
 */
#include "reader/fastcgi_env.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "reader/load.h"

/* main/fastcgi.h: FCGI_HASH_TABLE_SIZE. */
#define HASH_TABLE_SLOTS 128

enum lookup_state { LOOKUP_HEAD, LOOKUP_BUCKET, LOOKUP_TEXT, LOOKUP_DONE };

struct lookup {
	enum lookup_state state;
	uint32_t hash;
	size_t name_bytes;
	remote_addr at; /* the head's or the bucket's address */
	remote_addr next, name, value;
	size_t value_bytes;
};

/* FCGI_HASH_FUNC in main/fastcgi.h, for names of four bytes and more. */
static uint32_t hash_name(const char *name, size_t bytes)
{
	const unsigned char *at = (const unsigned char *)name;

	return ((uint32_t)at[3] << 2) + ((uint32_t)at[bytes - 2] << 4) + ((uint32_t)at[bytes - 1] << 2) +
	       (uint32_t)bytes;
}

static size_t bucket_bytes(const struct layout *layout)
{
	return layout->fcgi_bucket_list_next + sizeof(remote_addr);
}

/* What @lookup needs next: appended to @spans. The number of spans. */
static size_t spans_wanted(
	const struct lookup *lookup, const struct layout *layout, struct remote_span *spans)
{
	switch (lookup->state) {
	case LOOKUP_HEAD:
		spans[0] = (struct remote_span){.addr = lookup->at, .bytes = sizeof(remote_addr)};
		return 1;
	case LOOKUP_BUCKET:
		spans[0] = (struct remote_span){.addr = lookup->at, .bytes = bucket_bytes(layout)};
		return 1;
	case LOOKUP_TEXT:
		spans[0] = (struct remote_span){.addr = lookup->name, .bytes = lookup->name_bytes};
		spans[1] = (struct remote_span){.addr = lookup->value, .bytes = lookup->value_bytes};
		return lookup->value_bytes > 0 ? 2 : 1;
	case LOOKUP_DONE:
		break;
	}
	return 0;
}

static void go_to_bucket(struct lookup *lookup, remote_addr bucket)
{
	lookup->at = bucket;
	lookup->state = bucket != 0 ? LOOKUP_BUCKET : LOOKUP_DONE;
}

/* Is @error more than "these bytes can't be had"? */
static bool ends_the_look_ups(int error)
{
	return error < 0 || error == VIEW_E_TORN || error == REMOTE_E_GONE;
}

/* Takes one step with what was fetched. 0, or the view's error if that is one the caller must know. */
static int advance(struct lookup *lookup, struct view *view, const struct layout *layout,
	struct fastcgi_variable *variable)
{
	const unsigned char *first, *value;
	struct remote_span spans[2];
	size_t span_count = spans_wanted(lookup, layout, spans);

	if (span_count == 0)
		return 0;
	first = view_at(view, spans[0].addr, spans[0].bytes);
	value = first;
	if (first && span_count == 2)
		value = view_at(view, spans[1].addr, spans[1].bytes);
	if (!value) {
		lookup->state = LOOKUP_DONE;
		return ends_the_look_ups(view_error(view)) ? view_error(view) : 0;
	}

	switch (lookup->state) {
	case LOOKUP_HEAD:
		go_to_bucket(lookup, load_u64(first));
		break;
	case LOOKUP_BUCKET:
		lookup->next = load_u64(first + layout->fcgi_bucket_next);
		lookup->name = load_u64(first + layout->fcgi_bucket_var);
		lookup->value = load_u64(first + layout->fcgi_bucket_val);
		lookup->value_bytes = load_u32(first + layout->fcgi_bucket_val_len);
		if (lookup->value_bytes > variable->max_bytes)
			lookup->value_bytes = variable->max_bytes;
		if (load_u32(first + layout->fcgi_bucket_hash_value) == lookup->hash &&
			load_u32(first + layout->fcgi_bucket_var_len) == lookup->name_bytes)
			lookup->state = LOOKUP_TEXT;
		else
			go_to_bucket(lookup, lookup->next);
		break;
	case LOOKUP_TEXT:
		if (memcmp(first, variable->name, lookup->name_bytes) != 0) {
			go_to_bucket(lookup, lookup->next);
			break;
		}
		variable->found = true;
		variable->value = (const char *)value;
		variable->bytes = lookup->value_bytes;
		lookup->state = LOOKUP_DONE;
		break;
	case LOOKUP_DONE:
		break;
	}
	return 0;
}

int fastcgi_env_read(struct view *view, const struct layout *layout, remote_addr request,
	struct fastcgi_variable *variables, size_t count)
{
	struct lookup lookups[FASTCGI_ENV_MAX_VARIABLES];
	struct remote_span spans[2 * FASTCGI_ENV_MAX_VARIABLES];
	remote_addr heads = request + layout->fcgi_request_env + layout->fcgi_hash_hash_table;

	if (count > FASTCGI_ENV_MAX_VARIABLES)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		size_t name_bytes = strlen(variables[i].name);
		uint32_t hash = hash_name(variables[i].name, name_bytes);

		lookups[i] = (struct lookup){
			.state = LOOKUP_HEAD,
			.hash = hash,
			.name_bytes = name_bytes,
			.at = heads + sizeof(remote_addr) * (hash % HASH_TABLE_SLOTS),
		};
		variables[i].found = false;
	}

	/* A head, and for each bucket of the chain itself and perhaps its texts. */
	for (unsigned step = 0; step < 1 + 2 * FASTCGI_ENV_MAX_CHAIN; step++) {
		size_t span_count = 0;
		int r;

		for (size_t i = 0; i < count; i++)
			span_count += spans_wanted(&lookups[i], layout, spans + span_count);
		if (span_count == 0)
			break;
		r = view_prefetch(view, spans, span_count);
		if (ends_the_look_ups(r))
			return r;
		for (size_t i = 0; i < count; i++) {
			r = advance(&lookups[i], view, layout, &variables[i]);
			if (r != 0)
				return r;
		}
	}
	return 0;
}
