# SPDX-License-Identifier: MIT
"""The PHP builds the suite runs against: Debian's 8.2 and the pinned npm builds (tests/setup/install-php-builds),
each with the opcache modes it can do."""
import os
from dataclasses import dataclass, field
from pathlib import Path

OFF, ON, JIT_FUNCTION, JIT_TRACING = "off", "opcache", "jit-function", "jit-tracing"

# So that a short test is compiled as a long-lived worker's code would be: everything that runs more than a few times.
EAGER_JIT = {"opcache.jit_hot_func": 4, "opcache.jit_hot_loop": 4, "opcache.jit_hot_return": 2, "opcache.jit_hot_side_exit": 2}


@dataclass(frozen=True)
class PhpBuild:
    name: str
    version: tuple
    fpm: Path
    cli: Path
    modules: Path
    libraries: Path = None
    opcache: Path = None  # None: part of the binary
    modes: tuple = field(default=(OFF, ON, JIT_FUNCTION, JIT_TRACING))

    @property
    def is_there(self):
        return self.fpm.is_file()

    def has_fibers(self):
        return self.version >= (8, 1)

    def environment(self):
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
        if self.libraries:
            environment["LD_LIBRARY_PATH"] = str(self.libraries)
        return environment

    def ini(self, mode=OFF, extensions=(), **more):
        """Command-line arguments (both for php and php-fpm): no php.ini of the machine's, this mode of opcache."""
        settings = {}
        arguments = ["-n"]
        for extension in ("json", *extensions):  # json is a module of 7.4's
            if (self.modules / f"{extension}.so").exists():
                arguments += ["-d", f"extension={self.modules / f'{extension}.so'}"]
        if mode != OFF and self.opcache:
            arguments += ["-d", f"zend_extension={self.opcache}"]
        settings["opcache.enable"] = settings["opcache.enable_cli"] = int(mode != OFF)
        if mode != OFF:
            settings |= {"opcache.file_update_protection": 0, "opcache.memory_consumption": 32}
        if mode in (JIT_FUNCTION, JIT_TRACING):
            settings |= {"opcache.jit": mode.removeprefix("jit-"), "opcache.jit_buffer_size": "16M", **EAGER_JIT}
        for key, value in (settings | more).items():
            arguments += ["-d", f"{key}={value}"]
        return arguments


def _npm_root():
    cache = os.environ.get("PHP_BUILDS") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "cbox-profd", "php-builds")
    return Path(cache) / "node_modules" / "@libphp"


def _npm(package, version, *, opcache_module=True, modes=PhpBuild.modes):
    native = _npm_root() / package / "native"
    php = native / "php"
    return PhpBuild(name="php" + ".".join(map(str, version)), version=version, fpm=php / "php-fpm", cli=php / "php",
                    modules=php / "modules", libraries=native / "lib",
                    opcache=php / "modules" / "opcache.so" if opcache_module else None, modes=modes)


DEBIAN = PhpBuild(name="debian8.2", version=(8, 2), fpm=Path("/usr/sbin/php-fpm8.2"), cli=Path("/usr/bin/php8.2"),
                  modules=Path("/usr/lib/php/20220829"), opcache=Path("/usr/lib/php/20220829/opcache.so"))

ALL = [
    DEBIAN,
    _npm("amazon-linux-2-v74", (7, 4), modes=(OFF, ON)),
    _npm("amazon-linux-2-v82", (8, 2)),
    _npm("amazon-linux-2-v83", (8, 3)),
    _npm("amazon-linux-2023-v84", (8, 4)),
    _npm("almalinux-9-v85", (8, 5), opcache_module=False),
]
