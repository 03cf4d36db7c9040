# SPDX-License-Identifier: MIT
"""Load: nginx and wrk before a master, and processes that want a CPU for themselves."""
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

from . import fastcgi, proc, wait


class Nginx:
    """nginx before a pool, on a fixed port of the loopback interface (it can't tell one that the kernel picked)."""

    def __init__(self, fpm, directory, script, pool=None, port=18971):
        self.directory, self.port = Path(directory), port
        self.directory.mkdir(parents=True, exist_ok=True)
        self.file = self.directory / "nginx.conf"
        self.file.write_text(f"""
daemon off; user root; worker_processes 1; pid {self.directory}/nginx.pid; error_log {self.directory}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {self.directory}/body;
    fastcgi_temp_path {self.directory}/fastcgi;
    proxy_temp_path {self.directory}/proxy;
    uwsgi_temp_path {self.directory}/uwsgi;
    scgi_temp_path {self.directory}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            fastcgi_pass unix:{fpm.socket(pool)};
            fastcgi_param SCRIPT_FILENAME {script};
            fastcgi_param SCRIPT_NAME /index.php;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param SERVER_PROTOCOL HTTP/1.1;
        }}
    }}
}}
""")

    def __enter__(self):
        self._output = open(self.directory / "nginx.out", "ab")
        self.process = proc.start(
            ["/usr/sbin/nginx", "-c", self.file, "-p", self.directory], stdout=self._output, stderr=subprocess.STDOUT)
        wait.until(self._listens, lambda: f"nginx: {(self.directory / 'nginx.out').read_text()}")
        return self

    def _listens(self):
        import socket

        assert self.process.poll() is None, (self.directory / "nginx.out").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def __exit__(self, *_):
        proc.end(self.process)
        self._output.close()

    @contextmanager
    def under_wrk(self, connections, seconds, uri="/catalog/tools/1"):
        """wrk runs meanwhile; ended early when the block is left."""
        url = f"http://127.0.0.1:{self.port}{uri}"
        process = proc.start(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", url], stdout=subprocess.DEVNULL)
        try:
            yield
        finally:
            proc.end(process)


@contextmanager
def hogs(count=2):
    """Processes that never give up a CPU, at nice 0 like everybody."""
    processes = [proc.start([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            proc.end(process)


@contextmanager
def requests(fpm, script, query="", connections=1, pool=None, **parameters):
    """Keeps so many kept connections busy with this request; yields a list that grows by each answer's status."""
    ended, done = threading.Event(), []

    def drive():
        while not ended.is_set():
            try:
                with fastcgi.Connection(fpm.socket(pool), 30) as connection:
                    while not ended.is_set():
                        done.append(connection.request(script, query, **parameters).status)
            except OSError:  # a worker that was killed or recycled: connect again
                continue

    threads = [threading.Thread(target=drive, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    try:
        yield done
    finally:
        ended.set()
        for thread in threads:
            thread.join(35)


def seed(app):
    """Fills the sample application's database with Debian's PHP."""
    from .php_builds import DEBIAN

    subprocess.run([DEBIAN.cli, *DEBIAN.ini(extensions=("pdo", "pdo_sqlite")), app / "seed.php"], check=True, timeout=60)
    os.chmod(app / "var" / "app.db", 0o644)


@contextmanager
def php_cli(build, directory, code, mode="off", binary=None, **popen):
    """A php process that runs this code (written to a file); yields it when it has begun."""
    script, begun = Path(directory) / "cli.php", Path(directory) / "cli.begun"
    begun.unlink(missing_ok=True)
    script.write_text(f"<?php touch('{begun}');\n{code}\n")
    process = proc.start([binary or build.cli, *build.ini(mode), script], env=build.environment(), **popen)
    try:
        wait.until(begun.exists, "the script to begin")
        yield process
    finally:
        proc.end(process)
