# SPDX-License-Identifier: MIT
"""What can't be read is refused with one line that names the cause and the remedy, and a fitting status (Must show 9)."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support import cli, load, php_builds, wait
from support.fpm import Pool

PROCESS_VM_READV = 310
WITHOUT_PTRACE = ("capsh", "--drop=cap_sys_ptrace", "--", "-c", '"$0" "$@"')
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all")
WITHOUT_READV = (sys.executable, Path(cli.ROOT) / "tests/e2e/support/without_call.py", PROCESS_VM_READV)

VERBS = [("dump",), ("attach", "--duration", "1s")]
each_verb = pytest.mark.parametrize("verb", VERBS, ids=["dump", "attach"])


def refused(verb, pid, status, *named, prefix=()):
    """The one line on stderr: it has all words of `named`, in any case."""
    done = cli.run(verb[0], pid, *verb[1:], prefix=prefix)
    assert done.returncode == status, f"status {done.returncode}: {done.stdout}{done.stderr}"
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.endswith("\n"), f"one line: {done.stderr!r}"
    for word in named:
        assert word.lower() in done.stderr.lower(), f"{word!r} is not named: {done.stderr}"
    return done.stderr


@pytest.fixture
def nobodys_binary(room):
    """The program where an unprivileged user may run it: a checkout may lie under /root."""
    path = room / "cbox-profd"
    if not path.exists():
        shutil.copy(cli.binary(), path)
    return path


def run_as(who, *command):
    return subprocess.run([*who, *map(str, command)], capture_output=True, text=True, timeout=20, check=False)


@each_verb
@pytest.mark.parametrize("who", [WITHOUT_PTRACE, AS_NOBODY], ids=["root without the capability", "nobody"])
def test_without_cap_sys_ptrace(who, verb, fpm, nobodys_binary):
    done = run_as(who, nobodys_binary, verb[0], fpm.workers()[0], *verb[1:])
    assert done.returncode == cli.EXIT_NO_PERMISSION, done.stdout + done.stderr
    assert "CAP_SYS_PTRACE" in done.stderr and done.stderr.count("\n") == 1
    assert str(fpm.workers()[0]) in done.stderr


@each_verb
def test_under_a_seccomp_filter_that_refuses_process_vm_readv(verb, fpm):
    refused(verb, fpm.workers()[0], cli.EXIT_NO_PERMISSION, "process_vm_readv", "seccomp", prefix=WITHOUT_READV)


@each_verb
def test_a_process_that_is_not_php(verb):
    with load.hogs(1) as (process,):
        refused(verb, process.pid, cli.EXIT_NO_TARGET, str(process.pid), "PHP")


@each_verb
def test_a_process_that_is_gone(verb):
    process = subprocess.Popen(["true"])
    process.wait()
    refused(verb, process.pid, cli.EXIT_NO_TARGET, str(process.pid), "no such process")


@each_verb
@pytest.mark.parametrize("pid", ["0", "-1", "php", "99999999999", "12x", ""])
def test_what_is_no_process_id(pid, verb):
    done = cli.run(verb[0], *verb[1:], "--", pid)
    assert done.returncode in (cli.EXIT_USAGE, cli.EXIT_NO_TARGET)
    assert done.stderr.strip()


def test_an_fpm_master_with_no_workers(make_fpm):
    fpm = make_fpm(pools=[Pool(manager="ondemand")])
    assert fpm.all_workers() == []
    refused(("attach", "--duration", "1s"), fpm.pid, cli.EXIT_NO_TARGET, str(fpm.pid), "worker")


def patched(build, place, replacements):
    """A copy of a build's php-fpm with other texts of the same length in it."""
    image = build.fpm.read_bytes()
    for old, new in replacements.items():
        assert len(old) == len(new) and old in image
        image = image.replace(old, new)
    path = place / "php-fpm"
    path.write_bytes(image)
    path.chmod(0o755)
    return path


def exact_version(build):
    """"8.2.36", as the binary itself says."""
    say = [build.cli, "-n", "-r", "echo PHP_VERSION;"]
    return subprocess.run(say, env=build.environment(), capture_output=True, text=True, check=True).stdout.split("-")[0]


@pytest.fixture
def unknown_php(make_fpm, place):
    def start(replacements, build=php_builds.DEBIAN):
        return make_fpm(build, mode=php_builds.OFF, binary=patched(build, place, replacements))
    return start


@each_verb
@pytest.mark.parametrize("major_minor", ["9.9", "5.6"])
def test_a_version_this_program_does_not_know(major_minor, verb, unknown_php):
    version = exact_version(php_builds.DEBIAN)
    other = major_minor + version[3:]
    fpm = unknown_php({version.encode(): other.encode()})
    refused(verb, fpm.workers()[0], cli.EXIT_UNSUPPORTED, other, "7.4", "8.6")


@each_verb
def test_a_thread_safe_build(verb, unknown_php):
    fpm = unknown_php({b"API20220829,NTS": b"API20220829,TS\0"})
    refused(verb, fpm.workers()[0], cli.EXIT_UNSUPPORTED, "ZTS")


def test_the_daemon_tells_which_processes_it_could_not_attach_and_why(unknown_php, make_daemon):
    version = exact_version(php_builds.DEBIAN)
    fpm = unknown_php({version.encode(): ("9.9" + version[3:]).encode()})
    daemon = make_daemon(fpm, attached=False)
    refusals = wait.until(lambda: daemon.ask("status")["refusals"], "the refusal")
    assert refusals[0]["pid"] in fpm.workers() and "9.9" in refusals[0]["why"]
    assert daemon.targets() == []


def test_the_daemons_log_names_a_refusal_once_and_not_at_each_look(unknown_php, make_daemon):
    version = exact_version(php_builds.DEBIAN)
    fpm = unknown_php({version.encode(): ("9.9" + version[3:]).encode()})
    daemon = make_daemon(fpm, attached=False)
    wait.until(lambda: "9.9" in daemon.log, "the refusal in the log")
    # it looks for new ones every five seconds
    wait.until(lambda: daemon.metrics()["uptime_ns"] > 11_000_000_000, "the next look but one", 12, poll=0.1)
    assert daemon.log.count(str(fpm.workers()[0])) == 1


# -- doctor ----------------------------------------------------------------------------------------------------------

def test_doctor_finds_nothing_in_the_way_of_a_readable_worker(build, fpm):
    done = cli.ok("doctor", fpm.workers()[0])
    assert exact_version(build) in done.stdout


def test_doctor_names_the_missing_capability(fpm, nobodys_binary):
    done = run_as(AS_NOBODY, nobodys_binary, "doctor", fpm.workers()[0])
    assert done.returncode == cli.EXIT_NO_PERMISSION
    assert "CAP_SYS_PTRACE" in done.stdout + done.stderr


def test_doctor_says_of_an_own_script_that_it_can_be_read_though_the_capability_is_missing(nobodys_binary, place):
    script = place / "own.php"
    script.write_text("<?php sleep(60);")
    with subprocess.Popen([*AS_NOBODY, php_builds.DEBIAN.cli, script]) as process:
        try:
            wait.until(lambda: "php" in os.readlink(f"/proc/{process.pid}/exe"), "PHP to have started")
            wait.until(lambda: run_as(AS_NOBODY, nobodys_binary, "dump", process.pid).returncode == 0, "PHP to be ready")
            done = run_as(AS_NOBODY, nobodys_binary, "doctor", process.pid)
        finally:
            process.kill()
    assert done.returncode == 0, done.stdout
    assert "note  capability" in done.stdout and "FAIL" not in done.stdout
    assert "Nothing stands in the way" in done.stdout


def test_doctor_without_the_capability_does_not_say_that_there_are_no_workers(fpm, nobodys_binary):
    done = run_as(AS_NOBODY, nobodys_binary, "doctor")
    assert done.returncode == cli.EXIT_NO_PERMISSION
    assert "no PHP-FPM worker" not in done.stdout and "php-fpm      not known: without CAP_SYS_PTRACE" in done.stdout


def kernel_thread():
    for stat in Path("/proc").glob("[0-9]*/stat"):
        fields = stat.read_text(errors="replace").rsplit(")", 1)[1].split()
        if int(fields[6]) & 0x00200000:  # PF_KTHREAD
            return int(stat.parent.name)
    return None


@pytest.mark.skipif(kernel_thread() is None, reason="no kernel thread is seen in this pid namespace")
@pytest.mark.parametrize("verb", ["doctor", "attach", "dump"])
def test_a_kernel_thread_is_called_one(verb):
    done = cli.run(verb, kernel_thread())
    assert done.returncode == cli.EXIT_NO_TARGET
    assert "kernel thread" in done.stdout + done.stderr


def test_doctor_names_seccomp(fpm):
    done = cli.run("doctor", fpm.workers()[0], prefix=WITHOUT_READV)
    assert done.returncode == cli.EXIT_NO_PERMISSION
    assert "seccomp" in (done.stdout + done.stderr).lower()


def test_doctor_names_an_unknown_version(unknown_php):
    version = exact_version(php_builds.DEBIAN)
    fpm = unknown_php({version.encode(): ("9.9" + version[3:]).encode()})
    done = cli.run("doctor", fpm.workers()[0])
    assert done.returncode == cli.EXIT_UNSUPPORTED
    assert "9.9" in done.stdout + done.stderr


def test_doctor_without_a_process_looks_at_the_machine():
    assert cli.ok("doctor").stdout.strip()


def test_doctor_says_when_some_cpus_are_out_of_reach():
    cpus = sorted(os.sched_getaffinity(0))
    assert f"it may run on all {len(cpus)}: any process" in cli.ok("doctor").stdout
    if len(cpus) > 1:
        confined = cli.ok("doctor", prefix=["taskset", "-c", str(cpus[-1])]).stdout
        assert f"may run on 1 of {len(cpus)} CPUs" in confined and "CPUAffinity=" in confined


# -- no daemon, wrong usage ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments", [("status",), ("targets",), ("top", "--once"), ("ctl", "reset")], ids=" ".join)
def test_verbs_that_talk_to_a_daemon_say_when_there_is_none(arguments, place):
    done = cli.run(*arguments, "--socket", place / "none.sock")
    assert done.returncode == cli.EXIT_NO_DAEMON
    assert str(place / "none.sock") in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [("targets",), ("top", "--once"), ("ctl", "suspend"), ("targets", "--json")], ids=" ".join)
def test_a_pool_that_is_not_there_is_named_with_those_that_are(arguments, daemon):
    done = cli.run(*arguments, "--pool", "nosuch", "--socket", daemon.socket)
    assert done.returncode == cli.EXIT_NO_TARGET
    assert done.stderr == 'cbox-profd: no pool "nosuch"; there are: m1\n'


@pytest.mark.parametrize("arguments", [("targets", "--pid"), ("top", "--once", "--pid"), ("ctl", "suspend", "--pid"),
                                       ("ctl", "detach"), ("ctl", "attach")], ids=" ".join)
def test_a_process_that_is_not_there_has_one_exit_status(arguments, daemon):
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = cli.run(*arguments, gone.pid, "--socket", daemon.socket)
    assert done.returncode == cli.EXIT_NO_TARGET
    assert f"process {gone.pid}" in done.stderr


def test_status_names_the_entries_that_find_nothing_and_why(fpm, make_daemon):
    daemon = make_daemon(fpm, attached=False, pools=[
        {"master_pid": fpm.pid}, {"pid_file": "/nonexistent.pid"}, {"name": "shop", "fpm_pool": "no-such-pool"},
        {"master_pid": 1}])
    daemon.until_attached(fpm.workers())
    assert [entry["found"] for entry in daemon.ask("status")["entries"]] == [4, 0, 0, 0]
    text = cli.ok("status", "--socket", daemon.socket).stdout
    assert "nothing   pool 2: /nonexistent.pid: No such file or directory\n" in text
    assert "nothing   pool 3 (shop): fpm_pool no-such-pool: no worker of such a pool is there" in text
    assert "nothing   pool 4: process 1: it is no PHP-FPM master\n" in text
    assert "pool 1" not in text


WRONG = ["", "dance", "dump", "dump 1 2", "attach 1 --rate fast", "attach 1 --format xml", "attach 1 --duration -3s",
         "attach 1 --duration 10", "attach 1 --rate 100 --period 10ms", "attach 1 --json --format folded",
         "ctl", "ctl dance", "ctl rate 0", "status --no-such-option", "help dance", "status --socket /" + 120 * "x"]


@pytest.mark.parametrize("arguments", WRONG)
def test_a_wrong_command_line_is_named(arguments):
    done = cli.run(*arguments.split())
    assert done.returncode == cli.EXIT_USAGE
    assert done.stderr.strip()


ALL_VERBS = ("daemon", "attach", "dump", "status", "targets", "top", "ctl", "doctor")


@pytest.mark.parametrize("verb", ALL_VERBS)
def test_help_of_a_verb_is_what_the_verb_says(verb):
    assert cli.ok("help", verb).stdout == cli.ok(verb, "--help").stdout


@pytest.mark.parametrize("verb", ALL_VERBS)
def test_every_verb_explains_itself_with_an_example(verb):
    done = cli.ok(verb, "--help")
    assert f"cbox-profd {verb}" in done.stdout
    assert "xample" in done.stdout


def test_the_program_lists_its_verbs():
    text = cli.ok("--help").stdout
    for verb in ALL_VERBS:
        assert f"{verb} " in text
    assert (cli.ROOT / "VERSION").read_text().strip() in cli.ok("--version").stdout


# -- the configuration -----------------------------------------------------------------------------------------------

def test_a_wrong_configuration_is_named_with_its_place(place):
    file = place / "wrong.yaml"
    file.write_text("sampling:\n  rate: 100\n  max_depht: 12\n")
    for arguments in (("daemon", "--config", file, "--check"), ("daemon", "--config", file)):
        done = cli.run(*arguments)
        assert done.returncode != 0
        assert f"{file}:3:3" in done.stderr and "max_depht" in done.stderr


def test_the_shipped_configuration_is_ok():
    assert "ok" in cli.ok("daemon", "--config", cli.ROOT / "config" / "cbox-profd.yaml", "--check").stdout
