# SPDX-License-Identifier: MIT
"""The daemon's life: reload, end, restart, socket activation, and what it tells systemd."""
import os
import signal
import socket
import stat
import subprocess
import sys

import pytest

from support import balance, cli, wait
from support.client import Refused
from support.gate import Gate
from test_unit import assert_is_consistent, unit

TRACE = "0af7651916cd43dd8448eb211c80319c"


def worker_of(daemon, trace):
    """The pid of the target that serves this trace now."""
    return next((target["pid"] for target in daemon.targets() if target["trace_id"] == trace), None)


# -- reload ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_sighup_takes_a_new_configuration(fpm, make_daemon, scripts):
    daemon = make_daemon(fpm, rate=100)
    handled = daemon.target(fpm.workers()[0])["accounting"]["expected"]
    daemon.configure(sampling={"rate": 400})
    daemon.signal(signal.SIGHUP)
    wait.until(lambda: {target["period_ns"] for target in daemon.targets()} == {2_500_000}, "the new rate")
    assert daemon.target(fpm.workers()[0])["accounting"]["expected"] >= handled, "targets are kept, with what was counted"
    assert unit(fpm, scripts, daemon, hot=50)["result"]["profile"]["period_ns"] == 2_500_000


def test_a_bad_configuration_changes_nothing_and_is_named(fpm, make_daemon, scripts):
    daemon = make_daemon(fpm, rate=100)
    daemon.file.write_text("sampling:\n  rate: a lot\n")
    daemon.signal(signal.SIGHUP)
    wait.until(lambda: f"{daemon.file}:2:9" in daemon.log, lambda: f"file, line and column in the log: {daemon.log}")
    assert "rate" in daemon.log and "a lot" in daemon.log
    assert {target["period_ns"] for target in daemon.targets()} == {10_000_000}
    with pytest.raises(Refused) as refused:
        daemon.ask("reload")
    assert f"{daemon.file}:2:9" in refused.value.message
    done = cli.run("ctl", "reload", "--socket", daemon.socket)
    assert done.returncode == cli.EXIT_FAILED and f"{daemon.file}:2:9" in done.stderr
    assert assert_is_consistent(unit(fpm, scripts, daemon, hot=30)["result"])


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_a_reload_in_mid_request_loses_nothing(fpm, make_daemon, scripts, place):
    daemon = make_daemon(fpm, rate=200)
    with Gate(place / "gate") as gate, fpm.connect() as connection:
        connection.send(scripts / "gated_unit.php", f"gate={gate.path}&trace={TRACE}", **daemon.to_be_found())
        gate.until_reached()
        worker = wait.until(lambda: worker_of(daemon, TRACE), "the trace to be seen")
        daemon.configure(sampling={"rate": 300})
        daemon.ask("reload")
        taken = balance.looked(daemon.target(worker)["accounting"])
        wait.until(lambda: balance.looked(daemon.target(worker)["accounting"]) > taken + 20, "more samples")
        gate.open()
        told = connection.read().json()
    assert told["result"]["trace_id"] == TRACE
    assert assert_is_consistent(told["result"]).total("wait_at")[1] == pytest.approx(told["open_wall_ns"], rel=0.1, abs=15e6)


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_a_pool_that_is_no_longer_named_is_let_go_and_a_new_one_is_found(make_fpm, make_daemon):
    one, two = make_fpm(), make_fpm()
    daemon = make_daemon(one)
    daemon.configure(pools=[{"name": "two", "master_pid": two.pid}])
    daemon.ask("reload")
    daemon.until_attached(two.workers())
    wait.until(lambda: {target["pid"] for target in daemon.targets()} == set(two.workers()), "the first pool to be let go")


# -- end and restart -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_once_and_takes_its_socket_along(number, fpm, make_daemon):
    daemon = make_daemon(fpm)
    daemon.signal(number)
    assert daemon.process.wait(3) == 0
    assert not daemon.socket.exists()


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_what_was_asked_before_the_end_is_answered(fpm, make_daemon):
    daemon = make_daemon(fpm)
    with daemon.connect() as connection:
        for number in range(20):
            connection.send(verb="targets", id=number)
        daemon.signal(signal.SIGTERM)
        answers = [connection.read_answer() for _ in range(20)]
        assert connection.read_line() is None
    assert [answer["id"] for answer in answers if answer] == list(range(20))
    assert all(answer["ok"] or answer["error"] == "stopping" for answer in answers)
    assert daemon.process.wait(3) == 0


def test_a_restart_in_mid_request_still_gives_the_unit(build, fpm, make_daemon, scripts, place):
    """The second daemon learns from the global what was open and since when; the time nobody watched is named."""
    daemon = make_daemon(fpm, rate=200)
    with Gate(place / "gate") as gate, fpm.connect() as connection:
        connection.send(scripts / "gated_unit.php", f"gate={gate.path}&trace={TRACE}", **daemon.to_be_found())
        gate.until_reached()
        daemon.stop()
        daemon.start()
        daemon.until_attached(fpm.workers())
        worker = wait.until(lambda: worker_of(daemon, TRACE), "the trace to be seen")
        taken = balance.looked(daemon.target(worker)["accounting"])
        wait.until(lambda: balance.looked(daemon.target(worker)["accounting"]) > taken + 20, "samples")
        gate.open()
        told = connection.read().json()
    result = told["result"]
    assert result["trace_id"] == TRACE
    assert result["duration_ns"] >= told["open_wall_ns"]
    tree = assert_is_consistent(result)
    assert tree.total("wait_at")[1] + tree.total("<unread>")[1] >= told["open_wall_ns"] - 2 * result["profile"]["period_ns"]
    assert tree.total("wait_at")[1] > 0


def test_a_socket_left_behind_by_a_crash_is_replaced_and_a_living_one_is_not(fpm, make_daemon, place):
    daemon = make_daemon(fpm)
    second = make_daemon(fpm, start=False, socket={"path": str(daemon.socket)})
    second.directory.mkdir()
    second.configure()
    done = cli.run("daemon", "--config", second.file)
    assert done.returncode != 0 and str(daemon.socket) in done.stderr
    assert daemon.ask("status")["version"]
    daemon.stop(signal.SIGKILL)
    assert daemon.socket.exists()
    daemon.start()


def test_a_socket_in_a_directory_others_may_write_to_is_refused(fpm, make_daemon, place):
    daemon = make_daemon(fpm, start=False, socket={"path": str(place / "profd.sock")})  # everybody may write there
    daemon.directory.mkdir()
    daemon.configure()
    done = cli.run("daemon", "--config", daemon.file)
    assert done.returncode != 0
    assert str(place) in done.stderr and "writable" in done.stderr


def test_the_socket_has_the_mode_and_group_of_the_configuration(fpm, make_daemon):
    daemon = make_daemon(fpm, socket={"mode": "0660", "group": "www-data"})
    found = daemon.socket.stat()
    assert stat.S_IMODE(found.st_mode) == 0o660
    assert found.st_gid == 33


# -- systemd ---------------------------------------------------------------------------------------------------------

class NotifySocket:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.settimeout(0.05)
        self.said = []

    def __contains__(self, line):
        try:
            while True:
                self.said += self.socket.recv(4096).decode().splitlines()
        except (socket.timeout, BlockingIOError):
            pass
        return line in self.said


@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
def test_it_tells_systemd_when_it_is_ready_reloading_and_stopping(abstract, fpm, make_daemon, place):
    name = f"@e2e-{os.getpid()}-{place.name}" if abstract else str(place / "notify")
    notify = NotifySocket(name.replace("@", "\0"))
    daemon = make_daemon(fpm, environment={"NOTIFY_SOCKET": name})
    wait.until(lambda: "READY=1" in notify, "READY=1")
    notify.said.clear()
    daemon.signal(signal.SIGHUP)
    wait.until(lambda: "RELOADING=1" in notify, "RELOADING=1")
    wait.until(lambda: "READY=1" in notify, "READY=1 again")
    assert any(line.startswith("MONOTONIC_USEC=") for line in notify.said), "Type=notify-reload needs the time"
    daemon.signal(signal.SIGTERM)
    assert daemon.process.wait(3) == 0
    assert "STOPPING=1" in notify
    notify.socket.close()


@pytest.mark.parametrize("threads", [1, 2], indirect=True)
def test_the_watchdog_is_fed_while_it_samples(fpm, make_daemon, place):
    notify = NotifySocket(str(place / "notify"))
    make_daemon(fpm, environment={"NOTIFY_SOCKET": str(place / "notify"), "WATCHDOG_USEC": "200000"})

    def fed():
        "WATCHDOG=1" in notify
        return notify.said.count("WATCHDOG=1") >= 5

    wait.until(fed, "five pings", 5)
    notify.socket.close()


def test_without_a_watchdog_nobody_is_pinged(fpm, make_daemon, place):
    notify = NotifySocket(str(place / "notify"))
    daemon = make_daemon(fpm, environment={"NOTIFY_SOCKET": str(place / "notify")})
    wait.until(lambda: daemon.metrics()["uptime_ns"] > 700_000_000, "a while")
    assert "WATCHDOG=1" not in notify
    notify.socket.close()


ACTIVATE = """
import os, socket, sys
path, command = sys.argv[1], sys.argv[2:]
listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listening.bind(path)
os.chmod(path, 0o666)
listening.listen(16)
os.dup2(listening.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()), LISTEN_FDNAMES="cbox-profd.socket")
os.execv(command[0], command)
"""


def test_a_socket_from_systemd_is_used_and_stays(fpm, make_daemon, scripts):
    daemon = make_daemon(fpm, start=False)
    daemon.socket.parent.mkdir(parents=True)
    daemon.prefix = [sys.executable, "-c", ACTIVATE, daemon.socket]
    inode_of = lambda: daemon.socket.stat().st_ino  # noqa: E731
    daemon.start()
    daemon.until_attached(fpm.workers())
    inode = inode_of()
    assert unit(fpm, scripts, daemon, hot=20)["result"]["duration_ns"] > 0
    daemon.stop()
    assert daemon.socket.exists() and inode_of() == inode, "the socket is systemd's, not ours to remove"


def test_the_units_are_what_systemd_accepts():
    units = [str(path) for path in sorted((cli.ROOT / "systemd").iterdir()) if path.suffix in (".service", ".socket")]
    assert units
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, timeout=60)
    about_ours = [line for line in (done.stdout + done.stderr).splitlines() if "cbox-profd" in line]
    assert [line for line in about_ours if "is not executable" not in line] == []


def test_the_service_is_hardened():
    service = cli.ROOT / "systemd" / "cbox-profd.service"
    command = ["systemd-analyze", "security", "--offline=yes", "--threshold=40", "--no-pager", service]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
