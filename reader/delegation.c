/* SPDX-License-Identifier: MIT
 *
 * While a generator delegates with `yield from`, PHP runs the innermost one and links it to its caller
 * through a placeholder: a frame without a function inside of the generator that is being iterated. Where a
 * backtrace is wanted, PHP puts the frames of the delegating generators in its place
 * (zend_generator_check_placeholder_frame() in Zend/zend_generators.c); so does this file.
 *
 * Generators are linked from the one being iterated towards the one that runs (node.parent). The running one
 * is known by its frame, which is the one that led here, so that neither node.ptr.leaf nor node.ptr.root,
 * which changed between 7.4 and 8.1, is needed: one walk serves all versions.
 */
#include "reader/delegation.h"

#include "reader/load.h"

bool delegation_is_placeholder(const struct layout *layout, const struct raw_frame *frame)
{
	return (frame->call_info & 0xff) == layout->IS_OBJECT &&
	       frame->execute_data == frame->called_object_or_class + layout->generator_execute_fake;
}

int delegation_frames(struct view *view, const struct layout *layout, remote_addr outermost,
	remote_addr inner, remote_addr *ret_frames, size_t *ret_count)
{
	size_t first = layout->generator_execute_data;
	size_t bytes = layout->generator_node_parent + sizeof(uint64_t) - first;
	struct remote_span spans[DELEGATION_MAX_LEVELS];
	remote_addr generator = outermost;
	size_t count = 0;
	int r;

	for (unsigned level = 0; generator != 0; level++) {
		const uint8_t *object;
		remote_addr frame, parent;

		if (level == DELEGATION_MAX_LEVELS || !plausible_address(generator))
			return STACK_E_CORRUPT;
		object = view_at(view, generator + first, bytes);
		if (!object)
			return view_error(view);
		frame = load_u64(object);
		parent = load_u64(object + layout->generator_node_parent - first);
		if (frame == inner || (parent == 0 && level > 0))
			break; /* the one that runs: its frame was seen already */
		if (frame != 0) {
			if (!plausible_address(frame))
				return STACK_E_CORRUPT;
			spans[count++] = (struct remote_span){.addr = frame, .bytes = layout->ex_sizeof};
		}
		generator = parent;
	}

	*ret_count = 0;
	if (count == 0)
		return 0;
	r = view_prefetch(view, spans, count);
	if (r != 0)
		return r;
	for (size_t i = 0; i < count; i++)
		ret_frames[i] = spans[count - 1 - i].addr;
	*ret_count = count;
	return 0;
}
