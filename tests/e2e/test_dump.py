# SPDX-License-Identifier: MIT
"""`dump` prints exactly the frames, files and lines that PHP itself wrote down (Must show 1)."""
import json
from contextlib import contextmanager

from support import cli, php_builds, proc
from support.gate import Gate


def class_name(name):
    """An anonymous class's name goes on behind a NUL byte with an address nobody should see."""
    return name.split("\0")[0]


def frames_of(backtrace, leaf):
    """debug_backtrace() as `dump` tells it: there a file and line are where it was *called*, here where it runs."""
    frames = [leaf]
    running = {"file": backtrace["file"], "line": backtrace["line"]}
    for entry in backtrace["trace"]:
        scope = f"{class_name(entry['class'])}::" if "class" in entry else ""
        name = scope + entry["function"]
        frames.append((name, running.get("file", ""), running.get("line", 0)))
        running = {key: entry[key] for key in ("file", "line") if key in entry}
    return frames + [("{main}", running["file"], running["line"])]


def told(dump):
    return [(frame["function"], frame["file"], frame["line"]) for frame in dump["frames"]]


@contextmanager
def blocked_chain(fpm, scripts, place, **query):
    """A request of chain.php that stands at its leaf; yields what debug_backtrace() wrote there."""
    out = place / "backtrace.json"
    with Gate(place / "gate") as gate, fpm.connect() as connection:
        arguments = {"gate": gate.path, "out": out, **query}
        connection.send(scripts / "chain.php", "&".join(f"{key}={value}" for key, value in arguments.items()))
        gate.until_reached()
        backtrace = json.loads(out.read_text())
        # in a pid namespace of its own PHP has another number for itself, and there is one worker
        backtrace["worker"] = backtrace["pid"] if backtrace["pid"] in fpm.workers() else fpm.workers()[0]
        proc.until_blocked(backtrace["worker"])
        yield backtrace
        gate.open()
        assert connection.read().json()["done"]


def test_dump_prints_what_debug_backtrace_wrote_down(build, mode, fpm, scripts, place):
    with blocked_chain(fpm, scripts, place) as backtrace:
        dump = cli.run_json("dump", backtrace["worker"], "--json")
    expected = frames_of(backtrace, ("fread", "", 0))
    assert len(expected) > (42 if build.has_fibers() else 36), "the chain has lost a part"
    assert told(dump) == expected
    assert dump["omitted"] == 0
    assert dump["state"] == "waiting"
    assert dump["sapi"] == "fpm-fcgi"
    assert tuple(map(int, dump["php_version"].split(".")[:2])) == build.version
    assert (dump["request"]["method"], dump["request"]["path"]) == ("GET", "/chain.php")
    if mode in (php_builds.OFF, php_builds.ON):
        assert not any(frame["line_approximate"] for frame in dump["frames"])


def test_dump_of_compiled_code_prints_what_debug_backtrace_wrote_down(build, mode, fpm, scripts, place):
    with blocked_chain(fpm, scripts, place, warm=40) as backtrace:
        dump = cli.run_json("dump", backtrace["worker"], "--json")
    assert told(dump) == frames_of(backtrace, ("fread", "", 0))


def test_functions_compiled_anew_are_not_mistaken_for_the_last_requests(build, shared_master, scripts, place):
    """Without opcache PHP uses the addresses of freed functions again."""
    fpm = shared_master(build, php_builds.OFF)
    for turn in range(3):
        script = place / f"turn{turn}.php"
        wait_at_the_gate = "$s = stream_socket_client('unix://' . $gate); fwrite($s, '!'); fread($s, 1);"
        call = f"turn_{turn}($_GET['gate']); echo json_encode(getmypid());"
        script.write_text(f"<?php function turn_{turn}($gate) {{ {wait_at_the_gate} }}\n" + "\n" * turn + call)
        with Gate(place / "gate") as gate, fpm.connect() as connection:
            connection.send(script, f"gate={gate.path}")
            gate.until_reached()
            pid = fpm.worker_at_a_gate()
            dump = cli.run_json("dump", pid, "--json")
            gate.open()
            assert connection.read().json() == pid
        assert told(dump) == [("fread", "", 0), (f"turn_{turn}", str(script), 1), ("{main}", str(script), 2 + turn)]


def test_the_dump_for_people_has_a_line_a_frame_and_the_place_it_runs(fpm, scripts, place):
    with blocked_chain(fpm, scripts, place) as backtrace:
        text = cli.ok("dump", backtrace["worker"]).stdout
        expected = frames_of(backtrace, ("fread", "", 0))
    lines = [line for line in text.splitlines() if line.startswith("#")]
    assert len(lines) == len(expected)
    for number, (line, (name, file, row)) in enumerate(zip(lines, expected)):
        assert line.split()[0] == f"#{number}"
        assert name in line
        if file:
            assert f"{file}:{row}" in line


def test_an_idle_worker_has_no_frames_and_says_so(build, fpm):
    worker = fpm.workers()[0]
    dump = cli.run_json("dump", worker, "--json")
    assert dump["frames"] == []
    assert dump["state"] == "idle"
    assert "idle" in cli.ok("dump", worker).stdout
