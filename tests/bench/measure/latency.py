# SPDX-License-Identifier: MIT
"""What one has to wait for: attaching, and the answer to `finish`."""
import time

from support import cli, proc, wait

from . import driver
from .table import median, percentile, table
from .workers import busy, watched

BUSY = 8


def attach_row(name, pid, rounds):
    figures = [[int(word) / 1000 for word in words[1:]] for words in driver.lines("attach", pid, rounds)]
    opened, first, second, cpu = zip(*figures)
    both = [a + b for a, b in zip(opened, first)]
    return [name, median(opened), median(first), median(second), median(both), max(both), median(cpu),
            median(dumps(pid, rounds // 2))]


def dumps(pid, times):
    """`cbox-profd dump`, from exec to exit."""
    for _ in range(times):
        started = time.monotonic_ns()
        cli.ok("dump", pid)
        yield (time.monotonic_ns() - started) / 1000


def attach(quick):
    rounds = 10 if quick else 40
    with driver.php(driver.PHP / "sleep.php", 3600, 49, blocks=True) as sleeping:
        with driver.php(driver.PHP / "deep.php", 50, "method") as running:
            rows = [attach_row("sleeps, methods, 50", sleeping, rounds),
                    attach_row("spins, methods, 50", running, rounds)]
    return table(["attach, µs", "open", "first sample", "second", "open and first", "worst", "open: CPU",
                  "`dump` as a command"], rows)


def finish(room, quick):
    rounds = 40 if quick else 300
    socket = room / "echo.sock"
    echo = proc.start([driver.path(), "echo", socket])
    try:
        wait.until(socket.exists, "the echo server")
        with watched(room, "finish", BUSY + 1) as (fpm, daemon):
            daemon.ask("rate", rate_hz=1000)
            rows = round_trips(fpm, daemon, room, socket, rounds, f"{BUSY} workers idle")
            with busy(room, fpm, daemon, BUSY, "running"):
                rows += round_trips(fpm, daemon, room, socket, rounds, f"{BUSY} workers run")
    finally:
        proc.end(echo)
    return table(["round trip at 1 kHz, µs", "p50", "p90", "p99", "worst"], rows)


def round_trips(fpm, daemon, room, echo, rounds, what):
    """One worker's, by turns: to a server that does nothing, finish, finish with everything."""
    query = f"rounds={rounds}&socket={daemon.socket}&echo={echo}"
    told = fpm.connect(seconds=120).request(room / "php" / "finish.php", query).json()
    return [[f"{what}: {name}", *(percentile(times, percent) / 1000 for percent in (50, 90, 99)), max(times) / 1000]
            for name, times in told.items()]


def sections(room, quick):
    yield attach(quick)
    yield finish(room, quick)
