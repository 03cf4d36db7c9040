# SPDX-License-Identifier: MIT
"""A place where a PHP request waits until the test lets it go: it connects to a Unix socket, writes a byte (so that one knows
it has come through the connecting), and reads until the gate is opened."""
import os
import socket


class Gate:
    def __init__(self, path):
        self.path = path
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(str(path))
        os.chmod(path, 0o777)
        self._listening.listen(256)
        self._waiting = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open()
        self._listening.close()
        os.unlink(self.path)

    def until_reached(self, seconds=15.0):
        """Returns when one more request stands before the gate."""
        self._listening.settimeout(seconds)
        try:
            connection, _ = self._listening.accept()
            connection.settimeout(seconds)
            assert connection.recv(1) == b"!", "the request ended before the gate"
        except socket.timeout:
            raise AssertionError(f"no request came to the gate within {seconds:g} s") from None
        self._waiting.append(connection)

    def open(self):
        """Lets all go that wait."""
        while self._waiting:
            self._waiting.pop().close()
