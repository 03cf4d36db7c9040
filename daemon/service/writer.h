/* SPDX-License-Identifier: MIT
 *
 * A thread that writes long answers (a profile is a megabyte of JSON), so that whoever asks for a short one
 * meanwhile does not wait for it. One after the other: that is all of the machine that readers get.
 */
#pragma once

#include "symbols/cleanup.h"
#include "daemon/sampling/mailbox.h"
#include "daemon/service/verbs.h"

struct writer;

/* What is written goes to @outbox, as it is: exchange->message, with @kind. */
int writer_new(struct mailbox *outbox, unsigned kind, struct writer **ret_writer);
/* What it still has goes to its outbox unwritten. */
void writer_free(struct writer *writer);
DEFINE_CLEANUP(struct writer, writer_free)

/* Hands over @exchange, all of whose orders are back; nobody else may look at it until it comes back with its
 * lines, but for its client, which the writer does not touch. Workers' answers come before readers'. */
void writer_write(struct writer *writer, struct exchange *exchange);
