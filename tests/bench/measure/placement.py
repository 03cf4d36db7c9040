# SPDX-License-Identifier: MIT
"""From which CPU a process is read: what is lost of a stack that changes all the time, and what it costs that process.

Two chains of 50 functions take turns within microseconds (gen_churn.php), and the program tells how fast it gets on. One
daemon for each placement is there all the time and is given the process for its turn; in each round everyone takes one,
each time beginning with another.
"""
import fcntl
import os
import subprocess
import time
from collections import defaultdict, namedtuple
from contextlib import ExitStack, contextmanager

from support import php_builds, proc, wait
from support.daemon import Daemon

from . import driver
from .ratios import change
from .table import median, table

PLACEMENTS = ("never", "auto", "always")
RATES = (100, 1000)
TOLD_EVERY = 500  # turns of the program's loop
SETTLING = 0.2    # seconds
NOBODY, CONTROL = ("nobody", 0), ("nobody again (control)", 0)

Turn = namedtuple("Turn", "speed looks retried lost sampler_us")


class Target:
    """The program, and the lines in which it says when it was where."""

    def __init__(self, room):
        generator = [php_builds.DEBIAN.cli, "-n", driver.PHP / "gen_churn.php", "50", "20", "chain"]
        code = subprocess.run(list(map(str, generator)), check=True, capture_output=True, text=True, timeout=20).stdout
        told = f"    if ($n % {TOLD_EVERY} === 0) echo hrtime(true), \"\\n\";\n"
        self.script = room / "placement.php"
        self.script.write_text(code.replace("    b_1($n);\n", "    b_1($n);\n" + told))

    @contextmanager
    def running(self):
        # Before all others but the sampler: what else runs on the machine shall not count.
        self.process = proc.start(["nice", "-n", "-15", php_builds.DEBIAN.cli, *driver.ini(), self.script],
                                  stdout=subprocess.PIPE)
        try:
            fcntl.fcntl(self.process.stdout, fcntl.F_SETFL, os.O_NONBLOCK)
            wait.until(lambda: driver.in_its_loop(self.process.pid, False), "the program to get going")
            yield self
        finally:
            proc.end(self.process)

    def lines(self):
        return (self.process.stdout.read() or b"").split()

    def speed(self, seconds):
        """Turns of its loop a second, by its own clock."""
        self.lines()
        time.sleep(seconds)
        told = list(map(int, self.lines()[1:-1]))
        return (len(told) - 1) * TOLD_EVERY * 1e9 / (told[-1] - told[0])


def sampler_cpu_ns(daemon):
    return sum(int(proc.read(daemon.pid, f"task/{tid}/schedstat").split()[0])
               for tid, name in proc.threads(daemon.pid).items() if name.startswith("sampler"))


def unwatched(target, seconds):
    time.sleep(SETTLING)
    return Turn(target.speed(seconds), 0, 0, 0, 0.0)


def watched(target, daemon, rate, seconds):
    pid = target.process.pid
    daemon.ask("attach", pid=pid)
    try:
        daemon.until_attached([pid])
        daemon.ask("rate", rate_hz=rate)
        time.sleep(SETTLING)
        before, cpu = daemon.target(pid)["accounting"], sampler_cpu_ns(daemon)
        speed = target.speed(seconds)
        after, cpu = daemon.target(pid)["accounting"], sampler_cpu_ns(daemon) - cpu
    finally:
        daemon.ask("detach", pid=pid)
    over = {key: after[key] - before[key] for key in ("taken", "torn_retried", "torn_lost")}
    looks = over["taken"] + over["torn_lost"]
    return Turn(speed, looks, over["torn_retried"], over["torn_lost"], cpu / max(1, looks) / 1000)


def measure(room, rounds, seconds):
    """{(placement, rate): [Turn, …]}, one of each round."""
    turns = [NOBODY, *((placement, rate) for rate in RATES for placement in PLACEMENTS), CONTROL]
    found = defaultdict(list)
    with ExitStack() as stack:
        daemons = {placement: stack.enter_context(Daemon(
            room / f"placement-{placement}", sampling={"placement": placement, "cpu_budget": "none"},
            discovery={"interval": "10s"}, pools=[{"executable": "/none"}])) for placement in PLACEMENTS}
        target = stack.enter_context(Target(room).running())
        for number in range(rounds):
            for place in range(len(turns)):
                turn = turns[(number + place) % len(turns)]
                placement, rate = turn
                found[turn].append(watched(target, daemons[placement], rate, seconds) if rate else
                                   unwatched(target, seconds))
    return found


def row(turn, turns, base):
    placement, rate = turn
    of = Turn(*zip(*turns))
    slower = change(of.speed, base)
    if not rate:
        return [placement, "", "", "", slower, ""]
    looks = sum(of.looks)
    return [f"{placement}, {rate} Hz", str(looks), f"{100 * sum(of.retried) / looks:.1f} %",
            f"{100 * sum(of.lost) / looks:.2f} %", slower, median(of.sampler_us)]


def visits(rounds, count):
    """A moment on the CPU where the process runs."""
    found = defaultdict(list)
    for _ in range(rounds):
        for _, how, clock_ns, cpu_ns in driver.lines("visit", count):
            found[how].append((int(clock_ns) / 1000, int(cpu_ns) / 1000))
    names = {"stay": "the thread is there already", "go": "it goes there (sched_setaffinity)",
             "send": "it wakes a thread there, and waits"}
    return table(["a moment on the process's CPU, µs", "on the clock", "of CPU"],
                 [[name, *map(median, zip(*found[how]))] for how, name in names.items()])


def sections(room, quick):
    found = measure(room, *((3, 0.3) if quick else (7, 0.4)))
    base = [turn.speed for turn in found.pop(NOBODY)]
    yield table(["read from which CPU (sampling.placement)", "looks", "tried again", "torn and lost",
                 "its speed against that with nobody looking", "µs of the sampler a look"],
                [row(turn, turns, base) for turn, turns in found.items()])
    yield visits(*((3, 1000) if quick else (7, 2000)))
