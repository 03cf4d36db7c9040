# SPDX-License-Identifier: MIT
"""A daemon of the suite's own: its configuration, socket and log in a temporary directory."""
import json
import os
import signal
import subprocess
from pathlib import Path

from . import cli, client, proc, wait


def yaml(value, depth=0):
    """Mappings, lists of mappings and scalars: all that a configuration of ours has."""
    margin = "  " * depth
    lines = []
    for key, item in value.items():
        if isinstance(item, dict):
            lines += [f"{margin}{key}:", yaml(item, depth + 1)]
        elif isinstance(item, list):
            lines.append(f"{margin}{key}:")
            for entry in item:
                body = yaml(entry, depth + 2)
                lines.append(f"{margin}  - {body.lstrip()}")
        else:
            text = str(item).lower() if isinstance(item, bool) else str(item)
            lines.append(f"{margin}{key}: {text if text.rstrip('%').isalnum() else json.dumps(text)}")
    return "\n".join(lines)


class Daemon:
    def __init__(self, directory, environment=None, prefix=(), **sections):
        """Sections of the configuration over defaults that suit a test (socket open to all, targets found at once)."""
        self.directory = Path(directory)
        self.socket = self.directory / "run" / "profd.sock"
        self.configuration = {
            "socket": {"path": str(self.socket), "mode": "0666"} | sections.pop("socket", {}),
            "discovery": {"interval": "50ms"} | sections.pop("discovery", {}),
            # How much is sampled must not depend on how busy the machine is; the budget has tests of its own.
            "sampling": {"cpu_budget": "none"} | sections.pop("sampling", {}),
            **sections,
        }
        self.environment = environment or {}
        self.prefix = list(prefix)
        self.process = None

    # -- life --------------------------------------------------------------------------------------------------------

    def configure(self, **sections):
        """Writes the configuration; what is given replaces whole sections."""
        self.configuration |= sections
        self.file.write_text(yaml(self.configuration) + "\n")

    @property
    def file(self):
        return self.directory / "cbox-profd.yaml"

    @property
    def log(self):
        path = self.directory / "daemon.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def pid(self):
        return self.process.pid

    def start(self, seconds=10.0):
        self.directory.mkdir(parents=True, exist_ok=True)
        os.chmod(self.directory, 0o755)
        self.socket.parent.mkdir(exist_ok=True)
        os.chmod(self.socket.parent, 0o755)
        self.configure()
        self._output = open(self.directory / "daemon.log", "ab")
        self.process = proc.start(
            [*self.prefix, cli.binary(), "daemon", "--config", self.file],
            stdout=self._output, stderr=subprocess.STDOUT, env=cli.clean_environment(self.environment))
        wait.until(self._answers, lambda: f"the daemon's hello; its log: {self.log[-3000:]}", seconds)
        return self

    def _answers(self):
        status = self.process.poll()
        assert status is None, f"the daemon ended with status {status}: {self.log[-3000:]}"
        try:
            with client.Client(self.socket, 2) as connection:
                return connection.hello is not None
        except OSError:
            return False

    def stop(self, first=signal.SIGTERM):
        """Ends it and returns its exit status."""
        if self.process is None:
            return None
        status = proc.end(self.process, first)
        self._output.close()
        self.process = None
        return status

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.stop()
            raise

    def __exit__(self, kind, *_):
        was_there = self.process is not None and self.process.poll() is None
        status = self.stop()
        if kind is None and was_there:
            assert status == 0, f"the daemon ended with status {status}: {self.log[-3000:]}"
        elif kind is not None and self.log:
            print("--- the daemon's log\n" + self.log[-4000:])

    def to_be_found(self):
        """FastCGI parameters that lead the PHP client here, with a budget a busy machine can't exhaust: whether the
        client keeps its real one is for the fail-open tests."""
        return {"CBOX_PROFD_SOCKET": self.socket, "CBOX_PROFD_BUDGET_MS": 5000}

    def signal(self, number):
        self.process.send_signal(number)

    # -- questions ---------------------------------------------------------------------------------------------------

    def connect(self, seconds=15.0):
        return client.Client(self.socket, seconds)

    def ask(self, verb, **arguments):
        return client.ask(self.socket, verb, **arguments)

    def targets(self, **filters):
        return self.ask("targets", **filters)["targets"]

    def target(self, pid):
        found = self.targets(pid=pid)
        return found[0] if found else None

    def until_attached(self, pids, seconds=15.0):
        """Waits until all of `pids` are among the targets, and were looked at."""
        wanted = set(pids)

        def looked_at():
            return {target["pid"] for target in self.targets() if target["accounting"]["expected"]}

        def tell():
            refused = self.ask("status").get("refusals")
            return f"targets {sorted(wanted)}; there are {sorted(looked_at())}; refused: {refused}; log: {self.log[-2000:]}"

        wait.until(lambda: wanted <= looked_at(), tell, seconds)
        return self

    def metrics(self):
        return self.ask("metrics")
