# SPDX-License-Identifier: MIT
"""Fixtures of the end-to-end suite, and its rule for skips.

Masters are shared: one for each (build, opcache mode) for the whole run, each test with a daemon of its own that looks at
that master alone. Everything a worker has to read (scripts, the client) is copied to a directory that www-data may enter,
because a checkout may lie where it may not.
"""
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from support import cli, load, php_builds  # noqa: E402
from support.daemon import Daemon  # noqa: E402
from support.fpm import FpmMaster, Pool  # noqa: E402
from support.gate import Gate  # noqa: E402

WORKERS = 4  # of a shared master


# -- parameters ------------------------------------------------------------------------------------------------------

def _parameter(build, *more):
    missing = pytest.mark.skip(reason=f"{build.name} is not there; run tests/setup/install-php-builds")
    return pytest.param(build, *more, id="-".join([build.name, *more]), marks=[] if build.is_there else [missing])


def pytest_generate_tests(metafunc):
    """`build`: every PHP version. `build` and `mode`: every version in every opcache mode it has."""
    if "mode" in metafunc.fixturenames:
        metafunc.parametrize("build, mode", [_parameter(build, mode) for build in php_builds.ALL for mode in build.modes])
    elif "build" in metafunc.fixturenames:
        metafunc.parametrize("build", [_parameter(build) for build in php_builds.ALL])


# -- places ----------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def room():
    """The run's directory: short (a socket's path has 107 bytes), and open to every user."""
    path = Path(tempfile.mkdtemp(prefix="e2e-"))
    os.chmod(path, 0o755)
    yield path
    if not os.environ.get("E2E_KEEP"):
        shutil.rmtree(path, ignore_errors=True)


_places = itertools.count(1)


@pytest.fixture
def place(room):
    """A directory for one test, that every user may write to."""
    path = room / f"t{next(_places)}"
    path.mkdir()
    os.chmod(path, 0o777)
    return path


@pytest.fixture(scope="session")
def scripts(room):
    """tests/e2e/php and client/php where workers can read them."""
    for source, name in (("tests/e2e/php", "php"), ("client/php", "client"), ("tests/app", "app")):
        if (cli.ROOT / source).exists():
            shutil.copytree(cli.ROOT / source, room / name, ignore=shutil.ignore_patterns("vendor", "app.db"))
    for path in itertools.chain.from_iterable(room.glob(f"{name}/**/*") for name in ("php", "client", "app")):
        os.chmod(path, 0o755 if path.is_dir() else 0o644)
    return room / "php"


# -- PHP and the daemon ----------------------------------------------------------------------------------------------

@pytest.fixture(scope="session")
def shared_master(room, scripts):
    """shared_master(build, mode): a running master with WORKERS static workers of www-data."""
    masters = {}

    def get(build, mode):
        key = (build.name, mode)
        if key not in masters or masters[key].process.poll() is not None:
            masters[key] = FpmMaster(build, room / f"fpm-{build.name}-{mode}", [Pool(workers=WORKERS)], mode).start()
        return masters[key]

    yield get
    for master in masters.values():
        master.stop()


@pytest.fixture
def fpm(shared_master, request):
    """The shared master of this test's build and mode; Debian's PHP with opcache where the test has none."""
    parameters = getattr(request.node, "callspec", None)
    parameters = parameters.params if parameters else {}
    return shared_master(parameters.get("build", php_builds.DEBIAN), parameters.get("mode", php_builds.ON))


@pytest.fixture
def churning(place):
    """Two chains of 50 functions that take turns within microseconds: a stack is main and a_1 … a_k, or b_1 … b_k."""
    generator = cli.ROOT / "tests" / "bench" / "php" / "gen_churn.php"
    code = subprocess.run([php_builds.DEBIAN.cli, "-n", generator, "50", "20", "chain"], check=True, capture_output=True,
                          text=True, timeout=20).stdout
    with load.php_cli(php_builds.DEBIAN, place, code.removeprefix("<?php\n")) as process:
        yield process


@pytest.fixture
def make_fpm(place, scripts):
    """make_fpm(build, ...): a master of the test's own, ended with the test."""
    masters, numbers = [], itertools.count(1)

    def make(build=php_builds.DEBIAN, pools=None, mode=php_builds.ON, directory=None, **more):
        master = FpmMaster(build, directory or place / f"fpm{next(numbers)}", pools, mode, **more)
        masters.append(master)
        return master.start()

    yield make
    for master in reversed(masters):
        master.stop()


@pytest.fixture
def threads(request):
    """sampling.threads of the test's daemons: parametrize it indirectly to run a test with several."""
    return getattr(request, "param", int(os.environ.get("E2E_THREADS", "1")))


@pytest.fixture
def make_daemon(place, threads):
    """make_daemon(master, ..., rate=…): a running daemon that looks at these masters' workers, ended with the test."""
    daemons, numbers = [], itertools.count(1)

    def make(*masters, rate=None, attached=True, start=True, environment=None, prefix=(), **sections):
        if rate:
            sections["sampling"] = {"rate": rate} | sections.get("sampling", {})
        if threads > 1:
            sections["sampling"] = {"threads": threads} | sections.get("sampling", {})
        pools = [{"name": f"m{number}", "master_pid": master.pid} for number, master in enumerate(masters, 1)]
        if pools:
            sections.setdefault("pools", pools)
        # beside the place, not in it: a socket where everybody may write is refused, and rightly
        daemon = Daemon(place.with_name(f"{place.name}d{next(numbers)}"), environment=environment, prefix=prefix, **sections)
        daemons.append(daemon)
        if start:
            daemon.start()
            if attached and masters:
                daemon.until_attached([pid for master in masters for pid in master.all_workers()])
        return daemon

    yield make
    for daemon in reversed(daemons):
        if daemon.process is not None:
            daemon.stop()


@pytest.fixture
def daemon(make_daemon, fpm):
    """A daemon that samples the fixture fpm's workers at the default rate."""
    return make_daemon(fpm)


@pytest.fixture
def gate(place):
    with Gate(place / "gate") as gate:
        yield gate


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure tells what the daemons of the test had to say."""
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        path = item.funcargs.get("place")
        for log in sorted(path.parent.glob(f"{path.name}d*/daemon.log")) if path else []:
            report.sections.append((f"{log.parent.name}: the daemon's log", log.read_text(errors="replace")[-4000:]))


# -- skips are loud --------------------------------------------------------------------------------------------------

def pytest_addoption(parser):
    parser.addoption("--allowed-skips", help="a file of reasons, one a line; any other skip fails the run")


def pytest_configure(config):
    if os.geteuid() != 0:
        pytest.exit("the end-to-end tests run php-fpm masters and a daemon with CAP_SYS_PTRACE: run them as root", 1)
    if not cli.binary().exists():
        pytest.exit(f"{cli.binary()} is not built: run make first (BUILD=… names another directory)", 1)


_unlisted = []


def pytest_runtest_logreport(report):
    if report.skipped:
        _unlisted.append((report.nodeid, report.longrepr[2].removeprefix("Skipped: ")))


def pytest_sessionfinish(session):
    listed = session.config.getoption("--allowed-skips")
    if not listed:
        return
    allowed = {line.strip() for line in Path(listed).read_text().splitlines() if line.strip() and not line.startswith("#")}
    _unlisted[:] = [(test, reason) for test, reason in _unlisted if reason not in allowed]
    if _unlisted and session.exitstatus == 0:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--allowed-skips") and _unlisted:
        terminalreporter.section("skips that are not on the list")
        for test, reason in _unlisted:
            terminalreporter.line(f"{test}: {reason}")
