/* SPDX-License-Identifier: MIT
 *
 * That the guard is the same before and behind a snapshot does not prove that nothing moved: a call that
 * returned, and another one of the same size, leave the same guard. So the stack itself is read twice, first
 * of all and when all else that belongs to the instant has been read, and only frames that are the same in
 * both copies are believed.
 *
 * Of a deep stack only the inner end is read twice. That suffices because of the order: a frame can't be
 * replaced unless all that are inside of it are. The outer part is read between the two copies of the inner
 * end; had it been replaced meanwhile, all frames of the inner end would be new ones in the second copy, and
 * new ones look like the old ones only where the same calls were made again: that so many of them would is
 * not to be believed, and if all do, the outer part is that of the second copy's moment, or of a moment just
 * before it. (To read the span in the order of its addresses, and then its end again, would prove nothing
 * about the outer part: a target that moved on in the middle shows the same inner end twice.)
 */
#include "reader/copies.h"

#include "reader/load.h"

/* Was this frame another one when the stack was copied for the second time? A caller's opline stands still,
 * too. */
static bool changed(const struct copies *copies, remote_addr addr, bool caller)
{
	const struct layout *layout = copies->layout;
	const uint8_t *first = copies->main->first + (addr - copies->main->addr);
	const uint8_t *again = copies->main->again + (addr - copies->main->again_addr);
	uint64_t differing = 0;

	/* func, This, its flags and prev_execute_data: they lie side by side in every version. */
	for (unsigned i = 0; i < 4; i++) {
		size_t at = layout->ex_func + i * sizeof(uint64_t);

		differing |= load_u64(first + at) ^ load_u64(again + at);
	}
	if (caller)
		differing |= load_u64(first + layout->ex_opline) ^ load_u64(again + layout->ex_opline);
	return differing != 0;
}

void copies_compare(struct copies *copies, remote_addr addr, bool caller)
{
	const struct view_main *main = copies->main;

	copies->last_changed = false;
	if (!copies_has(copies, addr))
		return;
	if (++copies->on_main == COPIES_WANTED_FRAMES)
		copies->steady_bytes = addr - main->addr;
	if (addr >= main->again_addr) {
		copies->compared++;
		copies->last_changed = changed(copies, addr, caller);
		copies->torn |= copies->last_changed;
	} else if (copies->compared < COPIES_LEAST_FRAMES &&
		   (main->again_bytes < VIEW_MAX_REREAD_BYTES || copies->compared == 0)) {
		copies->too_short = true;
	}
}
