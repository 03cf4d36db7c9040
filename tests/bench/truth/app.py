# SPDX-License-Identifier: MIT
"""The sample application: nobody can write down its stacks, but who can call whom is in its source.

A stack is impossible if one of its frames can't have called the next: a necessary condition only, but one that a stack put
together from two moments fails at once, in most cases. Functions are known by file and line, calls by their names.
"""
import json
import subprocess
from pathlib import Path

from measure import driver

from .grammar import UNREAD
from .programs import FPM
from .seen import INCLUDES
from .targets import BUILD

# Internal functions that call what they are given, and what that can be.
CALLS_BACK = {"array_map", "array_filter", "array_reduce", "array_walk_recursive", "usort", "preg_replace_callback"}
CALLS_ANYTHING = {"call_user_func", "call_user_func_array"}
# Through reflection a class is loaded, or made.
LOADS = {"reflectionclass::__construct", "reflectionmethod::__construct"}
MAKES = {"reflectionclass::newinstance"}
AUTOLOADER = "public/index.php"
PAGE = {"SCRIPT_NAME": "/index.php", "REQUEST_URI": "/catalog/tools/1"}


def _bare(function):
    return function.rpartition("::")[2].rpartition("\\")[2].lower()


class CallGraph:
    def __init__(self, directory):
        self._directory = str(Path(directory).resolve()) + "/"
        command = [BUILD.cli, *BUILD.ini(extensions=("tokenizer",)), driver.PHP / "oracle" / "callgraph.php", directory]
        done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, timeout=30)
        self._functions = {}
        for function in json.loads(done.stdout):
            # Several on one line are taken together: what one of them calls, any of them may.
            place = function["file"].removeprefix(self._directory), function["line"]
            known = self._functions.setdefault(place, {"calls": set(), "dynamic": False, "includes": False, "iterates": False})
            known["calls"].update(function["calls"])
            for what in ("dynamic", "includes", "iterates"):
                known[what] |= function[what]
        self._known = {}

    def name_of(self, frame):
        """(function, file, line): a file's own code has line 0, an internal function no file."""
        function, file, line = frame["function"], frame["file"].removeprefix(self._directory), frame["line"]
        return function, file, 0 if function in INCLUDES or function == "{main}" else line

    def can_call(self, caller, callee):
        if UNREAD in (caller[0], callee[0]):
            return True
        function, file, line = caller
        called = _bare(callee[0])
        is_closure, is_loader = called == "{closure}", called == "{closure}" and callee[1] == AUTOLOADER
        if not file:
            name = function.lower()
            return (name in CALLS_ANYTHING and bool(callee[1]) or name in CALLS_BACK and (is_closure or called == "is_string")
                    or name in LOADS and is_loader or name in MAKES and called == "__construct")
        body = self._functions.get((file, line))
        if body is None or callee[0] == "{main}":
            return False
        return (called in body["calls"] or is_loader or is_closure and body["dynamic"]
                or callee[0] in INCLUDES and body["includes"] or called == "getiterator" and body["iterates"])

    def legal_depth(self, stack):
        if not stack or stack[0][0] not in ("{main}", UNREAD):
            return 0
        for depth, (caller, callee) in enumerate(zip(stack, stack[1:]), 1):
            pair = caller, callee
            if pair not in self._known:
                self._known[pair] = self.can_call(caller, callee)
            if not self._known[pair]:
                return depth
        return len(stack)

    def is_legal(self, stack):
        return self.legal_depth(stack) == len(stack)


class SampleApplication:
    """In the place of a Program."""
    name, sapis, sides = "sample application", (FPM,), {}

    def __init__(self, room):
        self.grammar = CallGraph(room / "app")
        self.name_of = self.grammar.name_of
        self._script = room / "app" / "public" / "index.php"

    def running(self, fpm, cpu):
        return fpm.requests([self._script], cpu, **PAGE)

    def side(self, _):
        return None
