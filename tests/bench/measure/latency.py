# SPDX-License-Identifier: MIT
"""What one has to wait for: attaching, and the answer to `finish`."""
import subprocess
import time

from support import cli, proc, wait

from . import driver
from .table import median, percentile, table
from .workers import requests, settled, watched

BUSY = 8


def attach(quick):
    rounds = 10 if quick else 40

    def row(name, pid):
        figures = [list(map(int, words[1:])) for words in driver.lines("attach", pid, rounds)]
        opened, first, second, cpu = ([figure[column] / 1000 for figure in figures] for column in range(4))
        whole = [a + b for a, b in zip(opened, first)]
        return [name, median(opened), median(first), median(second), median(whole), max(whole), median(cpu), median(dump(pid, rounds // 2)) / 1000]

    def dump(pid, times):
        for _ in range(times):
            started = time.monotonic_ns()
            cli.ok("dump", pid)
            yield time.monotonic_ns() - started

    with driver.php(driver.PHP / "sleep.php", 3600, 49, blocks=True) as sleeping, driver.php(driver.PHP / "deep.php", 50, "method") as running:
        found = [row("sleeps, 50 methods", sleeping), row("spins, 50 methods", running)]
    return table(["attach, µs", "open", "first sample", "second", "both", "worst", "open: CPU", "`dump` as a command"], found)


def finish(room, quick):
    rounds = 40 if quick else 300
    socket = room / "echo.sock"
    echo = subprocess.Popen([driver.path(), "echo", socket], stdin=subprocess.DEVNULL, preexec_fn=proc.die_with_parent)
    found = []
    try:
        wait.until(socket.exists, "the echo server")
        with watched(room, "finish", BUSY + 1) as (fpm, daemon):
            daemon.ask("rate", rate_hz=1000)
            found += ask(fpm, daemon, room, socket, rounds, f"{BUSY} workers idle")
            with requests(fpm, room / "php" / "deep.php", "m=method&t=600&d=50", BUSY):
                wait.until(lambda: settled(daemon, BUSY, "running"), f"{BUSY} running workers", 30, poll=0.05)
                found += ask(fpm, daemon, room, socket, rounds, f"{BUSY} workers run")
    finally:
        proc.end(echo)
    return table(["round trip at 1 kHz, µs", "p50", "p90", "p99", "worst"], found)


def ask(fpm, daemon, room, echo, rounds, what):
    """One worker's round trips: nothing, finish, finish with everything, by turns."""
    told = fpm.request(room / "php" / "finish.php", f"rounds={rounds}&socket={daemon.socket}&echo={echo}", seconds=120).json()
    for name, times in told.items():
        times = [nanoseconds / 1000 for nanoseconds in times]
        yield [f"{what}: {name}", *(percentile(times, percent) for percent in (50, 90, 99)), max(times)]


def sections(room, quick):
    yield attach(quick)
    yield finish(room, quick)
