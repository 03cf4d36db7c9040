# SPDX-License-Identifier: MIT
"""The ground the other tests stand on: each PHP build is the version, and runs in the opcache mode, that its name says."""
from support import php_builds


def test_a_build_is_the_version_and_the_opcache_mode_it_says(build, mode, fpm, scripts):
    told = fpm.request(scripts / "about.php").json()
    assert tuple(told["version"][:2]) == build.version
    assert told["zts"] is False and told["debug"] is False
    assert told["opcache"] is (mode != php_builds.OFF)
    assert told["jit"] is (mode in (php_builds.JIT_FUNCTION, php_builds.JIT_TRACING))
    assert told["pid"] in fpm.workers()


def test_requests_on_one_connection_are_served_by_one_worker(build, fpm, scripts):
    with fpm.connect() as connection:
        assert len({connection.request(scripts / "about.php").json()["pid"] for _ in range(5)}) == 1
