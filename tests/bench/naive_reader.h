/* SPDX-License-Identifier: MIT
 *
 * The measure of comparison: a stack read as simple samplers read it, one process_vm_readv() for each field.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbols/php_binary.h"

#define NAIVE_MAX_FRAMES 1024
#define NAIVE_TEXT_BYTES 256

struct naive_frame {
	char class_name[NAIVE_TEXT_BYTES], function[NAIVE_TEXT_BYTES], file[NAIVE_TEXT_BYTES];
	uint32_t line, line_start; /* the one that runs; the declaration's, 0 for an internal function */
};

struct naive_reader {
	pid_t pid;
	const struct php_binary *binary;
	uint64_t calls; /* of process_vm_readv() so far */
	struct naive_frame frames[NAIVE_MAX_FRAMES];
};

/* Reads the stack of the process into @reader->frames, leaf first. The number of frames, or a negative errno
 * at the first thing that can't be read. */
int naive_reader_sample(struct naive_reader *reader);
