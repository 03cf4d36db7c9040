/* SPDX-License-Identifier: MIT
 *
 * What the verbs that talk to the daemon have in common: one question, its answer or a line on stderr, and an
 * exit status.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/cli/client.h"
#include "daemon/cli/options.h"
#include "daemon/export/json.h"
#include "daemon/profile/accounting.h"

/* Where to ask and about what; the fields that options fill in. */
struct question {
	const char *socket; /* NULL: the default */
	const char *pool;   /* NULL: all */
	pid_t pid;          /* 0: all */
	bool json;          /* the answer's own JSON on stdout, on one line */
};

/* Entries of a verb's option table. */
#define QUESTION_SOCKET(question)                                                       \
	{                                                                               \
		"socket", 0, "PATH", cli_take_text, &(question).socket,                 \
			"the daemon's socket (or environment " CLIENT_PATH_VARIABLE ")" \
	}
#define QUESTION_POOL(question)                                                      \
	{                                                                            \
		"pool", 0, "NAME", cli_take_text, &(question).pool, "only this pool" \
	}
#define QUESTION_PID(question)                                                      \
	{                                                                           \
		"pid", 0, "PID", cli_take_pid, &(question).pid, "only this process" \
	}
#define QUESTION_JSON(question)                                                                    \
	{                                                                                          \
		"json", 0, NULL, cli_take_flag, &(question).json, "JSON on one line, for programs" \
	}

/* {"verb": …} with the question's filters. NULL: no memory. */
cJSON *question_request(const struct question *question, const char *verb);

/* Asks over a connection of its own. EXIT_OK and *ret_result (printed already with question->json); else a
 * line on stderr and its exit status. */
int question_ask(const struct question *question, const cJSON *request, cJSON **ret_result);

/* The exit status that goes with a CLIENT_E_* or negative errno. */
int question_exit_status(int error);

/* Reading answers: what is missing or of another type is 0, "" or nothing. */
uint64_t answer_count(const cJSON *object, const char *key);
const char *answer_string(const cJSON *object, const char *key);
bool answer_flag(const cJSON *object, const char *key);
struct accounting answer_accounting(const cJSON *object);

/* "3 s", "2 min 5 s", "4 h 10 min", "12 d 3 h" */
#define SPAN_BYTES 32
const char *span_text(uint64_t ns, char into[SPAN_BYTES]);

/* The time between two samples, to three digits: "0.1 ms", "59.8 ms", "1.85 s" */
const char *period_text(uint64_t ns, char into[SPAN_BYTES]);
