# SPDX-License-Identifier: MIT
"""What a reader saw of a process (`driver oracle`), in the words of the grammars."""
import json
import re
import subprocess
from collections import Counter, defaultdict
from functools import lru_cache
from pathlib import Path

from measure import driver

from .grammar import UNREAD

READERS = ("never", "auto", "blocking", "naive")
BATCHES = 40  # STACK_TABLE_BATCHES
INCLUDES = {"include", "include_once", "require", "require_once"}
MARK = re.compile(r"//\s*(.+?)\s*$")


@lru_cache(maxsize=None)
def _source(file):
    try:
        return Path(file).read_text(errors="replace").splitlines()
    except (OSError, ValueError):
        return []


def name_of(frame):
    """The function; closures by the comment on the line of their declaration, included files by their names."""
    function, file, line = frame["function"], frame["file"], frame["line"]
    if function in INCLUDES:
        return f"include {Path(file).name}"
    if function.endswith("{closure}"):
        lines = _source(file)
        mark = MARK.search(lines[line - 1]) if 0 < line <= len(lines) else None
        return f"{function[:-len('{closure}')]}{{closure {mark.group(1) if mark else '?'}}}"
    return function


class Seen:
    """Outcomes and stacks, of one run or of several added up, batch by batch. Stacks are tuples of names, outermost first."""

    def __init__(self):
        self.outcomes, self.unreadable = Counter(), Counter()
        self.refuted = self.took_ns = 0
        self.whole, self.proved = defaultdict(Counter), defaultdict(Counter)  # {stack: {batch: count}}

    def add(self, told, name=name_of):
        names = [name(frame) for frame in told["frames"]]
        for stack in told["stacks"]:
            stacks = self.proved if stack["torn"] else self.whole
            counts = stacks[tuple(names[number] for number in reversed(stack["frames"]))]
            for batch, count in enumerate(stack["counts"]):
                if count:
                    counts[batch] += count
        self.outcomes.update(told["outcomes"])
        self.unreadable.update(told["unreadable"])
        self.refuted += told["refuted"]
        self.took_ns += told["took_ns"]

    def merge(self, other):
        for mine, theirs in ((self.whole, other.whole), (self.proved, other.proved)):
            for stack, counts in theirs.items():
                mine[stack].update(counts)
        self.outcomes.update(other.outcomes)
        self.unreadable.update(other.unreadable)
        self.refuted += other.refuted
        self.took_ns += other.took_ns

    @property
    def accepted(self):
        return sum(self.outcomes[name] for name in ("accepted", "retried", "unchanged"))

    @property
    def looks(self):
        """Those at which PHP code ran."""
        return self.accepted + self.outcomes["torn"] + self.outcomes["unreadable"]

    def impossible(self, grammar, stacks=None):
        """{stack: count}"""
        stacks = self.whole if stacks is None else stacks
        return {stack: sum(counts.values()) for stack, counts in stacks.items() if not grammar.is_legal(stack)}

    @property
    def unnamed(self):
        """Accepted stacks of which a function's name could not be read any more."""
        return sum(sum(counts.values()) for stack, counts in self.whole.items()
                   if any(UNREAD in (name, name[0]) for name in stack))

    def impossible_proofs(self, grammar):
        """Of torn samples of which something was proved."""
        return self.impossible(grammar, {stack: counts for stack, counts in self.proved.items() if stack})

    def by_batch(self, group):
        """[{group(stack): count}], a batch each, with a part of every run; stacks of group None are left out."""
        batches = [Counter() for _ in range(BATCHES)]
        for stack, counts in self.whole.items():
            key = group(stack)
            if key is not None:
                for batch, count in counts.items():
                    batches[batch][key] += count
        return batches


def look(pid, reader, count, period_us, seconds, cpu=None):
    """What `driver oracle` tells; on this CPU only, if one is given."""
    command = ["taskset", "-c", str(cpu)] if cpu is not None else []
    command += [str(driver.path()), "oracle", *map(str, (pid, reader, count, period_us, seconds))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)
