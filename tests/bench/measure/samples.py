# SPDX-License-Identifier: MIT
"""CPU time and system calls of one sample, against a frame-by-frame reader."""
import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from support import php_builds

from . import driver
from .table import median, table

DEPTHS, QUICK_DEPTHS = (10, 50, 200, 500), (50, 200)
ROUNDS, QUICK_ROUNDS = 9, 5
COUNTED = 2000  # samples under strace
COUNT_OF_A_CALL = re.compile(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(?!total)\w+$", re.M)


def targets(directory, quick):
    """(name, depth, script, arguments, blocks)"""
    depths = QUICK_DEPTHS if quick else DEPTHS
    for kind in ("method",) if quick else ("func", "method"):
        name = "spins, methods" if kind == "method" else "spins, functions"
        for depth in depths:
            yield name, depth, driver.PHP / "deep.php", (depth, kind), False
    for depth in depths:
        yield "sleeps, methods", depth, driver.PHP / "sleep.php", (3600, depth - 1), True
    for depth in QUICK_DEPTHS:
        yield "calls and returns", depth, churn(directory, depth), (), False


def churn(directory, depth):
    """Two chains of so many different functions, called by turns, that return after 0.2 ms or so in the leaf."""
    script = Path(directory) / f"churn{depth}.php"
    command = [php_builds.DEBIAN.cli, "-n", driver.PHP / "gen_churn.php", depth - 1, 20000, "chain"]
    script.write_bytes(subprocess.run(list(map(str, command)), check=True, capture_output=True, timeout=20).stdout)
    return script


def of_target(pid, rounds):
    """{(mode, contender): (µs of CPU, system calls)}, medians over the rounds; {contender: frames}"""
    figures, depths = defaultdict(list), {}
    for words in driver.lines("sample", pid, rounds):
        if words[0] == "depth":
            depths[words[1]] = int(words[2])
        else:
            figures[words[0], words[1]].append((float(words[2]) / 1000, float(words[3])))
    return {key: tuple(map(median, zip(*values))) for key, values in figures.items()}, depths


def measure(quick):
    """[("spins, methods, 50", figures of of_target())]"""
    found = []
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        for name, depth, script, arguments, blocks in targets(directory, quick):
            with driver.php(script, *arguments, blocks=blocks) as pid:
                figures, depths = of_target(pid, QUICK_ROUNDS if quick else ROUNDS)
            assert depths["snapshot"] == depth, f"{name}: {depths}"
            found.append((f"{name}, {depth}", figures))
    return found


def back_to_back(found):
    rows = []
    for name, figures in found:
        of = {contender: cpu for (mode, contender), (cpu, _) in figures.items() if mode == "back"}
        calls, naive_calls = figures["back", "sample"][1], figures["back", "naive"][1]
        rows.append([name, of["snapshot"], of["sample"], of["tick"], of["naive"], f"1/{of['naive'] / of['sample']:.0f}",
                     f"{of['again'] / of['sample']:.2f}", calls, naive_calls])
    return table(["back to back, µs of CPU", "snapshot", "sample", "tick", "naive", "sample : naive", "control",
                  "sample's calls", "naive's"], rows)


def ticking(found):
    rows = []
    for name, figures in found:
        of = {contender: cpu for (mode, contender), (cpu, _) in figures.items() if mode == "1khz"}
        rows.append([name, of["nothing"], of["snapshot"], of["sample"], of["tick"], of["naive"],
                     f"1/{of['naive'] / of['sample']:.0f}", f"{of['again'] / of['sample']:.2f}"])
    return table(["at 1 kHz, µs of CPU", "wake-up alone", "snapshot", "sample", "tick", "naive", "sample : naive",
                  "control"], rows)


def calls_under_strace(pid, contender):
    """System calls of all kinds a sample, from the difference of two runs: without those of starting."""
    counted = []
    for count in (COUNTED, 2 * COUNTED):
        with tempfile.NamedTemporaryFile("r") as out:
            driver.lines("loop", pid, contender, count, prefix=["strace", "-c", "-f", "-o", out.name])
            counted.append(sum(map(int, COUNT_OF_A_CALL.findall(out.read()))))
    return (counted[1] - counted[0]) / COUNTED


def confirmation():
    contenders = ("snapshot", "sample", "tick")
    with driver.php(driver.PHP / "deep.php", 50, "method") as pid:
        running = [calls_under_strace(pid, contender) for contender in contenders]
    with driver.php(driver.PHP / "sleep.php", 3600, 49, blocks=True) as pid:
        blocked = [calls_under_strace(pid, contender) for contender in contenders]
    return table(["all system calls a sample, by strace -c -f", *contenders],
                 [["spins, methods, 50", *running], ["sleeps, methods, 50", *blocked]])


def sections(quick):
    found = measure(quick)
    yield back_to_back(found)
    yield ticking(found)
    if not quick:
        yield confirmation()
