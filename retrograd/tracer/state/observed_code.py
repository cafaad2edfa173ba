"""Rewriting code: next to each instruction that reads something, the value is shown to an observer.

No instruction of the user's is dropped, and each keeps its position, so that lines, columns and frames are as they
were. An observer is a constant of the code with a method ``__getitem__``: ``LOAD_CONST observer; SWAP 2;
BINARY_SUBSCR`` shows it the top of the stack, which what it returns replaces. This needs no calling convention, which
differs in each version of CPython. An operator would not give back ``NotImplemented``, as a subscript does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, Protocol

from bytecode import BinaryOp, Bytecode, Instr
from bytecode.instr import CellVar, FreeVar

from .reads import KEY, OF

VERSION = sys.version_info[:2]
SUBSCRIPT = ("BINARY_OP", BinaryOp["SUBSCR"]) if "SUBSCR" in BinaryOp.__members__ else ("BINARY_SUBSCR",)
NAMESAKE = "'"  # behind the name of a variable while code is rewritten
ROOM = 16  # places on the stack for observers and what they are shown, beside copies of a call's arguments
# Instructions whose result comes from code that may not be observed.
RESULTS = frozenset({"FOR_ITER", "GET_AWAITABLE", "SEND"})
# Instructions whose one operand is shown, to which observer.
BEFORE = {
    "MATCH_MAPPING": "whole",
    "MATCH_SEQUENCE": "whole",
    "DICT_UPDATE": "whole",
    "DICT_MERGE": "whole",
    "GET_ITER": "iterated",
    "GET_YIELD_FROM_ITER": "iterated",
    "LIST_EXTEND": "iterated",
    "SET_UPDATE": "iterated",
    "UNPACK_SEQUENCE": "unpacked",
    "UNPACK_EX": "unpacked",
    "UNARY_NEGATIVE": "signed",
    "UNARY_POSITIVE": "signed",
    "UNARY_INVERT": "signed",
    "INTRINSIC_UNARY_POSITIVE": "signed",  # from 3.12 on
    "YIELD_VALUE": "yielded",
    "CONVERT_VALUE": "formatted",
    "FORMAT_SIMPLE": "formatted",
}
OPTIMIZED = 0x1  # the flag of code whose variables are numbered: that of functions
SPECIFIED = 0x4  # the flag of FORMAT_VALUE for a format that lies above the value
JUMPS = ("POP_JUMP", "POP_JUMP_FORWARD", "POP_JUMP_BACKWARD")
TRUTHS = frozenset(
    {f"{jump}_IF_{answer}" for jump in JUMPS for answer in ("TRUE", "FALSE")}
    | {"JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP", "UNARY_NOT", "TO_BOOL"}
)
ANSWERS = frozenset({"COMPARE_OP", "IS_OP", "CONTAINS_OP", "UNARY_NOT", "TO_BOOL"})  # which give a bool


class Shown(Protocol):
    """What the rewritten code shows its values to. Those with a name are made for each instruction."""

    attribute: Any  # is shown (object, value)
    globe: Any  # the value of a global, and whether it is about to be called
    name: Any  # a name in the body of a class, or in ``eval``
    over: Any  # (class, object) of ``super().name``
    inherited: Any  # (super, class, object, value) of it
    compared: Any  # the operands of ``is``; it gives back what takes their places
    equated: Any  # the operands of ``==`` and ``!=``
    ordered: Any  # the operands of ``<`` and its kind
    operated: Any  # the operands of ``+`` and its kind
    augmented: Any  # the operands of ``+=`` and its kind
    formatted: Any  # a value that becomes text
    signed: Any  # a value that gets a sign
    imported: Any  # a module that was imported under a name
    caught: Any  # an exception
    truth: Any  # a value whose truth is asked
    stored_attribute: Any  # (value, object)
    stored_global: Any  # the value
    cell: Any  # (cell, value)
    passed: Any  # (callable, *arguments); it gives back what is called in its place
    item: Any  # (container, key, value)
    own_cell: Any  # a cell of this very frame
    stored_cell: Any  # (value, cell)
    stored_item: Any  # (value, container, key)
    written: Any  # a container of which a part is replaced or deleted
    result: Any  # a value made by code that may not be observed
    parameter: Any  # the value of a parameter
    spread: Any  # the operands of ``f(*args, **kw)``, one after the other
    called: Any  # (callable, arguments[, keywords]) of such a call; it gives back what is called
    iterated: Any  # the operand of an iteration
    unpacked: Any  # the operand of ``a, b = c``
    pattern: Any  # the class of a pattern
    whole: Any  # an operand of which anything may be read
    sliced: Any  # a container of which a slice is made
    yielded: Any  # what a generator gives
    sought: Any  # (key, container) of ``in``


class Rewriting:
    """Makes observed code of code, with these observers; ``rewritten`` gives that of functions inside."""

    def __init__(self, observers: Shown, rewritten: Callable[[CodeType], CodeType]) -> None:
        self._observers, self._rewritten = observers, rewritten
        self._numbered = self._subscripts = False  # whether the code has numbered variables, and evaluates subscripts

    def __call__(self, code: CodeType) -> CodeType:
        """The observed code."""
        b = Bytecode.from_code(_without_namesakes(code), conserve_exception_block_stackdepth=True)
        instructions = list(b)
        self._numbered = bool(code.co_flags & OPTIMIZED)
        self._subscripts = any(isinstance(i, Instr) and _is_subscript(i) for i in instructions)
        del b[:]
        before = Instr("NOP")
        for k, i in enumerate(instructions):
            if isinstance(i, Instr):
                after = instructions[k + 1] if k + 1 < len(instructions) else None
                b.extend([i] if _is_unseen(instructions, k) else self._observed(i, before, after))
                before = i
                if i.name == "RESUME" and i.arg == 0:
                    b.extend(self._parameters(code, next(x for x in instructions[k + 1 :] if isinstance(x, Instr))))
            else:
                b.append(i)
                before = Instr("NOP")  # another instruction may lead here
        # What is shown leaves the stack as it was, so handlers find it as deep as in the code. The package
        # would compute that anew, and is wrong for handlers within handlers: it takes the least of several depths.
        most = 2 * code.co_stacksize + ROOM
        made = b.to_code(stacksize=most, check_pre_and_post=False, compute_exception_stack_depths=False)
        return made.replace(co_freevars=code.co_freevars)

    def _parameters(self, code: CodeType, first: Instr) -> Iterator[Instr]:
        """Show each parameter, whose value may come from a default or from code that is not observed."""
        tell = _Teller(first)
        flags = bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)
        for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + flags]:
            if name.startswith("."):  # the iterator of a comprehension
                continue
            kind: Any = ("DEREF", CellVar(name)) if name in code.co_cellvars else ("FAST", name)
            yield tell.op(f"LOAD_{kind[0]}", kind[1])
            yield from tell(self._observers.parameter)
            yield tell.op(f"STORE_{kind[0]}", kind[1])

    def _observed(self, i: Instr, before: Instr, after: Any) -> list[Instr]:
        """The instruction with what shows its operands and its result."""
        see, tell, name = self._observers, _Teller(i), i.name
        arg: Any = i.arg
        if name in TRUTHS and before.name not in ANSWERS:
            return [*tell(see.truth), i]
        if (shown := BEFORE.get(arg.name if name == "CALL_INTRINSIC_1" else name)) is not None:
            return [*tell(getattr(see, shown)), i]
        if name == "MAKE_CELL" and isinstance(
            arg, FreeVar
        ):  # of a comprehension's variable, with the name of one outside
            return [i, tell.closure(arg), *tell(see.own_cell), tell.op("POP_TOP")]
        if name in RESULTS:
            return [i, *tell(see.result)]
        if name == "IMPORT_NAME":
            return [i, *tell(see.imported(arg))]
        if name == "IMPORT_FROM":
            seen = [tell.op("COPY", 2), tell.op("SWAP", 2), tell.op("BUILD_TUPLE", 2)]
            return [i, *seen, *tell(see.attribute(arg))]
        if name == "WITH_EXCEPT_START":
            return [i, *self._caught(tell, 2)]
        if name == "PUSH_EXC_INFO":
            return [i] if getattr(after, "name", "") == "WITH_EXCEPT_START" else [i, *self._caught(tell, 1)]
        if name in ("FORMAT_VALUE", "FORMAT_WITH_SPEC"):
            return [*tell.below(1 if name == "FORMAT_VALUE" and not arg & SPECIFIED else 2, see.formatted), i]
        if name == "IS_OP":  # in either order
            return [tell.op("BUILD_TUPLE", 2), *tell(see.compared), tell.op("UNPACK_SEQUENCE", 2), i]
        if (operator := _operator(i)) is not None:
            return [*tell.shown(2, getattr(see, operator)), i]
        if name == "MATCH_CLASS":
            return [*tell.below(3, see.whole), *tell.below(2, see.pattern), i]
        if name == "LOAD_CONST" and isinstance(arg, CodeType):
            return [tell.op("LOAD_CONST", self._rewritten(arg))]
        if name.startswith("STORE"):
            return [*self._stored(tell, name, arg), i]
        if name == "DELETE_SUBSCR":
            return [*tell.below(2, see.written), i]
        if name == "KW_NAMES":
            return [*self._passed(tell, after.arg, arg), i]
        if "CALL" in name:
            return self._called(tell, i, before)
        return self._loaded(tell, i, after)

    def _loaded(self, tell: _Teller, i: Instr, after: Any) -> list[Instr]:
        """An instruction that finds a value by a name or a key."""
        see, op, name = self._observers, tell.op, i.name
        arg: Any = i.arg
        if name in ("LOAD_ATTR", "LOAD_METHOD"):
            call, attr = (name == "LOAD_METHOD", arg) if VERSION < (3, 12) else arg
            plain = attr if VERSION < (3, 12) else (False, attr)
            seen = [op("COPY", 1), op("LOAD_ATTR", plain), op("BUILD_TUPLE", 2), *tell(see.attribute(attr))]
            return seen + tell.null_below() if call else seen
        if name == "LOAD_SUPER_ATTR":
            method, two, attr = arg
            copied = [*tell.shown(2, see.over(attr)), *[op("COPY", 3)] * 3]
            seen = [*copied, op(name, (False, two, attr)), op("BUILD_TUPLE", 4), *tell(see.inherited(attr))]
            return seen + tell.null_below() if method else seen
        if name == "LOAD_GLOBAL":
            call, found = arg
            called = call or (isinstance(after, Instr) and after.name == "PUSH_NULL")
            seen = [op(name, (False, found)), *tell(see.globe(found, called))]
            return seen + tell.null_below() if call else seen
        if name in ("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"):
            return [i, *tell(see.name(arg))]
        if name in ("LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"):
            return [
                i,
                tell.closure(arg),
                op("SWAP", 2),
                op("BUILD_TUPLE", 2),
                *tell(see.cell(arg.name.removesuffix(NAMESAKE))),
            ]
        if name == "LOAD_DEREF" and isinstance(arg, CellVar):
            return [i, *tell(see.result)]
        if name == "LOAD_DEREF":
            return [tell.closure(arg), i, op("BUILD_TUPLE", 2), *tell(see.cell(arg.name.removesuffix(NAMESAKE)))]
        if name in ("LOAD_CLOSURE", "LOAD_FAST", "LOAD_FAST_BORROW") and isinstance(arg, CellVar):
            return [i, *tell(see.own_cell)]
        if _is_subscript(i):
            return [*self._held(tell, i), *tell(see.item)]
        if name == "BINARY_SLICE":
            return [*tell.below(3, see.sliced), i, *tell(see.result)]
        return [i]

    def _caught(self, tell: _Teller, place: int) -> list[Instr]:
        """Show the exception at this place from the top; no variable holds a subscript any more."""
        gone = [(tell.op("LOAD_CONST", None), tell.op("STORE_FAST", v), tell.op("DELETE_FAST", v)) for v in (OF, KEY)]
        holds = self._numbered and self._subscripts
        return [*tell.below(place, self._observers.caught), *(i for group in gone if holds for i in group)]

    def _held(self, tell: _Teller, i: Instr) -> list[Instr]:
        """A subscript, and (value, container, key). Until there is a value, variables hold what a handler may ask for.

        The code of a class or a module has no such variables.
        """
        op = tell.op
        if not self._numbered:
            return [op("COPY", 2), op("COPY", 2), i, op("SWAP", 3), op("SWAP", 2), op("BUILD_TUPLE", 3)]
        loads = [op("LOAD_FAST", OF), op("LOAD_FAST", KEY)]
        ends = [op("BUILD_TUPLE", 3), op("DELETE_FAST", OF), op("DELETE_FAST", KEY)]
        return [op("STORE_FAST", KEY), op("STORE_FAST", OF), *loads, i, *loads, *ends]

    def _stored(self, tell: _Teller, name: str, arg: Any) -> list[Instr]:
        """Show what is stored, and where."""
        see = self._observers
        if name == "STORE_ATTR":
            return tell.shown(2, see.stored_attribute(arg))
        if name == "STORE_SUBSCR":
            return tell.shown(3, see.stored_item)
        if name == "STORE_SLICE":  # of [values, container, start, stop]
            made = [*[tell.op("COPY", 2)] * 2, tell.op("BUILD_SLICE", 2)]
            copied = [*[tell.op("COPY", 5)] * 2, tell.op("COPY", 3), tell.op("BUILD_TUPLE", 3)]
            return [*made, *copied, *tell(see.stored_item), *[tell.op("POP_TOP")] * 2]
        if name == "STORE_GLOBAL":
            return tell(see.stored_global(arg))
        if name == "STORE_DEREF" and isinstance(arg, FreeVar):
            copied = [tell.op("COPY", 1), tell.closure(arg), tell.op("BUILD_TUPLE", 2)]
            return [*copied, *tell(see.stored_cell), tell.op("POP_TOP")]
        return []

    def _called(self, tell: _Teller, i: Instr, before: Instr) -> list[Instr]:
        """Show a callable with its arguments, and the result. In 3.11 the arguments are shown before PRECALL.

        Between KW_NAMES and the call, the names would be taken for those of a call that an observer makes.
        """
        result = tell(self._observers.result)
        arg: Any = i.arg
        names: Any = before.arg if i.name == "CALL_KW" else ()
        if i.name == "PRECALL" and before.name != "KW_NAMES":
            return [*self._passed(tell, arg, names), i]
        if i.name in ("CALL", "CALL_KW"):
            told = VERSION < (3, 12) or before.name == "KW_NAMES"
            return [*([] if told else self._passed(tell, arg, names)), i, *result]
        if i.name == "CALL_FUNCTION_EX":
            return [*self._spread(tell, *spread_form(VERSION, arg, before.name)), i, *result]
        return [i]

    def _passed(self, tell: _Teller, count: int, names: tuple[str, ...]) -> list[Instr]:
        """Show the callable and the arguments, and call what is given back.

        One of the two places below the arguments is empty, and is skipped: no instruction here loads a method. In 3.11
        and 3.12 these are [NULL, callable], later [callable, NULL]; with CALL_KW, the names of keywords lie on top of
        the arguments.
        """
        extra = 1 if names else 0
        if VERSION < (3, 13):
            place, copies = count + 1, [tell.op("COPY", count + 1)] * (count + 1)
        else:
            place = count + 2 + extra
            copies = [tell.op("COPY", place), *[tell.op("COPY", place - 1)] * count]
        shown = tell(self._observers.passed(names))
        return [*copies, tell.op("BUILD_TUPLE", count + 1), *shown, tell.op("SWAP", place + 1), tell.op("POP_TOP")]

    def _spread(self, tell: _Teller, keywords: bool, null: bool) -> list[Instr]:
        """Show, and replace, the arguments and the keywords; then show the callable, which may be replaced."""
        op, count = tell.op, 2 if keywords else 1
        replaced = tell(self._observers.spread)
        if keywords or null:  # the arguments lie below
            replaced = [op("SWAP", 2), *replaced, op("SWAP", 2), *(replaced if keywords else [])]
        deep = count + 2 if VERSION >= (3, 13) else count + 1  # 3.13 has a place for self above the callable
        copies = [op("COPY", deep + null), *[op("COPY", count + 1 + null)] * count]
        shown = [*tell(self._observers.called), op("SWAP", deep + null + 1), op("POP_TOP")]
        return [*replaced, *copies, op("BUILD_TUPLE", count + 1), *shown]


def _without_namesakes(code: CodeType) -> CodeType:
    """The code with other names for variables of outer functions that have the name of one of its own.

    A comprehension within it may have such a one from 3.12 on. The package takes the two for one.
    """
    free = tuple(name + NAMESAKE * (name in code.co_varnames) for name in code.co_freevars)
    return code if free == code.co_freevars else code.replace(co_freevars=free)


def _is_subscript(i: Instr) -> bool:
    return i.name == "BINARY_SUBSCR" or (i.name == "BINARY_OP" and getattr(i.arg, "name", "") == "SUBSCR")


def _operator(i: Instr) -> str | None:
    """Who is shown the two operands of an operator."""
    which: str = getattr(i.arg, "name", "")
    if i.name == "CONTAINS_OP":
        return "sought"
    if i.name == "COMPARE_OP":
        return "equated" if which.startswith(("EQ", "NE")) else "ordered"
    if i.name != "BINARY_OP" or _is_subscript(i):
        return None
    return "augmented" if which.startswith("INPLACE") else "operated"


def spread_form(version: tuple[int, int], arg: Any, before: str) -> tuple[bool, bool]:
    """Whether CALL_FUNCTION_EX finds keywords on top of the arguments, and whether NULL stands there in their place.

    Its argument says so up to 3.13. From 3.14 on it has none: NULL, which the instruction before it pushes, means none.
    """
    if version < (3, 14):
        return bool(arg & 1), False
    return before != "PUSH_NULL", before == "PUSH_NULL"


def _is_unseen(instructions: list[Any], k: int) -> bool:
    """Whether an instruction is a call that is not shown: of a comprehension, which is observed, or of ``__exit__``.

    An interrupt between the block of a ``with`` and its ``__exit__`` would leave the context open.
    """
    name = instructions[k].name
    if name not in ("PRECALL", "CALL"):
        return False
    first = k - 1 if name == "CALL" and getattr(instructions[k - 1], "name", "") == "PRECALL" else k
    given = [(getattr(i, "name", ""), getattr(i, "arg", 0)) for i in instructions[max(first - 4, 0) : first]]
    return any(name == "GET_ITER" for name, _ in given[-1:]) or is_exit(VERSION, given, instructions[k].arg)


def is_exit(version: tuple[int, int], given: list[tuple[str, Any]], count: int) -> bool:
    """Whether a call of ``count`` arguments, after these four instructions, is that of ``__exit__`` with no error.

    Up to 3.13 it passes the first None in the place of self. From 3.14 on it looks like ``f(None, None, None)``, but
    for what comes before: a call of the user's has pushed its callable there.
    """
    if given[-3:] != [("LOAD_CONST", None)] * 3:
        return False
    if version < (3, 14):
        return count == 2
    pushed = any(
        name == "PUSH_NULL" or (name in ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_SUPER_ATTR") and arg[0])
        for name, arg in given[:-3]
    )
    return count == 3 and not pushed


class _Teller:
    """Makes instructions at the position of one of the user's."""

    def __init__(self, at: Instr) -> None:
        self._location = at.location

    def op(self, name: str, *arg: Any) -> Instr:
        return Instr(name, *arg, location=self._location)

    def __call__(self, observer: Any) -> list[Instr]:
        """Show the top of the stack, and put what the observer returns in its place."""
        return [self.op("LOAD_CONST", observer), self.op("SWAP", 2), self.op(*SUBSCRIPT)]

    def shown(self, count: int, observer: Any) -> list[Instr]:
        """Show the uppermost values, which stay."""
        return [*[self.op("COPY", count)] * count, self.op("BUILD_TUPLE", count), *self(observer), self.op("POP_TOP")]

    def below(self, place: int, observer: Any) -> list[Instr]:
        """Show the value at this place from the top, which stays."""
        return [self.op("COPY", place), *self(observer), self.op("POP_TOP")]

    def null_below(self) -> list[Instr]:
        """What a call wants beside the callable on top of the stack."""
        return [self.op("PUSH_NULL")] if VERSION >= (3, 13) else [self.op("PUSH_NULL"), self.op("SWAP", 2)]

    def closure(self, variable: CellVar | FreeVar) -> Instr:
        """Load the cell of a variable."""
        return self.op("LOAD_CLOSURE" if VERSION < (3, 13) else "LOAD_FAST", variable)
