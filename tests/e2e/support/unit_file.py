# SPDX-License-Identifier: MIT
"""What a systemd unit promises, without a systemd to keep it: its user, capabilities and system calls, for a command.

usage: unit_file.py UNIT SOCKET COMMAND [ARGUMENT...]

Run as a program, it makes the listening SOCKET as the socket unit would, gives up all that the service UNIT takes away and
becomes COMMAND. (Mounts are left alone: what is hidden there is for systemd to show.)
"""
import ctypes
import os
import pwd
import re
import socket
import stat
import struct
import subprocess
import sys
from pathlib import Path

STAND_IN_USER = "nobody"  # where the unit's own user has not been made
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ERRNO | EPERM
SYSCALL_NUMBERS = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h")


class Unit:
    def __init__(self, path):
        self.settings = {}
        for line in Path(path).read_text().splitlines():
            if "=" in line and not line.startswith("#"):
                key, value = line.split("=", 1)
                self.settings.setdefault(key, []).append(value)

    def one(self, key):
        (value,) = self.settings[key]
        return value

    def capabilities(self):
        return self.one("CapabilityBoundingSet").lower().replace("cap_", "").split()

    def user(self):
        try:
            return pwd.getpwnam(self.one("User"))
        except KeyError:
            return pwd.getpwnam(STAND_IN_USER)

    def system_calls(self):
        """Names, as systemd reads the lines: the first says what is allowed, a ~ takes away, what follows adds."""
        allowed = set()
        for line in self.settings["SystemCallFilter"]:
            names = set().union(*(expand(word) for word in line.removeprefix("~").split()))
            allowed = allowed - names if line.startswith("~") else allowed | names
        return allowed | expand("@default")

    def prefix(self):
        """A command line in front of another: the unit's user and capabilities, none more."""
        user = self.user()
        sets = ",".join(["-all"] + ["+" + name for name in self.capabilities()])
        return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", f"--bounding-set={sets}",
                f"--inh-caps={sets}", f"--ambient-caps={sets}", "--no-new-privs"]


def expand(word):
    """The calls of a group like @ipc, groups in it included; a plain name is itself."""
    if not word.startswith("@"):
        return {word}
    listing = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager", word], capture_output=True, text=True, check=True).stdout
    words = [line.split()[0] for line in listing.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return set().union(*(expand(name) for name in words))


def refuse_all_but(names):
    """A seccomp filter, for this process and what it becomes."""
    header = next(Path(path) for path in SYSCALL_NUMBERS if Path(path).exists())
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", header.read_text())}
    instruction = lambda code, value, yes=0, no=0: struct.pack("HBBI", code, yes, no, value)  # noqa: E731
    program = [instruction(LOAD_WORD, 0)]
    for name in sorted(names & numbers.keys()):
        program += [instruction(JUMP_IF_EQUAL, numbers[name], 0, 1), instruction(RETURN, ALLOW)]
    program.append(instruction(RETURN, REFUSE))
    text = ctypes.create_string_buffer(b"".join(program))
    filter_ = struct.pack("HxxxxxxP", len(program), ctypes.addressof(text))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(filter_), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def inside(unit_path, names, command):
    """The second half, when user and capabilities are the unit's."""
    if os.environ.get("LISTEN_FDS"):
        os.environ["LISTEN_PID"] = str(os.getpid())
    refuse_all_but(names)
    os.execv(command[0], command)


def main(unit_path, path, *command):
    unit = Unit(unit_path)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    Path(path).unlink(missing_ok=True)
    listening.bind(path)
    os.chmod(path, stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH)
    listening.listen(1024)
    if listening.fileno() != 3:
        os.dup2(listening.fileno(), 3)
    os.set_inheritable(3, True)
    os.environ.update(LISTEN_FDS="1", LISTEN_FDNAMES="cbox-profd.socket")
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import unit_file; " \
           f"unit_file.inside({str(unit_path)!r}, {unit.system_calls()!r}, sys.argv[1:])"
    arguments = [*unit.prefix(), sys.executable, "-B", "-c", code, *command]
    os.execvp(arguments[0], arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
