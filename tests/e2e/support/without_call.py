# SPDX-License-Identifier: MIT
"""Runs a command under a seccomp filter that refuses one system call with EPERM, as container runtimes do.

usage: without_call.py NUMBER COMMAND [ARGUMENT...]      process_vm_readv is 310 on x86-64
"""
import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ERRNO | EPERM
OFFSET_OF_NUMBER = 0  # in struct seccomp_data


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("HBBI", code, if_true, if_false, value)


def refuse(number):
    program = ctypes.create_string_buffer(
        instruction(LOAD_WORD, OFFSET_OF_NUMBER)
        + instruction(JUMP_IF_EQUAL, number, 0, 1)
        + instruction(RETURN, REFUSE)
        + instruction(RETURN, ALLOW))
    filter_ = struct.pack("HxxxxxxP", 4, ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.c_char_p(filter_), 0, 0)):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    refuse(int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
