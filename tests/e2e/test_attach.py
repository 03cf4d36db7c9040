# SPDX-License-Identifier: MIT
"""`attach`: a worker, a master, any PHP process; without a daemon; the result is always written."""
import json
import os
import pty
import re
import signal
import subprocess

import pytest

from support import balance, cli, load, php_builds, proc, wait
from support.fpm import Pool

# The same work three times in often() and once in seldom(): three quarters and one quarter, on a busy machine too.
SHARES = """
function often() { for ($i = 0, $x = 1; $i < 20000; $i++) { $x = ($x * 3 + 1) & 0xffff; } }
function seldom() { for ($i = 0, $x = 1; $i < 20000; $i++) { $x = ($x * 3 + 1) & 0xffff; } }
for (;;) { often(); often(); often(); seldom(); }
"""
FIBONACCI = "function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }\nfor (;;) { fib(18); }"
SLEEPER = "function waits() { for (;;) { usleep(50000); } }\nwaits();"


class Profile:
    """`attach --format json`, and the `profile` verb's answer."""

    COLUMNS = ("parent", "frame", "line", "samples", "wall_ns", "cpu_ns", "queue_ns")

    def __init__(self, told):
        self.told, self.frames = told, told["frames"]
        self.nodes = [dict(zip(self.COLUMNS, row)) for row in told["nodes"]]
        balance.of(told["accounting"])
        for column in ("samples", "wall_ns", "cpu_ns", "queue_ns"):
            assert sum(node[column] for node in self.nodes) == told["total"][column]
        assert told["sample_count"] == told["total"]["samples"]

    def path(self, index):
        names = []
        while index:
            names.append(self.frames[self.nodes[index]["frame"]]["function"])
            index = self.nodes[index]["parent"]
        return names[::-1]

    def share(self, function, column):
        inside = sum(node[column] for index, node in enumerate(self.nodes) if function in self.path(index))
        return inside / self.told["total"][column]

    def lines(self, function, column="samples"):
        """{line: how much of the function's own time}"""
        found = {}
        for node in self.nodes[1:]:
            if self.frames[node["frame"]]["function"] == function:
                found[node["line"]] = found.get(node["line"], 0) + node[column]
        return found


def attach(pid, *more, seconds="1s", rate=500):
    return cli.ok("attach", pid, "--duration", seconds, "--rate", rate, *more).stdout


def attach_json(pid, *more, **how):
    text = attach(pid, "--format", "json", *more, **how)
    assert text.count("\n") == 1
    return Profile(json.loads(text))


def test_a_programs_known_shares_are_found(build, place):
    with load.php_cli(build, place, SHARES, stdout=subprocess.DEVNULL) as process:
        profile = attach_json(process.pid, seconds="1500ms")
    assert profile.share("often", "cpu_ns") == pytest.approx(0.75, abs=0.06)
    assert profile.share("seldom", "cpu_ns") == pytest.approx(0.25, abs=0.06)
    assert profile.share("{main}", "samples") > 0.99
    assert profile.told["total"]["wall_ns"] == pytest.approx(1.5e9, rel=0.1)
    assert set(profile.lines("often")) == {3}, "the one line there is"


def test_recursion_counts_once_in_total(build, place):
    with load.php_cli(build, place, FIBONACCI) as process:
        profile = attach_json(process.pid)
        top = json.loads(attach(process.pid, "--format", "top", "--json", seconds="500ms"))
    # what no two reads agreed on stands below the frames that are certain, and may be all of it but main
    assert profile.share("fib", "samples") > 0.95 * (1 - profile.share("<torn>", "samples"))
    assert profile.share("fib", "samples") <= 1
    fib = next(function for function in top["functions"] if function["function"] == "fib")
    torn = sum(row["self"]["samples"] for row in top["functions"] if row["function"] == "<torn>")
    assert 0.95 * (top["total"]["samples"] - torn) <= fib["total"]["samples"] <= top["total"]["samples"]
    assert fib["self"]["samples"] <= fib["total"]["samples"]


def test_waiting_is_wall_time_without_cpu(build, place):
    with load.php_cli(build, place, SLEEPER) as process:
        profile = attach_json(process.pid)
    assert profile.share("usleep", "wall_ns") > 0.9  # the rest it was ready, and waited for a CPU
    assert profile.told["total"]["cpu_ns"] < 0.05 * profile.told["total"]["wall_ns"]
    accounting = profile.told["accounting"]
    assert accounting["unchanged"] > 5 * accounting["taken"], "a blocked process is proved unmoved, not read again"


def test_a_master_means_all_its_workers(build, fpm, scripts):
    with load.requests(fpm, scripts / "deep.php", "d=10&seconds=0.05", connections=4):
        profile = attach_json(fpm.pid, rate=100)
    accounting = profile.told["accounting"]
    assert accounting["expected"] == pytest.approx(4 * 100, rel=0.2)
    assert balance.looked(accounting) > 0.8 * accounting["expected"]
    assert profile.share("Deep::bottom", "samples") > 0.7


def test_one_worker_means_that_worker(fpm, scripts):
    profile = attach_json(fpm.workers()[0], rate=100)
    assert profile.told["accounting"]["expected"] == pytest.approx(100, rel=0.2)


def test_folded_stacks_are_flamegraphs_input(place):
    with load.php_cli(php_builds.DEBIAN, place, SHARES) as process:
        text = attach(process.pid, "--format", "folded")
        with_lines = attach(process.pid, "--format", "folded", "--lines")
    stacks = {}
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        assert stack not in stacks, "a stack is one line"
        stacks[stack] = int(count)
    assert all(stack.startswith("{main}") or stack.startswith("<") for stack in stacks)
    assert stacks["{main};often"] > stacks["{main};seldom"] > 0
    assert re.search(r"^\{main\}:\d+;often:3 \d+$", with_lines, re.M)


def test_the_table_shows_self_and_total_side_by_side_and_says_what_they_mean(place):
    with load.php_cli(php_builds.DEBIAN, place, SHARES) as process:
        text = attach(process.pid, "--top", "3")
    lower = text.lower()
    assert "self" in lower and "total" in lower
    assert "recurs" in lower, "it says how recursion counts"
    assert "expected" in lower, "and how far to trust it"
    rows = [line for line in text.splitlines() if "often" in line or "seldom" in line]
    assert "often" in rows[0]
    assert len([line for line in text.splitlines() if "cli.php" in line or "{main}" in line]) <= 5


def test_ctrl_c_still_writes_the_result(place):
    out = place / "out.json"
    with load.php_cli(php_builds.DEBIAN, place, SHARES) as process:
        arguments = ["--duration", "60s", "--rate", "200", "--format", "json", "--output", out]
        running = proc.start(cli.command("attach", process.pid, *arguments), stderr=subprocess.PIPE, text=True)
        spent = proc.cpu_ns(running.pid)
        wait.until(lambda: proc.cpu_ns(running.pid) > spent + 20_000_000, "it to have sampled for a while")
        running.send_signal(signal.SIGINT)
        assert running.wait(5) == 0, running.stderr.read()
        running.stderr.close()
    profile = Profile(json.loads(out.read_text()))
    assert profile.told["sample_count"] > 10 and profile.told["duration_ns"] < 30e9
    assert profile.share("often", "samples") > 0.5


def test_the_output_file_appears_whole_or_not_at_all(place):
    out = place / "out.folded"
    out.write_text("what was there before\n")
    with load.php_cli(php_builds.DEBIAN, place, SHARES) as process:
        arguments = ["--duration", "700ms", "--format", "folded", "--output", out]
        running = proc.start(cli.command("attach", process.pid, *arguments))
        seen = set()
        while running.poll() is None:
            seen.add(out.read_text())
        assert running.returncode == 0
    assert out.read_text().startswith("{main}")
    assert seen <= {"what was there before\n", out.read_text()}
    assert [path.name for path in place.iterdir() if "out" in path.name] == ["out.folded"], "a temporary file stays"


def test_an_output_that_cannot_be_written_is_said_before_the_time_is_spent(place):
    with load.php_cli(php_builds.DEBIAN, place, SLEEPER) as process:
        out = place / "no" / "such" / "directory"
        done = cli.run("attach", process.pid, "--duration", "20s", "--output", out, seconds=10)
    assert done.returncode == cli.EXIT_FAILED
    assert "directory" in done.stderr


def test_a_pipe_that_nobody_reads_is_refused_before_the_time_is_spent(place):
    os.mkfifo(place / "pipe")
    with load.php_cli(php_builds.DEBIAN, place, SLEEPER) as process:
        done = cli.run("attach", process.pid, "--duration", "20s", "--output", place / "pipe", seconds=10)
    assert done.returncode == cli.EXIT_FAILED
    assert "nobody reads" in done.stderr and str(place / "pipe") in done.stderr


def test_a_signal_ends_the_waiting_for_a_reader_that_does_not_read(place):
    os.mkfifo(place / "pipe")
    reader = os.open(place / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    full = os.open(place / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(BlockingIOError):
            while True:
                os.write(full, b"x" * 4096)
        with load.php_cli(php_builds.DEBIAN, place, SLEEPER) as process:
            running = proc.start(cli.command("attach", process.pid, "--duration", "200ms", "--output", place / "pipe"))
            wait.until(lambda: proc.read(running.pid, "syscall").startswith("1 "), "it to wait for the reader")
            running.send_signal(signal.SIGTERM)
            assert running.wait(5) == -signal.SIGTERM
    finally:
        os.close(full)
        os.close(reader)


def test_who_keeps_a_result_is_told_what_it_is_worth(place):
    with load.php_cli(php_builds.DEBIAN, place, SHARES) as process:
        for form in ("json", "folded"):
            done = cli.ok("attach", process.pid, "--duration", "300ms", "--format", form, "--output", place / form)
            assert done.stdout == "" and done.stderr.count("\n") == 1
            assert "ticks expected" in done.stderr


def test_what_is_empty_says_why(fpm):
    done = cli.ok("attach", fpm.workers()[0], "--duration", "300ms", "--format", "folded")
    assert done.stdout == ""
    assert "No PHP code ran" in done.stderr and "ticks expected" in done.stderr


def test_standard_output_has_three_names(place):
    with load.php_cli(php_builds.DEBIAN, place, SHARES) as process:
        for name in ("-", "/dev/stdout", "/dev/fd/1"):
            assert attach(process.pid, "--format", "folded", "--output", name, seconds="200ms").startswith("{main}")


def test_what_to_do_next_is_not_said_of_a_process_that_is_gone(place):
    short = "$end = hrtime(true) + 500000000; while (hrtime(true) < $end) { }"
    with load.php_cli(php_builds.DEBIAN, place, short) as process:
        assert "next:" not in cli.ok("attach", process.pid, seconds=15).stdout
    with load.php_cli(php_builds.DEBIAN, place, SHARES) as process:
        assert "next:" in attach(process.pid, seconds="200ms")


def test_a_process_that_ends_meanwhile_ends_the_measurement_with_its_result(place):
    short = "$end = hrtime(true) + 600000000; while (hrtime(true) < $end) { }"
    with load.php_cli(php_builds.DEBIAN, place, short) as process:
        done = cli.ok("attach", process.pid, "--duration", "60s", "--rate", "200", "--format", "json", seconds=15)
    assert Profile(json.loads(done.stdout)).told["duration_ns"] < 5e9


def test_a_terminal_gets_a_progress_line_and_a_pipe_gets_none(place):
    with load.php_cli(php_builds.DEBIAN, place, SHARES) as process:
        assert "\r" not in cli.ok("attach", process.pid, "--duration", "600ms").stderr
        parent, child = pty.openpty()
        running = proc.start(cli.command("attach", process.pid, "--duration", "1200ms"), stdout=subprocess.DEVNULL, stderr=child)
        os.close(child)
        said = b""
        try:
            while piece := os.read(parent, 4096):
                said += piece
        except OSError:
            pass  # EIO: the other side is closed
        os.close(parent)
        assert running.wait(10) == 0
    assert b"\r" in said and re.search(rb"\d", said)


def test_attach_leaves_the_process_as_it_was(place):
    """Never stopped, never traced, no descriptor of its own touched."""
    with load.php_cli(php_builds.DEBIAN, place, SLEEPER) as process:
        before = proc.fd_count(process.pid), proc.status_field(process.pid, "TracerPid")
        running = proc.start(cli.command("attach", process.pid, "--duration", "500ms"), stdout=subprocess.DEVNULL)
        states = set()
        while running.poll() is None:
            states.add(proc.read(process.pid, "stat").rsplit(")", 1)[1].split()[0])
            assert proc.status_field(process.pid, "TracerPid") == "0"
        assert running.returncode == 0
        assert "T" not in states and "t" not in states
        assert (proc.fd_count(process.pid), proc.status_field(process.pid, "TracerPid")) == before


def test_period_and_rate_mean_the_same(place):
    with load.php_cli(php_builds.DEBIAN, place, SLEEPER) as process:
        told = json.loads(cli.ok("attach", process.pid, "--duration", "500ms", "--period", "5ms", "--format", "json").stdout)
    assert told["period_ns"] == 5_000_000
    assert told["accounting"]["expected"] == pytest.approx(100, rel=0.15)


# -- the verbs that ask a daemon -------------------------------------------------------------------------------------

def test_the_daemons_table_and_its_json_agree(fpm, scripts, daemon):
    with load.requests(fpm, scripts / "deep.php", "d=10&seconds=0.05", connections=2):
        wait.until(lambda: daemon.ask("top")["total"]["samples"] > 50, "some samples")
    told = cli.run_json("top", "--once", "--json", "--socket", daemon.socket, "-n", "3")
    assert told["functions"][0]["function"] in ("Deep::bottom", "<unread>")
    assert len(told["functions"]) <= 3
    text = cli.ok("top", "--once", "--socket", daemon.socket).stdout
    assert "Deep::bottom" in text and "self" in text.lower() and "total" in text.lower()
    by_environment = cli.ok("top", "--once", environment={"CBOX_PROFD_SOCKET": str(daemon.socket)}).stdout
    assert "Deep::bottom" in by_environment


def test_status_and_targets_for_people_and_for_programs(fpm, daemon):
    told = cli.run_json("status", "--json", "--socket", daemon.socket)
    assert told["targets"] == 4 and told["pools"] == ["m1"]
    text = cli.ok("status", "--socket", daemon.socket).stdout
    assert told["version"] in text and "4" in text
    targets = cli.run_json("targets", "--json", "--socket", daemon.socket)["targets"]
    text = cli.ok("targets", "--socket", daemon.socket).stdout
    for target in targets:
        assert str(target["pid"]) in text
    assert sorted(target["pid"] for target in targets) == sorted(fpm.workers())


def test_suspend_stops_sampling_and_loses_nothing_and_resume_goes_on(fpm, scripts, daemon):
    with load.requests(fpm, scripts / "deep.php", "d=10&seconds=0.05", connections=4):
        wait.until(lambda: daemon.ask("top")["total"]["samples"] > 50, "some samples")
        cli.ok("ctl", "suspend", "--socket", daemon.socket)
        assert all(target["suspended"] for target in daemon.targets())
        held = daemon.ask("profile")
        reads = daemon.metrics()["process_vm_readv_total"]
        cpu = proc.cpu_ns(daemon.pid)
        wait.until(lambda: proc.cpu_ns(daemon.pid) > cpu + 2_000_000 and daemon.metrics(), "a few answers from the daemon")
        assert daemon.metrics()["process_vm_readv_total"] == reads
        assert daemon.ask("profile")["total"]["samples"] == held["total"]["samples"] > 50
        cli.ok("ctl", "resume", "--socket", daemon.socket)
        wait.until(lambda: daemon.ask("profile")["total"]["samples"] > held["total"]["samples"], "sampling to go on")
    balance.of(daemon.metrics()["accounting"])


def test_reset_empties_the_window(fpm, scripts, daemon):
    with load.requests(fpm, scripts / "deep.php", "d=10&seconds=0.02", connections=1):
        wait.until(lambda: daemon.ask("top")["total"]["samples"] > 20, "some samples")
    wait.until(lambda: all(target["state"] == "idle" for target in daemon.targets()), "idle workers")
    cli.ok("ctl", "reset", "--socket", daemon.socket)
    assert daemon.ask("top")["functions"] == []


def test_the_rate_can_be_changed_while_it_runs(fpm, daemon):
    cli.ok("ctl", "rate", "250", "--socket", daemon.socket)
    wait.until(lambda: all(target["period_ns"] == 4_000_000 for target in daemon.targets()), "the new period")
    done = cli.run("ctl", "rate", "1000000", "--socket", daemon.socket)
    assert done.returncode == cli.EXIT_FAILED and "max_rate" in done.stderr
    assert all(target["period_ns"] == 4_000_000 for target in daemon.targets())


def test_a_process_can_be_attached_to_a_running_daemon_and_let_go(daemon, place):
    with load.php_cli(php_builds.DEBIAN, place, SLEEPER) as process:
        cli.ok("ctl", "attach", process.pid, "--pool", "by-hand", "--socket", daemon.socket)
        daemon.until_attached([process.pid])
        assert daemon.target(process.pid)["pool"] == "by-hand"
        wait.until(lambda: balance.looked(daemon.target(process.pid)["accounting"]) > 10, "samples")
        cli.ok("ctl", "detach", process.pid, "--socket", daemon.socket)
        wait.until(lambda: daemon.target(process.pid) is None, "it to be let go")


def test_an_order_renames_nothing_that_the_configuration_selects(fpm, daemon):
    worker = fpm.workers()[0]
    for pid in (worker, fpm.pid):
        said = cli.ok("ctl", "attach", pid, "--pool", "mine", "--socket", daemon.socket).stdout
        assert said == f"attach: process {pid}: already sampled as m1; nothing changed\n"
    assert {target["pool"] for target in daemon.targets()} == {"m1"}
    done = cli.run("ctl", "detach", worker, "--socket", daemon.socket)
    assert done.returncode == cli.EXIT_FAILED and "the configuration selects it, as m1" in done.stderr


def test_an_order_for_a_master_takes_up_the_workers_that_nothing_else_selects(make_fpm, make_daemon):
    fpm = make_fpm(pools=[Pool("shop", workers=2), Pool("blog", workers=1)])
    daemon = make_daemon(pools=[{"fpm_pool": "shop"}])
    wait.until(lambda: len(daemon.targets(pool="shop")) >= 2, "the shop's workers")
    said = cli.ok("ctl", "attach", fpm.pid, "--socket", daemon.socket).stdout
    assert said == f"attach: process {fpm.pid}: 1 of its workers added; 2 were sampled already and stay as they are\n"
    assert [target["pid"] for target in daemon.targets(pool="blog")] == fpm.workers("blog")
    said = cli.ok("ctl", "detach", fpm.pid, "--socket", daemon.socket).stdout
    assert said == f"detach: process {fpm.pid}: 1 let go; what else selects the others keeps them, as shop\n"
    assert daemon.targets(pool="blog") == []
