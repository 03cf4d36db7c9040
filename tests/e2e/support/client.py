# SPDX-License-Identifier: MIT
"""The daemon's protocol from the other side, written from docs/PROTOCOL.md and from nothing else: one JSON object a
line, the server speaks first, large answers come in chunks."""
import json
import os
import pickle
import socket
import struct
import traceback


class Refused(Exception):
    """An answer with "ok": false."""

    def __init__(self, answer):
        super().__init__(f"{answer.get('error')}: {answer.get('message')}")
        self.error, self.message, self.answer = answer.get("error"), answer.get("message"), answer


class Client:
    def __init__(self, path, seconds=15.0, hello=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(seconds)
        self.socket.connect(str(path))
        self._buffer = bytearray()
        self.chunks = 0  # lines the last answer came in beyond the first
        self.hello = self.read_line() if hello else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, **request):
        self.socket.sendall(json.dumps(request).encode() + b"\n")

    def read_line(self):
        """The next line as an object; None at the end of the stream."""
        while b"\n" not in self._buffer:
            try:
                piece = self.socket.recv(1 << 20)
            except ConnectionResetError:
                return None
            if not piece:
                return None
            self._buffer += piece
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return json.loads(line)

    def read_answer(self):
        """One whole answer, put together from its chunks."""
        answer = self.read_line()
        self.chunks = 0
        if answer is None or "chunk" not in answer:
            return answer
        text, identity = answer["chunk"], answer.get("id")
        while answer["more"]:
            answer = self.read_line()
            assert answer.get("id") == identity, "chunks of two answers are mixed"
            text += answer["chunk"]
            self.chunks += 1
        return json.loads(text)

    def ask(self, verb, **arguments):
        """The result; raises Refused when the answer is an error."""
        self.send(verb=verb, **arguments)
        answer = self.read_answer()
        assert answer is not None, f"the daemon closed the connection instead of answering {verb}"
        if not answer["ok"]:
            raise Refused(answer)
        return answer["result"]


def ask(path, verb, **arguments):
    with Client(path) as client:
        return client.ask(verb, **arguments)


def as_user(uid, function, *arguments, groups=()):
    """function(*arguments) in a child with this uid and gid: its result, or its exception as an AssertionError.

    The peer's credentials are those at connect(), so the connection has to be made in there.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            os.setgroups(list(groups))
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            told = pickle.dumps((True, function(*arguments)))
        except BaseException as error:  # noqa: BLE001 - all of it is told to the parent
            told = pickle.dumps((False, f"{type(error).__name__}: {error}\n{traceback.format_exc()}"))
        with os.fdopen(writing, "wb") as out:
            out.write(struct.pack("!I", len(told)) + told)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        raw = pipe.read()
    os.waitpid(child, 0)
    assert len(raw) > 4, "the child ended without a word"
    went_well, told = pickle.loads(raw[4:])
    assert went_well, f"as uid {uid}: {told}"
    return told
