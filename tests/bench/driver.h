/* SPDX-License-Identifier: MIT
 *
 * What driver.c can be asked to measure. Each prints lines of words and numbers for tests/bench/run, and
 * returns an exit status.
 */
#pragma once

#include <stdint.h>

/* CPU time of this thread. */
uint64_t driver_cpu_ns(void);
uint64_t driver_now_ns(void);
/* Of all its threads. */
uint64_t driver_process_cpu_ns(void);

/* PID ROUNDS: a sample by each contender, back to back and at 1 kHz. Lines: MODE CONTENDER CPU_NS CALLS, both
 * a sample, one line for each round; before them: depth CONTENDER FRAMES. */
int driver_sample(char **arguments);

/* PID CONTENDER COUNT: that many samples, nothing else, for strace, perf and callgrind to look at. */
int driver_loop(char **arguments);

/* PID ROUNDS: attaches anew each time. Lines: attach OPEN_NS FIRST_NS SECOND_NS OPEN_CPU_NS:
 * php_process_open() and the first two samples. */
int driver_attach(char **arguments);

/* SOCKET: greets whoever connects with a line and sends every line back, one client at a time, until it is
 * killed: what a round trip costs with nothing behind it. */
int driver_echo(char **arguments);

/* COUNT: so many moments on a CPU: the one it is on (stay), another one (go), by way of a thread there
 * (send). Lines: visit HOW NS CPU_NS, the median on the clock and the mean of all threads' CPU time. */
int driver_visit(char **arguments);

/* PID READER COUNT PERIOD_US MAX_SECONDS: looks at the process until PHP code ran at COUNT of the looks. One
 * JSON object: how often which outcome, which stacks how often (struct counted_stack, leaf first). READER is
 * one of witness_names. */
int driver_oracle(char **arguments);
