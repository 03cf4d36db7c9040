# SPDX-License-Identifier: MIT
"""A directory for one run that workers of another user can read: the scripts, the sample application."""
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

from support import cli, load

from . import driver


@contextmanager
def place():
    room = Path(tempfile.mkdtemp(prefix="bench-"))
    try:
        os.chmod(room, 0o755)
        shutil.copytree(driver.PHP, room / "php")
        shutil.copytree(cli.ROOT / "tests" / "app", room / "app", ignore=shutil.ignore_patterns("app.db"))
        for path in room.rglob("*"):
            os.chmod(path, 0o755 if path.is_dir() else 0o644)
        load.seed(room / "app")
        yield room
    finally:
        shutil.rmtree(room, ignore_errors=True)
