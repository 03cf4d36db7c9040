# SPDX-License-Identifier: MIT
"""How many of the stacks that readers accept are impossible, how many looks are lost and to what, and how far the profile of
the accepted ones is from the truth."""
from collections import defaultdict
from contextlib import ExitStack, contextmanager

from measure.table import table

from . import statistics
from .programs import CLI, FPM
from .seen import READERS, Seen, look
from .targets import MODES, Fpm, on_cli

# The target has a CPU for itself, as far as the machine allows. Readers that never go to it read from another one, always:
# the worst case for them. Those that may go there are free to.
TARGET_CPU, OTHER_CPU = 0, 1
ONE_CPU = {"never": OTHER_CPU, "naive": OTHER_CPU}
# Between two looks, on average. A frame-by-frame look at 200 frames takes 2 ms: its share of the looks is smaller.
PERIOD_US = {"never": 60, "auto": 150, "blocking": 200, "naive": 500}
PART = {"never": 1, "auto": 1, "blocking": 0.1, "naive": 0.05}
OURS = ("never", "auto", "blocking")
MOST_SECONDS = 40


@contextmanager
def _running(program, room, sapi, mode, fpm):
    with program.running(fpm, TARGET_CPU) if sapi == FPM else on_cli(program, room, mode, TARGET_CPU) as pid:
        yield pid


def observe(room, programs, samples, modes=tuple(MODES), readers=READERS, sapis=(CLI, FPM), tell=lambda text: None):
    """{(program, sapi, mode, reader): Seen}; each program has `samples` looks, over all SAPIs and modes."""
    found = {}
    for mode in modes:
        with ExitStack() as stack:
            wants_fpm = FPM in sapis and any(FPM in program.sapis for program in programs)
            fpm = stack.enter_context(Fpm(room, mode)) if wants_fpm else None
            for program in programs:
                its_sapis = [sapi for sapi in program.sapis if sapi in sapis]
                each = samples / len(modes) / len(its_sapis)
                for sapi in its_sapis:
                    with _running(program, room, sapi, mode, fpm) as pid:
                        for reader in readers:
                            tell(f"{program.name}, {sapi}, {mode}: {reader}")
                            seen = Seen()
                            seen.add(look(pid, reader, max(100, int(each * PART[reader])), PERIOD_US[reader], MOST_SECONDS,
                                          ONE_CPU.get(reader)), program.name_of)
                            found[program, sapi, mode, reader] = seen
    return found


def added(found, *places):
    """{(part of the key): Seen}, summed over the rest of it."""
    sums = defaultdict(Seen)
    for key, seen in found.items():
        sums[tuple(key[place] for place in places)].merge(seen)
    return sums


def percent(part, whole, digits=2):
    return f"{100 * part / whole:.{digits}f}" if whole else "–"


def _row(program, seen):
    impossible = sum(seen.impossible(program.grammar).values())
    proofs = sum(sum(counts.values()) for stack, counts in seen.proved.items() if stack)
    causes = ", ".join(f"{name} {percent(count, seen.looks)}" for name, count in sorted(seen.unreadable.items()))
    return [program.name, f"{seen.looks}", percent(seen.accepted, seen.looks), percent(seen.outcomes["retried"], seen.looks),
            percent(seen.outcomes["torn"], seen.looks), causes or "0", percent(seen.unnamed, seen.accepted),
            f"{impossible}", percent(impossible, seen.accepted, 3), f"{100 * statistics.wilson(impossible, seen.accepted)[1]:.3f}",
            f"{sum(seen.impossible_proofs(program.grammar).values())} of {proofs}", f"{seen.refuted}"]


def by_program(found):
    sums = added(found, 0, 3)
    for reader in READERS:
        rows = [_row(program, seen) for (program, of), seen in sums.items() if of == reader]
        if rows:
            yield table([f"{reader}: %", "looks", "accepted", "of these retried", "torn, lost", "unreadable", "unnamed",
                         "impossible", "of the accepted", "at most", "impossible proofs", "proofs of rest refuted"], rows)


def by_place(found):
    """Where programs ran, all of them together."""
    rows = defaultdict(list)
    for (program, sapi, mode, reader), seen in found.items():
        rows[sapi, mode, reader].append((program, seen))
    cells = []
    for (sapi, mode, reader), several in rows.items():
        if reader in OURS:
            accepted = sum(seen.accepted for _, seen in several)
            impossible = sum(sum(seen.impossible(program.grammar).values()) for program, seen in several)
            torn = [(seen.outcomes["torn"] / max(1, seen.looks), program.name) for program, seen in several]
            cells.append([f"{sapi}, {mode}: {reader}", f"{accepted}", f"{impossible}", percent(impossible, accepted, 3),
                          percent(max(torn)[0], 1), max(torn)[1]])
    return table(["all programs", "accepted", "impossible", "%", "most torn, %", "in"], cells)


def side_error(program, seen):
    """(points, low, high): how far the share of one of the parts that have the same share is from that, at worst."""
    parts = set(program.sides.values())
    batches = seen.by_batch(program.side)

    def error(part):
        return lambda counts: 100 * (statistics.shares(counts).get(part, 0) - 1 / len(parts))

    total = statistics.summed(batches)
    return statistics.bootstrap(batches, error(max(parts, key=lambda part: abs(error(part)(total)))))


def leaf(stack):
    return stack[-1] if stack else None


def distances(found):
    sums = added(found, 0, 3)
    rows = []
    for program in dict.fromkeys(program for program, _ in sums):
        row = [program.name]
        reference = sums.get((program, "blocking"))
        for reader in READERS:
            seen = sums.get((program, reader))
            if not seen or not program.sides:
                row.append("–")
            else:
                row.append("{:+.1f} [{:+.1f}, {:+.1f}]".format(*side_error(program, seen)))
        for reader in READERS:
            seen = sums.get((program, reader))
            if not seen or not reference or reader == "blocking":
                continue
            distance, chance = statistics.distance(seen.by_batch(leaf), reference.by_batch(leaf))
            row.append(f"{100 * distance:.1f} ({100 * chance:.1f})")
        rows.append(row)
    return table(["distance, points", *(f"{reader}: parts" for reader in READERS),
                  *(f"{reader} to blocking" for reader in READERS if reader != "blocking")], rows)


def sections(room, programs, samples, modes, tell):
    found = observe(room, programs, samples, modes, tell=tell)
    yield from by_program(found)
    yield by_place(found)
    yield distances(found)
