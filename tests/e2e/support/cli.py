# SPDX-License-Identifier: MIT
"""Runs the program's verbs."""
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

# daemon/cli/cli.h
EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
EXIT_NO_PERMISSION, EXIT_NO_TARGET, EXIT_UNSUPPORTED, EXIT_NO_DAEMON = 3, 4, 5, 6


def binary():
    """$BUILD as make has it: relative to the project's root."""
    return ROOT / os.environ.get("BUILD", "build") / "cbox-profd"


def clean_environment(more=None):
    """Nothing of the environment the suite runs in."""
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **(more or {})}


def command(*arguments):
    return [str(binary()), *map(str, arguments)]


def run(*arguments, seconds=30.0, prefix=(), environment=None, **popen):
    """The finished process; its output as text."""
    return subprocess.run(
        [*map(str, prefix), *command(*arguments)], capture_output=True, text=True, timeout=seconds, check=False,
        stdin=subprocess.DEVNULL, env=clean_environment(environment), **popen)


def ok(*arguments, **more):
    done = run(*arguments, **more)
    told = f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    assert done.returncode == EXIT_OK, f"{' '.join(map(str, arguments))}: status {done.returncode}\n{told}"
    return done


def run_json(*arguments, **more):
    """A verb's --json: exactly one line."""
    text = ok(*arguments, **more).stdout
    assert text.count("\n") == 1 and text.endswith("\n"), f"--json is one line: {text[:500]!r}"
    return json.loads(text)
