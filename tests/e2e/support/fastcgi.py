# SPDX-License-Identifier: MIT
"""A FastCGI client, as small as it can be: one connection, kept alive, one request after the other.

Not cgi-fcgi: a process a request would measure fork(), and could not keep a worker's connection.
"""
import json
import socket
import struct
from dataclasses import dataclass

BEGIN_REQUEST, END_REQUEST, PARAMS, STDIN, STDOUT, STDERR = 1, 3, 4, 5, 6, 7
RESPONDER, KEEP_CONNECTION = 1, 1
HEADER = struct.Struct("!BBHHBx")


@dataclass
class Response:
    status: int
    headers: dict
    body: bytes
    errors: bytes

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def json(self):
        assert self.status == 200, f"status {self.status}: {self.text[:500]} {self.errors[:500]!r}"
        try:
            return json.loads(self.body)
        except ValueError:
            raise AssertionError(f"not JSON: {self.text[:2000]!r} stderr {self.errors[:2000]!r}") from None


def _length(number):
    return struct.pack("!B", number) if number < 128 else struct.pack("!I", number | 0x80000000)


def _pairs(parameters):
    pairs = bytearray()
    for name, value in parameters.items():
        name, value = str(name).encode(), value if isinstance(value, bytes) else str(value).encode()
        pairs += _length(len(name)) + _length(len(value)) + name + value
    return bytes(pairs)


def _records(kind, content):
    out = bytearray()
    for start in range(0, len(content), 65535):
        piece = content[start:start + 65535]
        out += HEADER.pack(1, kind, 1, len(piece), 0) + piece
    return bytes(out + HEADER.pack(1, kind, 1, 0, 0))


def parameters(script, query="", uri=None, method="GET", body=b"", **more):
    """The FastCGI environment a web server would send for this script."""
    uri = uri if uri is not None else f"/{str(script).rsplit('/', 1)[-1]}" + (f"?{query}" if query else "")
    return {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_SOFTWARE": "tests",
        "SERVER_NAME": "localhost",
        "HTTP_HOST": "localhost",
        "REMOTE_ADDR": "127.0.0.1",
        "REQUEST_METHOD": method,
        "REQUEST_URI": uri,
        "SCRIPT_FILENAME": str(script),
        "SCRIPT_NAME": uri.split("?")[0],
        "QUERY_STRING": query,
        "CONTENT_LENGTH": str(len(body)) if body else "",
        "CONTENT_TYPE": "application/octet-stream" if body else "",
        **more,
    }


class Connection:
    """One connection to a pool's socket. With keep-alive FPM binds it to one worker until it is closed."""

    def __init__(self, path, seconds=30.0, keep_alive=True):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(seconds)
        self._socket.connect(str(path))
        self._keep_alive = keep_alive
        self._buffer = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._socket.close()

    def send(self, script, query="", body=b"", **more):
        """Sends a request and does not wait: read() fetches the answer. Several may be under way, answered in order."""
        flags = KEEP_CONNECTION if self._keep_alive else 0
        begin = HEADER.pack(1, BEGIN_REQUEST, 1, 8, 0) + struct.pack("!HB5x", RESPONDER, flags)
        self._socket.sendall(begin + _records(PARAMS, _pairs(parameters(script, query, body=body, **more)))
                             + (_records(STDIN, body) if body else HEADER.pack(1, STDIN, 1, 0, 0)))

    def _take(self, count):
        while len(self._buffer) < count:
            piece = self._socket.recv(65536)
            if not piece:
                raise ConnectionError("the worker closed the connection in the middle of an answer")
            self._buffer += piece
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def read(self):
        out, errors = bytearray(), bytearray()
        while True:
            _, kind, _, length, padding = HEADER.unpack(self._take(HEADER.size))
            content = self._take(length + padding)[:length]
            if kind == STDOUT:
                out += content
            elif kind == STDERR:
                errors += content
            elif kind == END_REQUEST:
                break
        head, _, body = bytes(out).partition(b"\r\n\r\n")
        headers = {}
        for line in head.decode("utf-8", "replace").split("\r\n"):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        status = int(headers.get("status", "200").split()[0])
        return Response(status, headers, body, bytes(errors))

    def request(self, script, query="", body=b"", **more):
        self.send(script, query, body=body, **more)
        return self.read()


def request(path, script, query="", seconds=30.0, body=b"", **more):
    """One request on a connection of its own."""
    with Connection(path, seconds, keep_alive=False) as connection:
        return connection.request(script, query, body=body, **more)
