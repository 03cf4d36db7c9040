# SPDX-License-Identifier: MIT
"""What several sampler threads cost and keep up with: the same workers, daemons with one and more of them in turns."""
import time
from contextlib import ExitStack, contextmanager

from support import php_builds, proc
from support.daemon import Daemon
from support.fpm import FpmMaster, Pool

from . import workers
from .table import median, table

RATE = 1000
THREADS = (1, 2)


@contextmanager
def watched(room, name, fpm, threads):
    sampling = {"threads": threads, "rate": RATE, "cpu_budget": "none"}
    with Daemon(room / name, sampling=sampling, pools=[{"name": "bench", "master_pid": fpm.pid}]) as daemon:
        yield daemon.until_attached(fpm.workers())


def state(daemon):
    metrics = daemon.metrics()
    return {
        "cpu": sum(int(proc.read(daemon.pid, f"task/{tid}/schedstat").split()[0])
                   for tid, name in proc.threads(daemon.pid).items() if name.startswith("sampler")),
        "time": time.monotonic_ns(),
        **{key: metrics["accounting"][key] for key in ("expected", "missed", "late")},
    }


def figures(daemon, seconds):
    """The samplers' share of a CPU, their µs a target and tick, shares of ticks missed and late."""
    time.sleep(0.3)
    before = state(daemon)
    time.sleep(seconds)
    after = state(daemon)
    over = {key: after[key] - before[key] for key in before}
    return (100 * over["cpu"] / over["time"], over["cpu"] / max(1, over["expected"] - over["missed"]) / 1000,
            100 * over["missed"] / over["expected"], 100 * over["late"] / over["expected"])


def rows(room, doing, count, rounds, seconds):
    """The workers are put to work once, in front of a daemon that says when they are; daemons then take turns."""
    numbers = {threads: [] for threads in THREADS}
    with FpmMaster(php_builds.DEBIAN, room / f"threads-{doing}", [Pool(workers=count)], php_builds.ON) as fpm, \
            ExitStack() as working:
        with watched(room, f"threads-{doing}-first", fpm, 1) as first:
            working.enter_context(workers.busy(room, fpm, first, count, doing))
        for number in range(rounds):
            for threads, turns in numbers.items():
                with watched(room, f"threads-{doing}-{threads}-{number}", fpm, threads) as daemon:
                    turns.append(figures(daemon, seconds))
    for threads, turns in numbers.items():
        share, each, missed, late = (median(column) for column in zip(*turns))
        yield [f"{count} {doing}, {threads} thread{'s' if threads > 1 else ''}", f"{share:.1f} %", each,
               f"{missed:.2f} %", f"{late:.2f} %"]


def sections(room, quick):
    rounds, seconds = (1, 0.6) if quick else (3, 1.5)
    counts = {"running": 16, "blocked": 16} if quick else {"running": 64, "blocked": 256}
    yield table([f"sampler threads (php-fpm, {workers.DEPTH} frames, {RATE} Hz)", "their share of a CPU",
                 "µs a target and tick", "missed", "late"],
                [row for doing, count in counts.items() for row in rows(room, doing, count, rounds, seconds)])
