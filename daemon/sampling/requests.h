/* SPDX-License-Identifier: MIT
 *
 * How requests and units come and go on a target, given what a look at the process shows. See requests.c for
 * the rules.
 */
#pragma once

#include <stdint.h>

#include "daemon/sampling/target.h"

/* A look at @now_ns, when the clocks stood at @clocks, found it in @request (@new_request: target->request is
 * another), or between requests (@request NULL). Opens, adopts and ends units accordingly. */
void requests_track(struct target *target, struct sampling *sampling, const struct request *request,
	uint64_t now_ns, const struct activity_clocks *clocks);

/* Ends the open unit as of @end_ns and retains the result. */
void requests_end_unit(struct target *target, struct sampling *sampling, uint64_t end_ns,
	const struct activity_clocks *clocks, const struct counters *counters);

/* What the target's clocks stood at @then_ns, between the last look and the present one (@now_ns, @now): it
 * is taken to have used the CPU last, so that what is newest is right. */
struct activity_clocks requests_clocks_at(
	const struct target *target, uint64_t then_ns, uint64_t now_ns, const struct activity_clocks *now);
