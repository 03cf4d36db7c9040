/* SPDX-License-Identifier: MIT
 *
 * The CPU on which the sampler sleeps and is woken. The kernel wakes a SCHED_FIFO thread where it slept,
 * whatever runs there and however idle the other CPUs are. So it would preempt the same busy worker at every
 * tick, for as long as that stays where it is, with a CPU free beside it. Instead it moves out of the way.
 *
 * Whether it is in the way costs nothing to suspect: a target that ran at the last tick and runs now, and was
 * switched in meanwhile, has been disturbed by somebody. Only if that goes on is it asked where it runs. On a
 * machine with no CPU to spare every CPU is in somebody's way; then the sampler moves more and more rarely.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PERCH_SUSPICIOUS 8 /* ticks in a row at which a target was found disturbed */
/* Ticks for which it stays where it has moved to. */
#define PERCH_LEAST_PATIENCE 16
#define PERCH_MOST_PATIENCE 1024

struct perch {
	int cpu; /* it woke up there, and goes back after a tick, which may have taken it elsewhere */
	uint32_t ticks, patience; /* since it moved; for which it stays */
	bool in_the_way;
};

void perch_init(struct perch *perch);

/* A tick begins, on @cpu. */
void perch_wake(struct perch *perch, int cpu);

/* Is it worth asking where a target runs that was @disturbed so many times in a row? */
bool perch_suspects(const struct perch *perch, unsigned disturbed);

/* Such a one runs on @cpu. */
void perch_note(struct perch *perch, int cpu);

/* The tick is over: moves the calling thread to where it came from, or, if it is in the way there, to the
 * next CPU that it may run on. */
void perch_settle(struct perch *perch);
