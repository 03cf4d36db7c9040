# SPDX-License-Identifier: MIT
"""The kernel as a witness of the daemon's deadlines.

A uprobe on cadence_due() records what each call is given: the next deadline, the period in force, the state of the random
numbers, and the time. From these alone it is worked out again which deadlines had passed: how many a tick served, how
late, and how many it missed. This knows docs/DECISIONS.md (1), not the daemon's code or its counters.
"""
import os
import re
import subprocess
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field

from . import cli

BUFFER_KIB = 16384  # a CPU: 100,000 calls and more
GROUP = f"cbox_profd_{os.getpid()}"
# struct cadence {period_ns, deadline_ns, random}; x86-64's first and second argument
ARGUMENTS = "at=%di:u64 period=+0(%di):u64 deadline=+8(%di):u64 random=+16(%di):u64 now=%si:u64"
CALL = re.compile(r" (\d+)\.(\d{6}): due: .* at=(\d+) period=(\d+) deadline=(\d+) random=(\d+) now=(\d+)$")
MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Call:
    kernel_us: int  # CLOCK_MONOTONIC, by the kernel's own reading
    at: int  # which cadence
    period: int
    deadline: int
    random: int
    now: int


def file_offset(program, function):
    """Where in the file a function begins."""
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = int(re.search(rf"^([0-9a-f]+) [Tt] {function}$", symbols, re.M)[1], 16)
    segments = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    for load in re.findall(r"^ +LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", segments, re.M):
        offset, start, size = (int(number, 16) for number in load)
        if start <= address < start + size:
            return address - start + offset
    raise AssertionError(f"{function} is in no segment of {program}")


@contextmanager
def _mounted(directory):
    directory.mkdir()
    try:
        subprocess.run(["mount", "-t", "tracefs", "none", directory], check=True)
        try:
            yield directory
        finally:
            subprocess.run(["umount", directory], check=True)
    finally:
        directory.rmdir()


@contextmanager
def _uprobe(tracing):
    """The probe's directory name; nobody else's probes are touched."""
    program = cli.binary()

    def order(line):
        # added to the list, which is not a file to be positioned in
        probes = os.open(tracing / "uprobe_events", os.O_WRONLY | os.O_APPEND)
        try:
            os.write(probes, line.encode())
        finally:
            os.close(probes)

    order(f"p:{GROUP}/due {program}:{file_offset(program, 'cadence_due'):#x} {ARGUMENTS}\n")
    try:
        yield f"events/{GROUP}/due"
    finally:
        order(f"-:{GROUP}/due\n")


@contextmanager
def _instance(tracing):
    """A trace buffer of our own."""
    instance = tracing / "instances" / GROUP
    instance.mkdir()
    try:
        (instance / "buffer_size_kb").write_text(str(BUFFER_KIB))
        (instance / "trace_clock").write_text("mono")
        yield instance
    finally:
        instance.rmdir()


def _assert_nothing_was_lost(instance):
    for stats in instance.glob("per_cpu/cpu*/stats"):
        lost = re.findall(r"^(overrun|commit overrun|dropped events): (\d+)$", stats.read_text(), re.M)
        assert len(lost) == 3 and all(count == "0" for _, count in lost), f"the trace is not whole: {stats}: {lost}"


@contextmanager
def watching(directory):
    """Yields a list that holds all Calls of the block, as they came, once it has been left."""
    calls = []
    with _mounted(directory) as tracing, _uprobe(tracing) as event, _instance(tracing) as instance:
        enable = instance / event / "enable"
        enable.write_text("1")
        try:
            yield calls
        finally:
            enable.write_text("0")
        _assert_nothing_was_lost(instance)
        lines = [line for line in (instance / "trace").read_text().splitlines() if not line.startswith("#")]
    for line in lines:
        found = CALL.search(line)
        assert found, f"not a call: {line}"
        seconds, micros, *numbers = map(int, found.groups())
        calls.append(Call(seconds * 1_000_000 + micros, *numbers))


def due(call):
    """What a call finds: how many deadlines have passed, how long ago the newest of them, the state that it leaves."""
    passed, late, deadline, random = 0, None, call.deadline, call.random
    while deadline <= call.now:
        late = call.now - deadline
        random ^= random << 13 & MASK
        random ^= random >> 7
        random ^= random << 17 & MASK
        deadline += call.period // 2 + random % (call.period + 1)
        passed += 1
    assert passed <= 1000, "so long a gap is not walked through"
    return passed, late, (deadline, random)


@dataclass
class Deadlines:
    """Of one target, as its accounting should tell them."""
    not_its_own: int  # had passed when it joined
    expected: int = 0
    missed: int = 0
    late: int = 0
    histogram: list = field(default_factory=lambda: [0] * 8)

    def serve(self, passed, late, period):
        own = passed - self.not_its_own
        self.not_its_own = 0
        if own == 0:
            return
        self.expected += own
        self.missed += own - 1
        self.late += 2 * late > period
        # less than 1/16, 1/8, 1/4, 1/2, 1, 2, 4 periods, and more
        bucket = sum(late * 16 >= period << edge for edge in range(7))
        self.histogram[bucket] += 1


def deadlines(calls):
    """One Deadlines for each target that joined, in this order.

    All are on one cadence, which each call must find as the one before it has left it. Who joins looks, on a copy, at
    what is overdue.
    """
    by_cadence = Counter(call.at for call in calls)
    cadence, left, targets = max(by_cadence, key=by_cadence.get), None, []
    for call in calls:
        # The time that the daemon goes by is the kernel's; between reading and using it, it may have had to wait.
        assert call.kernel_us * 1000 >= call.now - 1000
        passed, late, leaves = due(call)
        if call.at != cadence:
            targets.append(Deadlines(passed))
            continue
        assert left in (None, (call.deadline, call.random)), f"not what the call before has left: {call}"
        left = leaves
        if passed:
            for target in targets:
                target.serve(passed, late, call.period)
    return targets
