# SPDX-License-Identifier: MIT
"""CPU time and system calls of one sample, against a frame-by-frame reader."""
import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from . import driver
from .table import median, table

DEPTHS = (10, 50, 200, 500)
CONFIRM = 2000  # samples under strace


def targets(quick):
    """(name, depth, script, arguments, blocks)"""
    depths = (50, 200) if quick else DEPTHS
    for kind in ("method",) if quick else ("function", "method"):
        for depth in depths:
            yield f"spins, {kind}s", depth, driver.PHP / "deep.php", (depth, "func" if kind == "function" else kind), False
    for depth in depths:
        yield "sleeps, methods", depth, driver.PHP / "sleep.php", (3600, depth - 1), True


def churn(directory):
    """Call chains that unwind and are built anew all the time: 50 calls, 0.2 ms in the leaf."""
    script = Path(directory) / "churn.php"
    script.write_bytes(subprocess.run(["/usr/bin/php8.2", "-n", driver.PHP / "gen_churn.php", "50", "20000", "chain"], check=True,
                                      capture_output=True, timeout=20).stdout)
    return "calls and returns", 50, script, (), False


def of_target(pid, rounds):
    """{(mode, contender): (µs of CPU, system calls)}, medians over the rounds."""
    figures = defaultdict(list)
    depths = {}
    for words in driver.lines("sample", pid, rounds):
        if words[0] == "depth":
            depths[words[1]] = int(words[2])
        else:
            figures[words[0], words[1]].append((float(words[2]) / 1000, float(words[3])))
    return {key: tuple(map(median, zip(*values))) for key, values in figures.items()}, depths


def measure(quick):
    rounds = 5 if quick else 9
    found = []
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        for name, depth, script, arguments, blocks in [*targets(quick), churn(directory)]:
            with driver.php(script, *arguments, blocks=blocks) as pid:
                figures, depths = of_target(pid, rounds)
            found.append((name, depth, figures))
            if script.name != "churn.php":  # a stack that moves has no depth of its own
                assert depths["naive"] == depths["snapshot"] == depth, f"{script}: {depths}"
    return found


def rows(found, mode, of):
    for name, depth, figures in found:
        yield [f"{name}, {depth}", *of(name, depth, {contender: value for (in_mode, contender), value in figures.items() if in_mode == mode})]


def back_to_back(found):
    def of(name, depth, figures):
        sample, naive = figures["sample"], figures["naive"]
        return [figures["snapshot"][0], sample[0], figures["tick"][0], naive[0], f"1/{naive[0] / sample[0]:.0f}",
                f"{figures['again'][0] / sample[0]:.2f}", sample[1], naive[1]]

    return table(["back to back, µs of CPU", "snapshot", "sample", "tick", "naive", "sample : naive", "control", "calls", "naive's"],
                 rows(found, "back", of))


def ticking(found):
    def of(name, depth, figures):
        sample, naive = figures["sample"][0], figures["naive"][0]
        return [figures["nothing"][0], figures["snapshot"][0], sample, figures["tick"][0], naive, f"1/{naive / sample:.0f}",
                f"{figures['again'][0] / sample:.2f}"]

    return table(["at 1 kHz, µs of CPU", "wake-up alone", "snapshot", "sample", "tick", "naive", "sample : naive", "control"],
                 rows(found, "1khz", of))


def calls_under_strace(pid, contender):
    """System calls of all kinds a sample, from the difference of two runs, so that start-up does not count."""
    counted = []
    for count in (CONFIRM, 2 * CONFIRM):
        with tempfile.NamedTemporaryFile("r") as out:
            driver.lines("loop", pid, contender, count, prefix=["strace", "-c", "-f", "-o", out.name])
            counted.append(sum(int(match[1]) for match in re.finditer(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(?!total)\w+$",
                                                                      out.read(), re.M)))
    return (counted[1] - counted[0]) / CONFIRM


def confirmation():
    with driver.php(driver.PHP / "deep.php", 50, "method") as pid:
        running = [calls_under_strace(pid, contender) for contender in ("snapshot", "sample", "tick")]
    with driver.php(driver.PHP / "sleep.php", 3600, 49, blocks=True) as pid:
        blocked = [calls_under_strace(pid, contender) for contender in ("snapshot", "sample", "tick")]
    return table(["all system calls a sample, by strace -c -f", "snapshot", "sample", "tick"],
                 [["spins, methods, 50", *running], ["sleeps, methods, 50", *blocked]])


def sections(quick):
    found = measure(quick)
    yield back_to_back(found)
    yield ticking(found)
    if not quick:
        yield confirmation()
