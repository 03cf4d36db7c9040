# SPDX-License-Identifier: MIT
"""The programs whose stacks are known, and what is known of them.

Each table was written from the program's source, never from what a reader printed. `sides` names functions of parts that do
the same work equally often: whatever the machine, each part has the same share of the time in which one of them runs.
"""
from dataclasses import dataclass, field

from . import seen
from .grammar import Grammar, chain

CLI, FPM = "cli", "fpm"


@dataclass(frozen=True, eq=False)
class Program:
    name: str
    script: str  # in tests/bench/php
    grammar: Grammar
    arguments: tuple = ()  # gen_churn.php's: what it prints is the program
    sides: dict = field(default_factory=dict)  # function: the part it belongs to
    query: str = ""
    by_turns: tuple = ()  # short requests: the scripts, instead of one that never ends
    sapis: tuple = (CLI, FPM)
    name_of = staticmethod(seen.name_of)

    def running(self, fpm, cpu):
        return fpm.running(self, cpu)

    def side(self, stack):
        """The part that the stack (outermost first) is in; None: in none of them."""
        return next((self.sides[name] for name in stack if name in self.sides), None)


def _each(sides, table):
    """The table once for each of the sides, with * replaced by it."""
    return "\n".join(table.replace("*", side) for side in sides)


def _churning_chain(depth, work):
    table = "\n".join(chain("{main}", *(f"{side}_{i}" for i in range(1, depth + 1))) for side in "ab")
    return Program(f"chain {depth}/{work}", "gen_churn.php", Grammar(table), (depth, work, "chain"),
                   {"a_1": "a", "b_1": "b"})


def _churning_top(depth, work):
    base = ["{main}", *(f"s_{i}" for i in range(1, depth + 1))]
    tops = "\n".join(chain(base[-1], *(f"{side}_{i}" for i in (1, 2, 3))) for side in "fg")
    return Program(f"top {depth}/{work}", "gen_churn.php", Grammar(chain(*base) + "\n" + tops), (depth, work, "top"),
                   {"f_1": "f", "g_1": "g"})


def _deep(depth):
    frames = ["{main}", *(f"Deep::rec#{i}" for i in range(1, depth - 1)), "Deep::spin"]
    return Program(f"deep {depth}", "deep.php", Grammar(chain(*frames) + "\nDeep::spin -> hrtime"),
                   query=f"d={depth}&m=method&t=1000000")


_FIB = Program("fib 18", "oracle/fib.php", Grammar(
    "{main} -> fib#18\n" + "\n".join(f"fib#{n} -> fib#{n - 1}, fib#{n - 2}" for n in range(18, 1, -1))))

_INTERNALS = Program("internal functions", "oracle/internals.php", Grammar(_each(["left", "right"], """
    {main} -> *
    * -> array_map#*, usort#*, preg_replace_callback#*, strrev, crc32, array_sum
    array_map#* -> {closure * map}
    {closure * map} -> abs
    usort#* -> {closure * order}
    preg_replace_callback#* -> {closure * match}
    {closure * match} -> *_digits
    *_digits -> dechex
""")), sides={"left": "left", "right": "right"})

# Calling a generator's function runs its first instruction, which makes the generator, below the caller. From then on it
# runs when it is asked for its next value: in foreach, or below a method of Generator. Inside of `yield from` the generators
# stand above each other. `shared` lives for ever and is asked by both sides, at different depths.
_GENERATORS = Program("generators", "oracle/generators.php", Grammar("{main} -> shared\n" + _each(["left", "right"], """
    {main} -> *
    * -> *_outer, *_echo, Generator::current#*, Generator::send#*, Generator::next#*
    *_outer -> *_middle, *_leaf
    *_middle -> *_inner, *_leaf
    *_inner -> *_leaf
    Generator::current#* -> *_echo
    Generator::send#* -> *_echo
    Generator::next#* -> *_echo
    *_echo -> *_leaf
""") + """
    left -> left_ask
    left_ask -> Generator::next#s
    right -> right_asks
    right_asks -> right_ask
    right_ask -> Generator::next#s
    Generator::next#s -> shared
"""), sides={"left": "left", "right": "right"})

# {main} creates both; each then goes down five calls, suspends itself there, and goes on from there when it is resumed.
_FIBERS = Program("fibers", "oracle/fibers.php", Grammar(_each(["left", "right"], """
    {main} -> Fiber::__construct, Fiber::start#*, Fiber::resume#*
    Fiber::start#* -> *
    Fiber::resume#* -> *
    * -> *_work#3
    *_work#3 -> *_work#2
    *_work#2 -> *_work#1
    *_work#1 -> *_work#0
    *_work#0 -> *_pause
    *_pause -> Fiber::suspend
""") + """
    {main} -> brief
    brief -> Fiber::__construct, Fiber::start#b, Fiber::resume#b, Fiber::getReturn
    Fiber::start#b -> {closure brief}
    Fiber::resume#b -> {closure brief}
    {closure brief} -> brief_pause
    brief_pause -> Fiber::suspend
"""), sides={"left": "left", "right": "right"})

_CLOSURES = Program("closures", "oracle/closures.php", Grammar("""
    {main} -> alpha, beta, gamma
    alpha -> {closure alpha outer}
    {closure alpha outer} -> {closure alpha inner}
    {closure alpha inner} -> alpha_leaf
    beta -> Closure::bind, Holder::{closure beta}
    Holder::{closure beta} -> beta_leaf
    gamma -> Holder::__invoke, gamma_leaf
    Holder::__invoke -> gamma_leaf
"""))

# The guard is destroyed when *_down is left, by return or by exception. By then its frame is off the stack (zend_leave_helper
# in Zend/zend_vm_def.h), so the destructor runs below whoever called that *_down; debug_backtrace() says so, too.
_EXCEPTIONS = Program("exceptions", "oracle/exceptions.php", Grammar(_each(["left", "right"], """
    {main} -> *
    * -> *_down#4, *_guard::__destruct, *_leaf, Exception::getCode
    *_down#4 -> *_down#3, *_guard::__destruct, *_leaf
    *_down#3 -> *_down#2, *_guard::__destruct, *_leaf
    *_down#2 -> *_down#1, *_guard::__destruct, *_leaf
    *_down#1 -> *_down#0, *_guard::__destruct, *_leaf
    *_down#0 -> *_throw, *_leaf
    *_guard::__destruct -> *_leaf
    *_throw -> Exception::__construct
""")), sides={"left": "left", "right": "right"})

_INCLUDES = Program("includes and eval", "oracle/includes.php", Grammar("""
    {main} -> take, evaluate
    take -> include part_red.php, include part_blue.php
    include part_red.php -> {closure red}, leaf
    include part_blue.php -> {closure blue}, leaf
    {closure red} -> leaf
    {closure blue} -> leaf
    evaluate -> eval
    eval -> leaf
"""), sides={"include part_red.php": "red", "include part_blue.php": "blue"})

_METHODS = Program("methods", "oracle/methods.php", Grammar(_each(["North", "East", "South", "West"], """
    {main} -> Base::run#*, *::__callStatic, *::absent
    Base::run#* -> *::step, *::still, *::__call, *::__get, *::missing
    *::step -> *::work
    *::__call -> *::work
    *::__get -> *::work
    *::__callStatic -> *::still
""")), sides={f"{where}::{method}": where for where in ("North", "East", "South", "West")
              for method in ("step", "still", "__call", "__callStatic", "__get", "missing", "absent")})

_REQUESTS = Program("short requests", "", Grammar(_each(["rose", "blue"], """
    {main} -> *_one
    *_one -> *_two
    *_two -> *_end
""")), by_turns=("oracle/request_rose.php", "oracle/request_blue.php"), sides={"rose_one": "rose", "blue_one": "blue"},
    sapis=(FPM,))

ALL = (
    _deep(50), _churning_chain(50, 20), _churning_chain(200, 20), _churning_chain(10, 0), _churning_top(10, 0), _FIB,
    _INTERNALS, _METHODS, _CLOSURES, _GENERATORS, _FIBERS, _EXCEPTIONS, _INCLUDES, _REQUESTS,
)
