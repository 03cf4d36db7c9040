/* SPDX-License-Identifier: MIT
 *
 * Lines on stderr. Under systemd that is the journal, which takes a priority from a "<3>" in front
 * (sd-daemon(3)); on a terminal the same would be noise. JOURNAL_STREAM says which of the two it is: it holds
 * device and inode of the stream that the manager connected, and is compared because the variable survives a
 * redirection.
 *
 * What repeats says nothing new: a text is said once a minute and then with the number of times it was not.
 * Texts are told apart by a hash; the oldest is forgotten when there are too many, so the worst that hostile
 * variety does is to be logged.
 */
#include "daemon/service/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/sampling/clock.h"

/* FNV-1a: no key, no table; two texts that collide cost one of them a line. */
static uint64_t hash_of(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash ? hash : 1;
}

bool log_filter_admit(struct log_filter *filter, const char *text, uint64_t now_ns, unsigned *ret_suppressed)
{
	struct log_memory *oldest = &filter->memories[0];
	uint64_t hash = hash_of(text);

	for (size_t i = 0; i < LOG_REMEMBERED; i++) {
		struct log_memory *memory = &filter->memories[i];

		if (memory->hash == hash) {
			if (now_ns - memory->said_ns < LOG_REPEAT_NS) {
				memory->suppressed++;
				return false;
			}
			*ret_suppressed = memory->suppressed;
			memory->suppressed = 0;
			memory->said_ns = now_ns;
			return true;
		}
		if (memory->said_ns < oldest->said_ns || (!memory->hash && oldest->hash))
			oldest = memory;
	}
	*oldest = (struct log_memory){.hash = hash, .said_ns = now_ns};
	*ret_suppressed = 0;
	return true;
}

static bool is_journal(FILE *file)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uintmax_t device, inode;
	struct stat status;

	return stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
	       fstat(fileno(file), &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

void log_init(struct log *log, FILE *file)
{
	*log = (struct log){.file = file, .is_journal = is_journal(file)};
	pthread_mutex_init(&log->lock, NULL);
}

void log_deinit(struct log *log)
{
	pthread_mutex_destroy(&log->lock);
}

/* Names of processes and files get into lines, and an end of line among them would make a line of its own. */
static void make_printable(char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
	}
}

void log_say(struct log *log, enum log_priority priority, const char *format, ...)
{
	char text[LOG_LINE_BYTES], prefix[8] = "";
	unsigned suppressed;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	make_printable(text);
	pthread_mutex_lock(&log->lock);
	if (log_filter_admit(&log->filter, text, monotonic_now_ns(), &suppressed)) {
		if (log->is_journal)
			snprintf(prefix, sizeof(prefix), "<%d>", (int)priority);
		if (suppressed)
			fprintf(log->file, "%scbox-profd: %s (and %u times since it was said last)\n", prefix,
				text, suppressed);
		else
			fprintf(log->file, "%scbox-profd: %s\n", prefix, text);
		fflush(log->file);
	}
	pthread_mutex_unlock(&log->lock);
}
