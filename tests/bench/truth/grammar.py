# SPDX-License-Identifier: MIT
"""Which stacks a program can have: a table of who may call whom, made from the program by hand.

Every outer part of a legal stack is legal too, since a function was there before it called anything. So one table judges
whole stacks and what was proved of torn ones.
"""

# A frame whose function was gone before its name was read, and which the reader says is that: it could be any.
UNREAD = "<unread>"


class Grammar:
    def __init__(self, table, start="{main}"):
        """`table`: lines `caller -> callee, callee`. A name with `#` and something behind it is the function of that name
        in one particular place: `rec#1 -> rec#2` is two frames of rec, `rec -> rec` any number."""
        self._callees = {}
        for line in filter(None, map(str.strip, table.splitlines())):
            caller, _, callees = line.partition("->")
            places = [place.strip() for place in callees.split(",") if place.strip()]
            self._callees.setdefault(caller.strip(), set()).update(places)
        self._start = start
        unknown = set().union(*self._callees.values()) - set(self._callees)
        self._callees |= {leaf: set() for leaf in unknown}
        self._known = {}

    def legal_depth(self, stack):
        """How many frames of `stack` (outermost first) are legal, counted from the outer end."""
        if not stack or stack[0] not in (self._start, UNREAD):
            return 0
        places = {self._start}
        for depth, name in enumerate(stack[1:], 1):
            callees = {callee for place in places for callee in self._callees[place]}
            places = {callee for callee in callees if name in (callee.partition("#")[0], UNREAD)}
            if not places:
                return depth
        return len(stack)

    def is_legal(self, stack):
        if stack not in self._known:
            self._known[stack] = self.legal_depth(stack) == len(stack)
        return self._known[stack]


def chain(*names):
    """Lines of a table: each calls the next."""
    return "\n".join(f"{caller} -> {callee}" for caller, callee in zip(names, names[1:]))
