# SPDX-License-Identifier: MIT
"""The units: systemd accepts them, they take away what they say, and what is left is enough to do the work."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import cli, proc, unit_file, wait
from test_unit import assert_is_consistent, unit

SERVICE = cli.ROOT / "systemd" / "cbox-profd.service"
EXPOSURE = 3.0


def run(*command, seconds=60):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=seconds, check=False)


@pytest.fixture
def installed(place):
    """installed(prefix): the root of an installation made by systemd/install."""
    def install(prefix):
        root = place / f"root{str(prefix).replace('/', '-')}"
        done = run(cli.ROOT / "systemd" / "install", root, prefix)
        assert done.returncode == 0, done.stderr
        return root
    return install


# -- installation ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("prefix, units, users, files", [
    ("/usr/local", "/usr/local/lib/systemd/system", "/etc/sysusers.d", "/etc/tmpfiles.d"),
    ("/usr", "/usr/lib/systemd/system", "/usr/lib/sysusers.d", "/usr/lib/tmpfiles.d"),
    ("/opt/profd", "/etc/systemd/system", "/etc/sysusers.d", "/etc/tmpfiles.d"),
])
def test_everything_is_installed_where_systemd_looks_for_it(prefix, units, users, files, installed):
    root = installed(prefix)
    found = {"/" + str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
    assert set(found) == {f"{units}/cbox-profd.service", f"{units}/cbox-profd.socket", f"{users}/cbox-profd.conf",
                          f"{files}/cbox-profd.conf"}
    assert {path.stat().st_mode & 0o777 for path in found.values()} == {0o644}
    service = found[f"{units}/cbox-profd.service"].read_text()
    assert f"\nExecStart={prefix}/bin/cbox-profd daemon\n" in service
    assert set(re.findall(r"[^\s=]*/bin/cbox-profd", service)) == {f"{prefix}/bin/cbox-profd"}


@pytest.mark.parametrize("prefix", ["usr/local", "", "/opt/a b", "/opt/a|b"])
def test_a_prefix_that_a_unit_can_not_name_is_refused(prefix, place):
    done = run(cli.ROOT / "systemd" / "install", place / "root", prefix)
    assert done.returncode == 2
    assert "PREFIX" in done.stderr
    assert not (place / "root").exists()


def make(*arguments):
    return run("make", "-C", cli.ROOT, f"BUILD={cli.binary().parent}", *arguments, seconds=300)


def files_below(root):
    return {"/" + str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_install_keeps_a_configuration_and_uninstall_leaves_it_alone(place):
    root = place / "root"
    configuration = root / "etc/cbox-profd/cbox-profd.yaml"
    done = make("install", f"DESTDIR={root}", "PREFIX=/usr")
    assert done.returncode == 0, done.stderr
    assert {"/usr/bin/cbox-profd", "/etc/cbox-profd/cbox-profd.yaml"} < files_below(root)

    configuration.write_text("# mine\n")
    assert "stays" in make("install", f"DESTDIR={root}", "PREFIX=/usr").stdout
    assert configuration.read_text() == "# mine\n"

    done = make("uninstall", f"DESTDIR={root}", "PREFIX=/usr")
    assert done.returncode == 0, done.stderr
    assert files_below(root) == {"/etc/cbox-profd/cbox-profd.yaml"}


def test_nothing_is_copied_with_a_prefix_that_is_refused(place):
    done = make("install", f"DESTDIR={place / 'root'}", "PREFIX=usr")
    assert done.returncode != 0 and "PREFIX" in done.stderr
    assert not (place / "root").exists()


def test_systemd_accepts_the_installed_units(installed, place):
    prefix = place / "prefix"
    (prefix / "bin").mkdir(parents=True)
    shutil.copy(cli.binary(), prefix / "bin" / "cbox-profd")
    root = installed(prefix)
    done = run("systemd-analyze", "verify", "--man=no", *(root / "etc/systemd/system").iterdir())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_user_and_the_directory_are_ones_systemd_can_make(installed):
    root = installed("/usr")
    (root / "etc").mkdir()
    for tool, path in (("systemd-sysusers", "usr/lib/sysusers.d"), ("systemd-tmpfiles", "usr/lib/tmpfiles.d")):
        # On a copy, so that nothing is made on this machine.
        arguments = ["--create"] if tool == "systemd-tmpfiles" else []
        done = run(tool, *arguments, f"--root={root}", root / path / "cbox-profd.conf")
        assert done.returncode == 0, done.stderr
    assert re.search(r"^cbox-profd:", (root / "etc/passwd").read_text(), re.M)
    assert re.search(r"^cbox-profd:", (root / "etc/group").read_text(), re.M)
    assert (root / "run/cbox-profd").stat().st_mode & 0o7777 == 0o755


# -- hardening -------------------------------------------------------------------------------------------------------

def test_the_service_is_little_exposed(capsys):
    done = run("systemd-analyze", "security", "--offline=yes", "--no-pager", f"--threshold={int(EXPOSURE * 10)}", SERVICE)
    overall = re.search(r"Overall exposure level for \S+: ([\d.]+)", done.stdout)
    with capsys.disabled():
        print(f"\n  systemd-analyze security: exposure {overall[1]} of 10, allowed {EXPOSURE}")
    assert done.returncode == 0, done.stdout
    assert float(overall[1]) <= EXPOSURE


def test_the_socket_is_where_the_shipped_configuration_says():
    text = (cli.ROOT / "systemd" / "cbox-profd.socket").read_text()
    shipped = (cli.ROOT / "config" / "cbox-profd.yaml").read_text()
    assert re.search(r"^ListenStream=(\S+)$", text, re.M)[1] == re.search(r"^  path: (\S+)$", shipped, re.M)[1]
    assert re.search(r"^SocketMode=(\S+)$", text, re.M)[1] == re.search(r"^  mode: (\S+)$", shipped, re.M)[1]


def test_writing_to_and_stopping_other_processes_is_not_among_the_calls():
    calls = unit_file.Unit(SERVICE).system_calls()
    assert not calls & {"process_vm_writev", "ptrace", "mount", "bpf", "perf_event_open", "pidfd_getfd", "init_module"}
    assert {"process_vm_readv", "sched_setscheduler", "pidfd_open"} <= calls


@pytest.fixture
def confined(make_daemon):
    """confined(*masters): a daemon under the unit's user, capabilities and system calls, on a socket passed to it."""
    def make(*masters, **more):
        daemon = make_daemon(*masters, start=False, **more)
        daemon.prefix = [sys.executable, "-B", unit_file.__file__, SERVICE, daemon.socket]
        daemon.start()
        daemon.until_attached([pid for master in masters for pid in master.all_workers()])
        return daemon
    return make


def test_what_the_unit_leaves_is_enough_to_sample_fpm_workers_of_another_user(build, make_fpm, confined, scripts):
    fpm = make_fpm(build)
    daemon = confined(fpm)
    result = unit(fpm, scripts, daemon, hot=50, wait=30)["result"]
    assert assert_is_consistent(result).total("wait")[1] >= 25e6
    status = daemon.ask("status")
    assert status["refusals"] == []
    assert status["sampling"]["suspended"] is False


def test_what_the_unit_leaves_is_enough_for_a_dumpable_process_of_another_user(confined, scripts):
    """FPM's workers are undumpable, so that their /proc files are root's; a queue worker's are its user's, with mode 0400."""
    program = subprocess.Popen(["setpriv", "--reuid=33", "--regid=33", "--clear-groups", "php8.2", "-r", "while (true) usleep(1000);"])
    try:
        daemon = confined(pools=[{"name": "queue", "executable": str(Path(f"/proc/{program.pid}/exe").resolve().parent / "php*")}])
        daemon.until_attached([program.pid])
        wait.until(lambda: daemon.target(program.pid)["accounting"]["taken"] > 3, "samples")
    finally:
        program.kill()
        program.wait()


def test_the_sampler_and_the_service_get_their_realtime_class(make_fpm, confined):
    daemon = confined(make_fpm())
    classes = {name: os.sched_getscheduler(thread) for thread, name in proc.threads(daemon.pid).items()}
    assert {name for name, kind in classes.items() if kind == os.SCHED_FIFO} == {"sampler", "service"}, classes


def test_the_daemon_holds_no_more_than_the_unit_says(make_fpm, confined):
    daemon = confined(make_fpm())
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{daemon.pid}/status").read_text().splitlines())
    named = {"dac_read_search": 2, "sys_ptrace": 19, "sys_nice": 23}
    held = sum(1 << named[name] for name in unit_file.Unit(SERVICE).capabilities())
    assert {int(status[key].strip(), 16) for key in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {held}
    assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
    assert "0" not in status["Uid"].split()


def test_memory_of_roots_processes_can_not_be_written_from_the_unit(place):
    """What a daemon of root's could still do with these capabilities: open /proc/PID/mem of another root process for writing."""
    target = subprocess.Popen(["sleep", "60"])
    attempt = f"open('/proc/{target.pid}/mem', 'r+b')"
    try:
        done = run(*unit_file.Unit(SERVICE).prefix(), sys.executable, "-c", attempt)
        assert "PermissionError" in done.stderr
        done = run(*unit_file.Unit(SERVICE).prefix(), sys.executable, "-c", attempt.replace("r+b", "rb"))
        assert done.returncode == 0, done.stderr
    finally:
        target.kill()
        target.wait()
