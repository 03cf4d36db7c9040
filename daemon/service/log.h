/* SPDX-License-Identifier: MIT
 *
 * The daemon's log: lines on stderr, where systemd collects them. No line more than once a minute.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define LOG_REPEAT_NS (60ull * 1000000000u)
#define LOG_REMEMBERED 64 /* different texts */
#define LOG_LINE_BYTES 1024

/* Syslog's numbers, as the journal wants them. */
enum log_priority {
	LOG_ERROR = 3,
	LOG_WARNING = 4,
	LOG_INFO = 6,
};

struct log_memory {
	uint64_t hash; /* of the text; 0: free */
	uint64_t said_ns;
	unsigned suppressed; /* times it was not said since */
};

/* Which texts were said when. */
struct log_filter {
	struct log_memory memories[LOG_REMEMBERED];
};

/* May @text be said at @now_ns? If so, *ret_suppressed is how often it was not since it was said last. */
bool log_filter_admit(struct log_filter *filter, const char *text, uint64_t now_ns, unsigned *ret_suppressed);

struct log {
	FILE *file;
	bool is_journal; /* lines get a priority in front */
	pthread_mutex_t lock;
	struct log_filter filter;
};

/* On @file; it must stay open. Whether it is the journal is known from JOURNAL_STREAM. */
void log_init(struct log *log, FILE *file);
void log_deinit(struct log *log);

/* One line, cut to LOG_LINE_BYTES; bytes that a terminal would obey become '?'. From any thread. */
void log_say(struct log *log, enum log_priority priority, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
