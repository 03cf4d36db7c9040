/* SPDX-License-Identifier: MIT
 *
 * How many processes each configured selector finds, and of one that finds none, why: an entry with a
 * mistyped path would otherwise look like a machine on which nothing happens. Noted by the discovery thread
 * at each scan, asked for by whoever answers `status`; the reason is looked for only then.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "daemon/sampling/discovery.h"
#include "daemon/sampling/engine.h"

struct harvest {
	pthread_mutex_t lock;
	struct selector selectors[HARVEST_MAX]; /* those configured; more of them are not told about */
	size_t found[HARVEST_MAX];
	size_t count;
};

void harvest_init(struct harvest *harvest);
void harvest_deinit(struct harvest *harvest);

/* Other selectors are in force; copied. */
void harvest_replace(struct harvest *harvest, const struct selector *selectors, size_t count);

/* Of @found, which are a scan's, each belongs to the selector whose index it has. */
void harvest_note(struct harvest *harvest, const struct discovered *found, size_t found_count);

/* Copies up to @max, in the order of the configuration; returns how many. */
size_t harvest_copy(struct harvest *harvest, struct selector_report *ret_reports, size_t max);
