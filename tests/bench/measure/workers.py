# SPDX-License-Identifier: MIT
"""What N workers cost the daemon: the real engine, php-fpm with opcache."""
import time
from contextlib import ExitStack, contextmanager

from support import load, php_builds, proc, wait
from support.daemon import Daemon
from support.fpm import FpmMaster, Pool

from .table import table

DEPTH = 50
EXTENSIONS = ("mbstring", "pdo", "pdo_sqlite")


def sampler(daemon):
    return next(tid for tid, name in proc.threads(daemon.pid).items() if name == "sampler")


def state(daemon, tid):
    metrics = daemon.metrics()
    accounting = metrics["accounting"]
    return {"cpu": int(proc.read(daemon.pid, f"task/{tid}/schedstat").split()[0]), "time": time.monotonic_ns(),
            "calls": metrics["process_vm_readv_total"] + metrics["proc_reads_total"],
            "expected": accounting["expected"], "missed": accounting["missed"], "late": accounting["late"]}


def cost(daemon, seconds):
    """Over a while: calls a look, the thread's share of a CPU, its CPU a look in µs, share of ticks missed."""
    tid = sampler(daemon)
    before = state(daemon, tid)
    time.sleep(seconds)
    after = state(daemon, tid)
    over = {key: after[key] - before[key] for key in before}
    looks = max(1, over["expected"] - over["missed"])
    return over["calls"] / looks, over["cpu"] / over["time"], over["cpu"] / looks / 1000, over["missed"] / max(1, over["expected"])


@contextmanager
def requests(fpm, script, query, count):
    """That many requests under way, one a worker."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(fpm.connect()).send(script, query)
        yield


@contextmanager
def watched(room, name, workers, **pool):
    """A master with its workers, and a daemon that samples them."""
    with FpmMaster(php_builds.DEBIAN, room / name, [Pool(workers=workers, **pool)], php_builds.ON, extensions=EXTENSIONS) as fpm:
        with Daemon(room / f"{name}d", pools=[{"name": "bench", "master_pid": fpm.pid}]) as daemon:
            yield fpm, daemon.until_attached(fpm.workers())


def settled(daemon, count, doing):
    """Have all of them been seen doing it?"""
    key = "unchanged" if doing == "blocked" else "taken"
    return sum(1 for target in daemon.targets() if target["unit"]["open"] and target["accounting"][key] > 3) >= count


def rows(room, counts, seconds):
    for count in counts:
        for doing, script, query in (("blocked", "sleep.php", f"t=600&d={DEPTH}"), ("running", "deep.php", f"m=method&t=600&d={DEPTH}")):
            with watched(room, f"{doing}{count}", count) as (fpm, daemon), requests(fpm, room / "php" / script, query, count):
                wait.until(lambda: settled(daemon, count, doing), f"{count} workers to be {doing}", 30, poll=0.05)
                for rate in (100, 1000):
                    daemon.ask("rate", rate_hz=rate)
                    time.sleep(0.2)
                    calls, share, each, missed = cost(daemon, seconds)
                    yield [f"{count} {doing}, {rate} Hz", f"{calls:.3f}", f"{100 * share:.2f} %", each, f"{100 * missed:.2f} %"]


def memory(room, workers, samples):
    """RSS of a daemon whose workers serve the sample application, in KiB: before the load, and after so many samples."""
    with watched(room, "memory", workers) as (fpm, daemon):
        daemon.ask("rate", rate_hz=1000)
        idle = proc.rss_bytes(daemon.pid) >> 10

        def taken():
            accounting = daemon.metrics()["accounting"]
            return accounting["expected"] - accounting["missed"] - accounting["idle"]

        with load.requests(fpm, room / "app" / "public" / "index.php", connections=workers, SCRIPT_NAME="/index.php",
                           REQUEST_URI="/catalog/tools/1"):
            wait.until(lambda: taken() >= samples // 4, "a quarter of the samples", 60, poll=0.1)
            early = proc.rss_bytes(daemon.pid) >> 10
            wait.until(lambda: taken() >= samples, lambda: f"{samples} samples: {taken()}", 120, poll=0.1)
            late = proc.rss_bytes(daemon.pid) >> 10
    return table(["resident memory of the daemon, MiB", "no request yet", f"{samples // 4000}k samples", f"{samples // 1000}k samples"],
                 [[f"{workers} workers, the sample application", *(f"{kib / 1024:.1f}" for kib in (idle, early, late))]])


def sections(room, quick):
    counts, seconds = ((1, 8), 0.6) if quick else ((1, 8, 64), 1.5)
    yield table(["workers (php-fpm, 50 frames)", "calls a target and tick", "sampler's share of a CPU", "µs a target and tick", "missed"],
                rows(room, counts, seconds))
    yield memory(room, 16 if quick else 64, 20_000 if quick else 200_000)
