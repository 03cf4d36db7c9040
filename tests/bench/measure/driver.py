# SPDX-License-Identifier: MIT
"""tests/bench/driver, and the php processes it looks at."""
import os
import subprocess
from contextlib import contextmanager
from pathlib import Path

from support import cli, php_builds, proc, wait

PHP = Path(__file__).resolve().parents[1] / "php"


def path():
    return cli.ROOT / os.environ.get("BUILD", "build") / "tests" / "bench" / "driver"


def lines(*arguments, seconds=120, prefix=()):
    """What the driver prints, a list of words a line."""
    done = subprocess.run([*map(str, prefix), str(path()), *map(str, arguments)], capture_output=True, text=True, timeout=seconds,
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"driver {' '.join(map(str, arguments))}: status {done.returncode}: {done.stderr.strip()}")
    return [line.split() for line in done.stdout.splitlines()]


@contextmanager
def php(script, *arguments, blocks=False):
    """A php-cli with opcache that runs one of tests/bench/php, once it does what it is there for."""
    build = php_builds.DEBIAN
    process = subprocess.Popen([build.cli, *build.ini(php_builds.ON), script, *map(str, arguments)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, preexec_fn=proc.die_with_parent)
    try:
        wait.until(lambda: in_its_loop(process.pid, blocks), f"{script} to get going")
        yield process.pid
    finally:
        proc.end(process)


def in_its_loop(pid, blocks):
    """Sleeping in a system call, or deep enough in its code to have used 50 ms of CPU since start-up."""
    return proc.waits_in_a_call(pid) == "clock_nanosleep" if blocks else proc.cpu_ns(pid) > 80_000_000
