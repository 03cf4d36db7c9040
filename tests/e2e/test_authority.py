# SPDX-License-Identifier: MIT
"""Who may see and do what, and that nobody can take the service from the others (Must show 8)."""
import grp
import json
import os
import pwd
import socket
import time

import pytest

from support import balance, load, php_builds, proc, wait
from support.client import Client, Refused, as_user
from support.fpm import Pool
from test_unit import unit

WWW_DATA = pwd.getpwnam("www-data").pw_uid
NOBODY = pwd.getpwnam("nobody").pw_uid
CONTROL = [("attach", {"pid": 1}), ("detach", {"pid": 1}), ("rate", {"rate_hz": 50}), ("reset", {}), ("suspend", {}),
           ("resume", {}), ("reload", {})]


@pytest.fixture
def two_users(make_fpm):
    """Two pools, of www-data and of root."""
    return make_fpm(php_builds.DEBIAN, [Pool("mine", 2), Pool("theirs", 2, user="root")])


def answers(path, *questions):
    """The result, or the name of the error, of each (verb, arguments), on one connection."""
    told = []
    with Client(path) as connection:
        for verb, arguments in questions:
            try:
                told.append(connection.ask(verb, **arguments))
            except Refused as refused:
                told.append(refused.error)
    return told


# -- who sees what ---------------------------------------------------------------------------------------------------

def test_a_user_sees_its_own_workers_and_no_others(two_users, make_daemon, scripts):
    daemon = make_daemon(two_users)
    mine, theirs = two_users.workers("mine"), two_users.workers("theirs")
    for pool in ("mine", "theirs"):
        two_users.request(scripts / "deep.php", "d=5&seconds=0.1", pool=pool)
    wait.until(lambda: len(daemon.ask("units")["units"]) == 2, "both units")
    hidden = next(found for found in daemon.ask("units")["units"] if found["pid"] in theirs)
    everything = daemon.ask("profile")

    targets, by_pid, units, profile, top, one = as_user(
        WWW_DATA, answers, daemon.socket, ("targets", {}), ("targets", {"pid": theirs[0]}), ("units", {}), ("profile", {}), ("top", {}),
        ("unit", {"unit_id": hidden["unit_id"]}))
    assert sorted(target["pid"] for target in targets["targets"]) == sorted(mine)
    assert by_pid == {"targets": []} or by_pid in ("not_a_target", "not_found")
    assert {found["pid"] for found in units["units"]} <= set(mine) and units["units"]
    assert 0 < profile["accounting"]["expected"] < everything["accounting"]["expected"]
    assert 0 < top["accounting"]["expected"] < everything["accounting"]["expected"]
    assert one == "not_found"

    targets, units = as_user(NOBODY, answers, daemon.socket, ("targets", {}), ("units", {}))
    assert targets["targets"] == [] and units["units"] == []


@pytest.mark.parametrize("verb, arguments", CONTROL, ids=[verb for verb, _ in CONTROL])
def test_control_verbs_are_forbidden_to_others(verb, arguments, fpm, make_daemon):
    daemon = make_daemon(fpm, attached=False)
    assert as_user(WWW_DATA, answers, daemon.socket, (verb, arguments)) == ["forbidden"]


def test_groups_open_what_they_are_for(two_users, make_daemon):
    reader, admin = grp.getgrnam("audio"), grp.getgrnam("video")
    daemon = make_daemon(two_users, socket={"group": reader.gr_name, "admin_group": admin.gr_name})
    everybody = sorted(two_users.all_workers())

    targets, reset = as_user(NOBODY, answers, daemon.socket, ("targets", {}), ("reset", {}), groups=[reader.gr_gid])
    assert sorted(target["pid"] for target in targets["targets"]) == everybody
    assert reset == "forbidden"
    targets, reset = as_user(NOBODY, answers, daemon.socket, ("targets", {}), ("reset", {}), groups=[admin.gr_gid])
    assert sorted(target["pid"] for target in targets["targets"]) == everybody
    assert reset["affected"] == 4


def test_a_process_that_is_no_worker_has_no_unit_to_finish(fpm, daemon):
    for uid in (0, WWW_DATA):
        assert as_user(uid, answers, daemon.socket, ("finish", {"handle": 0})) == ["not_a_target"]
    (status,) = as_user(NOBODY, answers, daemon.socket, ("status", {}))
    assert status["worker"] is None


def test_status_tells_a_stranger_no_other_users_pids(two_users, make_daemon):
    daemon = make_daemon(two_users)
    (status,) = as_user(NOBODY, answers, daemon.socket, ("status", {}))
    assert status["refusals"] == []


# -- what is no request ----------------------------------------------------------------------------------------------

def lines(path, raw, seconds=10.0):
    """What comes back for these bytes, until the daemon closes or is silent."""
    with Client(path, seconds) as connection:
        connection.socket.sendall(raw)
        connection.socket.shutdown(socket.SHUT_WR)
        told = []
        while (line := connection.read_line()) is not None:
            told.append(line)
        return told


@pytest.mark.parametrize("raw, error", [
    (b"hello\n", "bad_json"),
    (b"{\n", "bad_json"),
    (b"\0\xff\n", "bad_json"),
    (b'{"verb":' + b"[" * 500 + b"\n", "bad_json"),
    (b"[]\n", "bad_request"),
    (b"{}\n", "bad_request"),
    (b'{"verb":7}\n', "bad_request"),
    (b'{"verb":"dance"}\n', "unknown_verb"),
    (b'{"verb":"units","limit":-1}\n', "out_of_range"), (b'{"verb":"units","limit":"many"}\n', "bad_request"),
    (b'{"verb":"rate","rate_hz":1000000000}\n', "out_of_range"),
])
def test_what_is_no_request_is_named(raw, error, fpm, make_daemon):
    daemon = make_daemon(fpm, attached=False)
    told = lines(daemon.socket, raw + b'{"verb":"status","id":"after"}\n')
    assert (told[0]["ok"], told[0]["error"]) == (False, error)
    assert told[0]["message"].count("\n") == 0
    assert (told[1]["id"], told[1]["ok"]) == ("after", True), "the connection goes on"


def test_an_oversized_line_is_named_and_closed(fpm, make_daemon):
    daemon = make_daemon(fpm, attached=False)
    with daemon.connect() as connection:
        try:
            connection.socket.sendall(b'{"verb":"status","x":"' + b"y" * (256 << 10))
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = connection.read_line()
        assert answer is None or answer["error"] == "line_too_long"
        assert connection.read_line() is None
    fits = b'{"verb":"status","id":1,"x":"' + b"y" * (60 << 10) + b'"}\n'
    assert lines(daemon.socket, fits)[0]["ok"] is True


def test_half_a_line_is_waited_for_and_then_closed(fpm, make_daemon):
    daemon = make_daemon(fpm, attached=False, socket={"idle_timeout": "1s"})
    with daemon.connect() as slow:
        slow.socket.sendall(b'{"verb":"sta')
        assert daemon.ask("status")["version"], "others are served meanwhile"
        slow.socket.sendall(b'tus"}\n')
        assert slow.read_answer()["ok"] is True
        slow.socket.sendall(b'{"verb":"sta')
        started = time.monotonic()
        assert slow.read_line() is None
        assert 0.5 < time.monotonic() - started < 5


def test_many_requests_in_one_write_are_answered_in_order(fpm, make_daemon):
    daemon = make_daemon(fpm, attached=False, socket={"requests_per_second_per_uid": 100000})
    with daemon.connect() as connection:
        connection.socket.sendall(b"".join(b'{"verb":"status","id":%d}\n' % number for number in range(200)))
        assert [connection.read_answer()["id"] for _ in range(200)] == list(range(200))


def test_a_user_that_asks_too_often_is_told_so_and_others_are_not(fpm, make_daemon):
    daemon = make_daemon(fpm, attached=False, socket={"requests_per_second_per_uid": 20})

    def hurry(path):
        told = answers(path, *[("status", {})] * 200)
        return sum(answer == "rate_limited" for answer in told), len(told)

    limited, asked = as_user(WWW_DATA, hurry, daemon.socket)
    assert asked == 200 and 100 < limited < 200
    assert as_user(NOBODY, answers, daemon.socket, ("status", {}))[0]["version"]


# -- nobody takes the service from the others ------------------------------------------------------------------------

def crowd(path, count, go, done):
    """Opens as many connections as it can up to count; stays until told; returns how many were turned away."""
    held, turned_away = [], 0
    for _ in range(count):
        try:
            connection = Client(path, 5)
        except OSError:
            turned_away += 1
            continue
        if connection.hello is None or connection.hello.get("error") == "too_many_connections":
            turned_away += 1
            connection.socket.close()
        else:
            held.append(connection)
    os.write(done, b"x")
    os.read(go, 1)
    return turned_away, len(held)


def never_reads(path, seconds):
    """Asks for a lot and reads nothing; returns once the daemon has closed, or after so many seconds."""
    connection = Client(path, 1, hello=False)
    question = json.dumps({"verb": "profile"}).encode() + b"\n"
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            connection.socket.sendall(question * 64)
        except socket.timeout:
            continue
        except (BrokenPipeError, ConnectionResetError):
            return "closed"
    return "still open"


def floods(path):
    """A line without an end."""
    with Client(path, 10) as connection:
        try:
            while True:
                connection.socket.sendall(b"{" * (1 << 16))
        except (BrokenPipeError, ConnectionResetError):
            return "closed"


def hammers(path, verb, seconds, connections=8):
    """Asks for the same again and again, on several connections; returns how many answers it got."""
    clients = [Client(path, 5) for _ in range(connections)]
    deadline, answers = time.monotonic() + seconds, 0
    for client in clients:
        client.send(verb=verb)
    while time.monotonic() < deadline:
        for client in clients:
            while client.socket.recv(1 << 20)[-2:] != b"}\n" and time.monotonic() < deadline:
                pass
            answers += 1
            client.send(verb=verb)
    return answers


def in_background(uid, function, *arguments):
    import threading

    box = []
    thread = threading.Thread(target=lambda: box.append(as_user(uid, function, *arguments)))
    thread.start()
    return thread, box


def test_a_thousand_connections_of_one_user_leave_room_for_the_others(fpm, make_daemon, scripts):
    daemon = make_daemon(fpm, socket={"max_clients": 256, "max_clients_per_uid": 64})
    go, done = os.pipe(), os.pipe()
    thread, box = in_background(NOBODY, crowd, daemon.socket, 1000, go[0], done[1])
    assert os.read(done[0], 1) == b"x"
    assert daemon.ask("status")["version"]
    assert unit(fpm, scripts, daemon, hot=20)["result"]["duration_ns"] > 0, "another user's worker gets its result"
    os.write(go[1], b"x")
    thread.join(30)
    turned_away, held = box[0]
    assert held == 64 and turned_away == 936


def test_a_client_that_never_reads_is_closed(fpm, make_daemon):
    daemon = make_daemon(fpm, socket={"idle_timeout": "2s", "requests_per_second_per_uid": 100000})
    assert as_user(WWW_DATA, never_reads, daemon.socket, 15) == "closed"
    assert daemon.ask("status")["version"]


def missed(daemon, seconds=2.5, meanwhile=lambda: None):
    """The share of the ticks of so many seconds that were missed."""
    first, started = daemon.metrics()["accounting"], time.monotonic()
    while time.monotonic() - started < seconds:
        meanwhile()
        time.sleep(0.05)
    last = daemon.metrics()["accounting"]
    balance.of(last)
    return (last["missed"] - first["missed"]) / (last["expected"] - first["expected"])


def test_hostile_clients_do_not_disturb_sampling(fpm, make_daemon, scripts):
    """Ticks missed under attack, against a control run of the same length."""
    daemon = make_daemon(fpm, rate=200, socket={"max_clients": 256, "max_clients_per_uid": 64})
    control = missed(daemon)
    go, done = os.pipe(), os.pipe()
    attackers = [
        in_background(NOBODY, crowd, daemon.socket, 1000, go[0], done[1]),
        in_background(WWW_DATA, never_reads, daemon.socket, 2.5),
        in_background(WWW_DATA, floods, daemon.socket),
    ]
    under_attack = missed(daemon)
    os.write(go[1], b"x")
    for thread, _ in attackers:
        thread.join(30)
    assert under_attack <= control + 0.03, f"missed {under_attack:.1%} of the ticks, {control:.1%} without the attack"


def test_who_asks_without_a_pause_gets_no_cpu_that_others_want(fpm, make_daemon):
    """The service is of the realtime class for a tenth of one CPU, whatever its clients want of it."""
    daemon = make_daemon(fpm, socket={"requests_per_second_per_uid": 1000000})
    service = next(thread for thread, name in proc.threads(daemon.pid).items() if name == "service")

    def used_ns(seconds):
        """CPU time as a realtime thread and as an ordinary one, to within a scheduler's tick at each change."""
        used, before = {os.SCHED_FIFO: 0, os.SCHED_OTHER: 0}, None
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            kind, now = os.sched_getscheduler(service), int(proc.read(daemon.pid, f"task/{service}/schedstat").split()[0])
            used[kind] += now - (before or now)
            before = now
            time.sleep(0.0005)
        return used[os.SCHED_FIFO], used[os.SCHED_OTHER]

    assert os.sched_getscheduler(service) == os.SCHED_FIFO
    threads = [in_background(WWW_DATA, hammers, daemon.socket, "status", 4)[0] for _ in range(2)]
    wait.until(lambda: os.sched_getscheduler(service) == os.SCHED_OTHER, "the service to be an ordinary thread")
    urgent, ordinary = used_ns(2)
    for thread in threads:
        thread.join(30)
    assert urgent < 0.2 * 2e9, f"{urgent / 1e6:.0f} ms of two seconds, and {ordinary / 1e6:.0f} as an ordinary one"
    assert ordinary > 0
    wait.until(lambda: os.sched_getscheduler(service) == os.SCHED_FIFO, "the class to come back with the calm")


@pytest.mark.parametrize("verb", ["profile", "top"])
def test_a_reader_that_asks_for_all_there_is_all_the_time_costs_the_others_nothing(verb, make_fpm, make_daemon, scripts):
    """Large windows at 1 kHz, and somebody who has them added up and written out without a pause: ticks missed and how
    long a finish takes, against a control run. When the sampler did all of it, it was 84 % and 100 ms."""
    fpm = make_fpm(php_builds.DEBIAN, [Pool(workers=4)])
    daemon = make_daemon(fpm, rate=1000)
    took_ms = []

    def finish():
        told = fpm.request(scripts / "quick.php", f"trace={'5' * 32}", **daemon.to_be_found()).json()
        assert told["result"]["duration_ns"] > 0, told
        took_ms.append(told["finish_wall_ns"] / 1e6)

    with load.requests(fpm, scripts / "paths.php", "ms=500", connections=3):
        wait.until(lambda: len(daemon.ask("profile")["nodes"]) > 12000, "windows with many paths", 60, poll=1)
        control = missed(daemon, meanwhile=finish)
        typical_ms = sorted(took_ms)[len(took_ms) // 2]
        took_ms.clear()
        thread, box = in_background(WWW_DATA, hammers, daemon.socket, verb, 4)
        under_attack = missed(daemon, meanwhile=finish)
        thread.join(30)
    assert box[0] > 0, "readers are served meanwhile"
    assert under_attack <= control + 0.1, f"missed {under_attack:.1%} of the ticks, {control:.1%} without the attack"
    under_attack_ms = sorted(took_ms)[len(took_ms) // 2]
    assert under_attack_ms <= typical_ms + 25, f"a finish took {under_attack_ms:.1f} ms, {typical_ms:.1f} without the attack"
