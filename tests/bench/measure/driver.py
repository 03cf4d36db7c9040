# SPDX-License-Identifier: MIT
"""tests/bench/driver, and the php processes it looks at."""
import subprocess
from contextlib import contextmanager
from pathlib import Path

from support import cli, php_builds, proc, wait

PHP = Path(__file__).resolve().parents[1] / "php"
# More CPU than starting PHP takes (some 30 ms): it is in its loop.
PAST_START_NS = 80_000_000


def path():
    return cli.binary().parent / "tests" / "bench" / "driver"


def lines(*arguments, seconds=120, prefix=()):
    """What the driver prints, a list of words a line."""
    command = [*map(str, prefix), str(path()), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
    return [line.split() for line in done.stdout.splitlines()]


def ini():
    return php_builds.DEBIAN.ini(php_builds.ON)


@contextmanager
def php(script, *arguments, blocks=False):
    """A php-cli with opcache that runs one of tests/bench/php, once it does what it is there for."""
    process = proc.start([php_builds.DEBIAN.cli, *ini(), script, *arguments], stdout=subprocess.DEVNULL)
    try:
        wait.until(lambda: in_its_loop(process.pid, blocks), f"{script} to get going")
        yield process.pid
    finally:
        proc.end(process)


def in_its_loop(pid, blocks):
    return proc.waits_in_a_call(pid) == "clock_nanosleep" if blocks else proc.cpu_ns(pid) > PAST_START_NS
