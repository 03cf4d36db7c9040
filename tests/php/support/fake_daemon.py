# SPDX-License-Identifier: MIT
"""A daemon that speaks protocol 1 as its behaviour says: rightly, or wrongly in one way. For the PHP client's tests.

    fake_daemon.py SOCKET BEHAVIOUR LOG [CANNED]

Prints "ready" when it listens. Writes one line to LOG for each connection ("connected") and each request (its JSON). CANNED
is a JSON file: verb -> result, in place of the built-in results.
"""
import json
import os
import socket
import sys
import threading
import time

HELLO = {
    "hello": "cbox-profd", "version": "0.9.7", "protocols": [1],
    "features": ["finish", "status", "targets", "top"],
}
CHUNK_CHARACTERS = 262144

FINISH = {
    "duration_ns": 512345678, "unit": "http", "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736",
    "span_id": "00f067aa0ba902b7", "sampled": True, "profiling": True, "automatic": True,
    "operations": {
        "pdo.connect": {"count": 2, "total_ns": 3000000, "max_ns": 2000000, "source": "sampled"},
        "redis.connect": {"count": 0, "total_ns": 0, "max_ns": 0, "source": "probe"},
    },
    "waits": {"mysql 127.0.0.1:3306": {"samples": 4, "wall_ns": 40000000}},
    "counters": {
        "profiler.samples": 51, "profiler.dropped": 1, "profiler.torn": 3, "profiler.timer_overruns": 2,
        "profiler.period_ns": 10000000, "gc.runs": 1, "gc.collected": 10001, "memory.peak_bytes": 2097152,
        "arena.peak_bytes_total": 65536, "profiler.capped": False, "profiler.frames": 3, "profiler.nodes": 4,
    },
    "profile": {
        "sample_count": 50, "period_ns": 10000000, "clock": "wall", "dropped": 1, "truncated": 0,
        "deferred_samples": 0, "deferred_events": 0, "max_deferred": 0, "timer_overruns": 2,
        "frames": [
            {"function": "{main}", "file": "/srv/app/public/index.php", "line": 1},
            {"function": "App\\Report::hot", "file": "/srv/app/src/Report.php", "line": 12},
            {"function": "usleep", "file": "", "line": 0},
        ],
        "top_functions": [
            {"frame_id": 1, "samples": 30, "wall_ns": 300000000, "cpu_ns": 299000000},
            {"frame_id": 2, "samples": 20, "wall_ns": 200000000, "cpu_ns": 40000},
        ],
        "stacks": [
            [0, 0, 0, 12345678, 900000], [1, 1, 30, 300000000, 299000000], [1, 2, 20, 200000000, 40000],
        ],
    },
}

STATUS = {
    "version": "0.9.7", "protocols": [1], "uptime_ns": 5000000000, "realtime": True, "socket": "/fake",
    "sampling": {"period_ns": 10000000, "max_depth": 512, "suspended": False},
    "limits": {"max_targets": 64, "max_frames": 65536, "max_nodes": 32768, "auto_max_ns": 60000000000},
    "targets": 1, "pools": ["www"], "refusals": [], "accounting": {}, "metrics": {},
    "worker": {
        "pid": 1, "uid": 0, "pool": "www", "state": "running", "suspended": False, "period_ns": 5000000,
        "unit": {"open": True, "automatic": True, "handle": 0},
        "accounting": {"expected": 120, "taken": 90, "unchanged": 20, "unreadable": 4, "missed": 6},
    },
}


def result_of(request, canned):
    verb = request["verb"]
    if verb in canned:
        return canned[verb]
    if verb == "finish":
        result = json.loads(json.dumps(FINISH))
        if not request.get("profile"):
            result["profile"] = None
        elif not request.get("stacks"):
            result["profile"]["stacks"] = None
        return result
    if verb == "status":
        return STATUS
    if verb == "echo":
        return request
    if verb == "big":
        # Characters of one, two, three and four bytes, quotes and backslashes: what cutting into chunks can break.
        return {"text": ("aé€😀\"\\" * request["repeats"])}
    return None


def answers(request, canned):
    """The lines that answer one request."""
    result = result_of(request, canned)
    if result is None:
        yield {"id": request["id"], "ok": False, "error": "unknown_verb",
               "message": "there is no verb %s; see docs/PROTOCOL.md" % request["verb"]}
        return
    whole = json.dumps({"ok": True, "result": result}, ensure_ascii=False)
    if len(whole) <= CHUNK_CHARACTERS:
        yield {"id": request["id"], "ok": True, "result": result}
        return
    for at in range(0, len(whole), CHUNK_CHARACTERS):
        yield {"id": request["id"], "more": at + CHUNK_CHARACTERS < len(whole),
               "chunk": whole[at:at + CHUNK_CHARACTERS]}


class Peer:
    def __init__(self, connection, log):
        self.connection, self.log = connection, log
        self.lines = connection.makefile("rb")

    def say(self, value):
        self.raw(json.dumps(value).encode() + b"\n")

    def raw(self, data):
        self.connection.sendall(data)

    def drip(self, value):
        for byte in json.dumps(value).encode() + b"\n":
            self.raw(bytes([byte]))
            time.sleep(0.004)

    def flood(self):
        while True:
            self.raw(b"x" * 65536)

    def hear(self):
        """The next request; ends the conversation when there is none."""
        line = self.lines.readline()
        if not line:
            raise ConnectionError
        self.log(line.decode().strip())
        return json.loads(line)

    def hang(self):
        while self.lines.readline():
            pass


def converse(peer, behaviour, canned):
    if behaviour == "silent":
        return peer.hang()
    if behaviour == "closing":
        return None
    if behaviour == "flood":
        return peer.flood()
    if behaviour == "drip":
        return peer.drip(HELLO)
    if behaviour == "not profd":
        return peer.raw(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    if behaviour == "no room":
        return peer.say({"ok": False, "error": "too_many_connections", "message": "uid 33 has 64 connections open"})
    if behaviour == "half hello":
        peer.raw(b'{"hello":"cbox-pro')
        return peer.hang()
    if behaviour == "another version":
        peer.say(dict(HELLO, protocols=[2, 3]))
        return peer.hang()
    if behaviour == "nested deep":
        return peer.raw(b"[" * 1000 + b"]" * 1000 + b"\n")
    peer.say(HELLO)
    while True:
        request = peer.hear()
        if behaviour == "right":
            for answer in answers(request, canned):
                peer.say(answer)
        elif behaviour == "closing after each answer":
            for answer in answers(request, canned):
                peer.say(answer)
            return None
        elif behaviour == "mute":
            peer.hang()
        elif behaviour == "closing on a request":
            return None
        elif behaviour == "garbage":
            peer.raw(os.urandom(4096).replace(b"\n", b"!") + b"\n")
        elif behaviour == "half answer":
            peer.raw(b'{"id":%d,"ok":true,"result":{"duration_ns":12' % request["id"])
            peer.hang()
        elif behaviour == "half answer, closing":
            return peer.raw(b'{"id":%d,"ok":true,"result":{"duration_ns":12' % request["id"])
        elif behaviour == "flood of chunks":
            while True:
                peer.say({"id": request["id"], "more": True, "chunk": "x" * 200000})
        elif behaviour == "slow chunks":
            while True:
                peer.say({"id": request["id"], "more": True, "chunk": "x"})
                time.sleep(0.003)
        elif behaviour == "endless line":
            peer.flood()
        elif behaviour == "drip answer":
            peer.drip(next(iter(answers(request, canned))))
        elif behaviour == "another id":
            for answer in answers(request, canned):
                peer.say(dict(answer, id=request["id"] + 1))
        elif behaviour == "list":
            peer.say({"id": request["id"], "ok": True, "result": "fine"})
        elif behaviour.startswith("refusing "):
            peer.say({"id": request["id"], "ok": False, "error": behaviour[len("refusing "):],
                      "message": "the fake daemon refuses"})
        else:
            raise SystemExit("fake_daemon.py: unknown behaviour " + behaviour)


def main():
    path, behaviour, log_path = sys.argv[1:4]
    canned = {}
    if len(sys.argv) > 4:
        with open(sys.argv[4], encoding="utf-8") as file:
            canned = json.load(file)
    lock = threading.Lock()

    def log(line):
        with lock, open(log_path, "a", encoding="utf-8") as file:
            file.write(line + "\n")

    def serve(connection):
        log("connected")
        try:
            with connection:
                converse(Peer(connection, log), behaviour, canned)
                connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(0 if behaviour == "not accepting" else 64)
    print("ready", flush=True)
    if behaviour == "not accepting":
        sys.stdin.read()
        return
    # The test holds our standard input: when it is gone, so are we.
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


main()
