/* SPDX-License-Identifier: MIT
 *
 * What a sampler costs that follows PHP's pointers one by one. It knows the layout, and nothing else of
 * this project: no cache, no snapshot, no check whether the target moved between two reads (in motion its
 * stacks are partly impossible, which `make oracle` is about, not this).
 *
 * For each frame it reads: execute_data, function, function name (length, text), class, class name (length,
 * text), file, line: nine calls, six for a function without a class. Samplers in use make ten, since they
 * read the file in two as well; here it is one read of a fixed size, so that the comparison errs in its
 * favour.
 */
#include "tests/bench/naive_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "reader/load.h"

#define STRING_HEADER_BYTES 64
#define EXECUTE_DATA_BYTES 128
#define FUNCTION_BYTES 256

/* What arrived, at least @least bytes, or a negative errno. */
static ssize_t read_some(
	struct naive_reader *reader, remote_addr addr, void *into, size_t bytes, size_t least)
{
	struct iovec local = {into, bytes}, remote = {(void *)(uintptr_t)addr, bytes};
	ssize_t arrived;

	reader->calls++;
	arrived = process_vm_readv(reader->pid, &local, 1, &remote, 1, 0);
	if (arrived < 0)
		return -errno;
	return (size_t)arrived < least ? -EFAULT : arrived;
}

static int read_all(struct naive_reader *reader, remote_addr addr, void *into, size_t bytes)
{
	ssize_t r = read_some(reader, addr, into, bytes, bytes);

	return r < 0 ? (int)r : 0;
}

/* Length, then text. */
static int read_string(struct naive_reader *reader, remote_addr string, char text[static NAIVE_TEXT_BYTES])
{
	const struct layout *layout = reader->binary->layout;
	uint8_t header[STRING_HEADER_BYTES];
	uint64_t bytes;
	int r = read_all(reader, string, header, layout->str_val);

	if (r < 0)
		return r;
	bytes = load_u64(header + layout->str_len);
	if (bytes >= NAIVE_TEXT_BYTES)
		bytes = NAIVE_TEXT_BYTES - 1;
	text[bytes] = '\0';
	return read_all(reader, string + layout->str_val, text, bytes);
}

/* Length and text at once, as much of it as there is. */
static int read_file_name(struct naive_reader *reader, remote_addr string, char text[static NAIVE_TEXT_BYTES])
{
	const struct layout *layout = reader->binary->layout;
	uint8_t whole[STRING_HEADER_BYTES + NAIVE_TEXT_BYTES];
	ssize_t arrived =
		read_some(reader, string, whole, layout->str_val + NAIVE_TEXT_BYTES - 1, layout->str_val);
	uint64_t bytes;

	if (arrived < 0)
		return (int)arrived;
	bytes = load_u64(whole + layout->str_len);
	if (bytes > (uint64_t)arrived - layout->str_val)
		bytes = (uint64_t)arrived - layout->str_val;
	memcpy(text, whole + layout->str_val, bytes);
	text[bytes] = '\0';
	return 0;
}

static int read_names(struct naive_reader *reader, const uint8_t *function, struct naive_frame *frame)
{
	const struct layout *layout = reader->binary->layout;
	remote_addr name = load_u64(function + layout->op_array_function_name);
	remote_addr scope = load_u64(function + layout->op_array_scope);
	remote_addr class_name;
	int r = 0;

	frame->function[0] = frame->class_name[0] = '\0';
	if (name != 0)
		r = read_string(reader, name, frame->function);
	if (r < 0 || scope == 0)
		return r;
	r = read_all(reader, scope + layout->ce_name, &class_name, sizeof(class_name));
	return r < 0 ? r : read_string(reader, class_name, frame->class_name);
}

static int read_place(
	struct naive_reader *reader, const uint8_t *function, remote_addr opline, struct naive_frame *frame)
{
	const struct layout *layout = reader->binary->layout;
	int r;

	frame->file[0] = '\0';
	frame->line = frame->line_start = 0;
	if (load_u8(function + layout->op_array_type) == layout->ZEND_INTERNAL_FUNCTION)
		return 0;
	frame->line_start = load_u32(function + layout->op_array_line_start);
	r = read_file_name(reader, load_u64(function + layout->op_array_filename), frame->file);
	/* The innermost frame's opline may be anything: no line then. */
	if (r == 0 && read_all(reader, opline + layout->op_lineno, &frame->line, sizeof(frame->line)) < 0)
		frame->line = 0;
	return r;
}

int naive_reader_sample(struct naive_reader *reader)
{
	const struct layout *layout = reader->binary->layout;
	uint8_t execute_data[EXECUTE_DATA_BYTES], function[FUNCTION_BYTES];
	remote_addr current;
	int count = 0;
	int r = read_all(reader, reader->binary->executor_globals + layout->eg_current_execute_data, &current,
		sizeof(current));

	while (r == 0 && current != 0 && count < NAIVE_MAX_FRAMES) {
		struct naive_frame *frame = &reader->frames[count];
		remote_addr func;

		r = read_all(reader, current, execute_data, layout->ex_sizeof);
		func = r == 0 ? load_u64(execute_data + layout->ex_func) : 0;
		current = r == 0 ? load_u64(execute_data + layout->ex_prev_execute_data) : 0;
		if (func == 0)
			continue;
		/* An internal function is shorter, but lies in a table of others or on the heap. */
		r = read_all(reader, func, function, layout->op_array_line_start + sizeof(uint32_t));
		if (r == 0)
			r = read_names(reader, function, frame);
		if (r == 0)
			r = read_place(reader, function, load_u64(execute_data + layout->ex_opline), frame);
		count++;
	}
	return r < 0 ? r : count;
}
