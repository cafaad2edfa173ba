"""Calls that cannot be traced: the function that the user's line calls, and an alternative."""

from __future__ import annotations

import ast
import builtins
import dis
import linecache
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, NamedTuple, cast

from numpy import ndarray  # by name: in a trace, np.ndarray goes through interception

from ..errors import RetrogradError, TracerConversionError
from ..where import Where, is_foreign
from . import interception
from .array import Tracer
from .foreign import ADVISERS, Adviser
from .held import Held
from .trace import CURRENT

STORE = "return the value from the traced function, and store the result of the call"
DRAW = "draw numbers without parameters, and shift and scale those: loc + scale * rng.normal(size=n)"
OTHER_ARRAYS = (
    "convert its arrays by np.asarray before, and the result of the traced function behind; "
    "a function of that library can be called through rg.lens"
)
TABLES = "take the columns out as arrays before, with to_numpy(), and pass those"
MODULO = "write x**n % modulus, or multiply step by step where the power is too large"
SHOW = "return the value, and draw the result"

# remedies by the beginning of a function's full name; the longest match counts
ALTERNATIVES: dict[str, str] = {
    "array": "make an array with np.array",
    "builtins.bytearray": STORE,
    "builtins.bytes": STORE,
    "builtins.int.from_bytes": STORE,
    "builtins.memoryview": STORE,
    "builtins.pow": MODULO,
    "cmath": "use the NumPy function of the same name, which takes complex numbers",
    "copyreg": STORE,
    "csv": STORE,
    "ctypes": "call the C function through rg.lens, with its derivative",
    "cupy": OTHER_ARRAYS,
    "datetime": "compute with plain numbers outside, and pass seconds or days as arrays",
    "decimal": "compute in floating point: exact decimals have no derivatives here",
    "fractions": "compute in floating point: exact fractions have no derivatives here",
    "hashlib": STORE,
    "io": STORE,
    "jax": OTHER_ARRAYS,
    "json": STORE,
    "marshal": STORE,
    "matplotlib": SHOW,
    "numba": "trace the plain Python function: compiled.py_func(x)",
    "numpy.genfromtxt": "read the file outside, and pass the array",
    "numpy.loadtxt": "read the file outside, and pass the array",
    "numpy.ma": "keep values and mask as two arrays: np.where(mask, 0, x), and divide by the number of those kept",
    "numpy.matrix": "use an array of two axes, and @ for products",
    "numpy.memmap": STORE,
    "numpy.ndarray": "call the NumPy function, which takes traced values, in place of the method: np.dot(a, x)",
    "numpy.random": DRAW,
    **{f"numpy.save{kind}": STORE for kind in ("", "txt", "z", "z_compressed")},
    "pandas": TABLES,
    "pickle": STORE,
    "polars": TABLES,
    "random": DRAW,
    **{f"scipy.linalg.{name}": f"use np.linalg.{name}" for name in ("eig", "eigvals", "lstsq")},
    "scipy.integrate.quad": "use trapezoid or simpson of scipy.integrate on fixed points, or a rule of quadrature",
    "scipy.optimize": "write rg.scipy.minimize or rg.scipy.root, or call it outside, on the gradient: "
    "scipy.optimize.minimize(rg.value_and_grad(f), x, jac=True)",
    "scipy.optimize.approx_fprime": "write rg.grad(f), which needs no differences",
    "scipy.optimize.brentq": "write rg.scipy.brentq, whose solution has derivatives",
    "scipy.optimize.check_grad": "write rg.check_grads(f, args) outside",
    "scipy.optimize.rosen": "write its formula with NumPy in a function of your own, which is traced",
    "shelve": STORE,
    "sklearn": "fit and predict outside; write the model's formula with NumPy inside",
    "statistics": "use np.mean, np.median, np.var and similar functions",
    "struct": STORE,
    "sympy": "make a NumPy function with sympy.lambdify outside, and call that",
    "tensorflow": OTHER_ARRAYS,
    "time": STORE,
    "torch": OTHER_ARRAYS,
    "xarray": TABLES,
    "yaml": STORE,
}


# types that a traced value passes for, and what is said of objects of no known type
TYPES = re.compile(r"\b(Tracer|ndarray|numpy|float\d*|int\d*|complex\d*|unmarshallable|buffer API)\b")

ARRAY_OF_OBJECT = "__array__ method not producing an array"
OF_PYTHON = ("builtins", __name__.partition(".")[0])
WANTED = re.compile(r"\b(expected|must be|should be)\b")
OF_NUMBERS = re.compile(
    r"\b(array|ndarray|buffer|bytes-like|complex|float|index|int|integer|iterable|number|numeric|real|sequence)\b(?!\()"
)
PLAIN_TOO = re.compile(  # said of plain values as well: no text, no length, no instance of dict
    r"\bexpected str(ing)?\b|has no len\(\)|is not (callable|iterable|subscriptable)"
    r"|^descriptor '\w+' (for|requires an?) '(?!(float|complex|int|object|numpy\.\w+)')"
)
NO_NUMBER = re.compile(  # said of arrays as well, but not of numbers
    r"^descriptor '\w+' (for|requires an?) '(float|complex|int)'"
    r"|^conversion from \w+ to Decimal|numerator/denominator|timedelta \w+ component|supported seed types"
)
OF_PLAIN = re.compile(rf"{ARRAY_OF_OBJECT}|^descriptor '.*\bTracer\b|bytes-like object")
NOT_AN_ARRAY = re.compile(rf"\bTracer\b|{ARRAY_OF_OBJECT}")  # complaints about a traced value


class Called(NamedTuple):
    """The function that a line calls: as it is written there, its full name, and whether an argument is traced."""

    text: str
    name: str
    traced: bool


def alternative(name: str) -> str | None:
    """The remedy for a call of the function with this full name, if one is known; ``_io.open`` is that of ``io``."""
    parts = name.lstrip("_").split(".")
    for k in range(len(parts), 0, -1):
        found = ALTERNATIVES.get(".".join(parts[:k]))
        if found is not None:
            return found
    if parts[0] != "scipy":
        return None
    if _has_substitute(parts):
        return f"call it by its full name, as in scipy.special.softmax(x), or import {parts[-1]} from retrograd.scipy"
    return "write it with NumPy, or call it through rg.lens, with its derivative"


def _has_substitute(parts: Sequence[str]) -> bool:
    """Whether a function of SciPy has a substitute, which another function of this name, such as NumPy's, may have."""
    loaded = _loaded(interception.PROVIDERS)
    return any(parts[-1] in of(module) for of, module in loaded if module.__name__.split(".")[:2] == parts[:2])


def _loaded(table: Mapping[str, Sequence[Any]]) -> list[tuple[Any, ModuleType]]:
    """The providers for all loaded modules, each with its module."""
    return [(provider, sys.modules[m]) for m, providers in table.items() if m in sys.modules for provider in providers]


def refusal(what: str, remedy: str) -> TracerConversionError:
    """The error for a traced value in foreign code; ``what`` and ``remedy`` count if the line calls nothing known.

    Of a user's line that calls a library, and of the lines in it that call others, the first counts that is known.
    """
    frames = list(_recorded(sys._getframe(1)))
    users = [frame for frame in frames if not is_foreign(frame)]
    if not users:
        return _of_library(frames, what, remedy)
    own = next((k for k, frame in enumerate(users) if not _is_installed(frame)), 0)
    for frame in users[own:0:-1]:
        called = _called(frame, frame.f_lasti)
        instead = called and alternative(called.name)
        if called and instead:
            where = Where(users[own].f_code.co_filename, users[own].f_lineno)
            by = "" if frame is users[own] else f", called in {frame.f_globals.get('__name__')},"
            what = f"{called.text}{by} got a traced value, but needs a plain one"
            return TracerConversionError(what, where=where, remedy=instead)
    return _refusal(users[0], what, remedy)


def _recorded(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames from this one to the one that records the trace, innermost first."""
    trace = CURRENT.get()
    while frame is not None and (trace is None or id(frame) != trace.frame):
        yield frame
        frame = frame.f_back


def _of_library(frames: Sequence[FrameType], what: str, remedy: str) -> TracerConversionError:
    """The error if the traced function is a library's own, such as ``rg.grad(scipy.optimize.rosen)``."""
    found = [f for f in frames if f.f_globals.get("__name__", "").partition(".")[0] != __name__.partition(".")[0]]
    if not found:
        return TracerConversionError(what, remedy=remedy)
    parts = f"{found[-1].f_globals['__name__']}.{found[-1].f_code.co_qualname}".split(".")
    name = ".".join(part for part in parts if not part.startswith("_"))
    instead = alternative(name) or "write it with NumPy in a function of your own, which is traced"
    return TracerConversionError(f"{name} got a traced value, but needs a plain one", remedy=instead)


def translated(fault: Exception) -> TracerConversionError | None:
    """The error to raise for a library's complaint about a type; None if the complaint is not about a traced value."""
    step = _users_step(fault.__traceback__)
    if step is None or isinstance(fault, Warning) or type(fault).__module__.partition(".")[0] == "jax":
        return None
    if _source(step.tb_frame.f_code, step.tb_lasti, step.tb_frame.f_globals).startswith("raise"):
        return None  # the user's own error
    called = _called(step.tb_frame, step.tb_lasti)
    instead = called and alternative(called.name)
    ours = NOT_AN_ARRAY.search(_said(fault)) and not isinstance(fault, AttributeError)
    if isinstance(fault, AttributeError) and _lacks_plain(fault):
        ours, instead = True, "use the NumPy function of the same purpose, or return the value"
    elif not instead and step.tb_next is not None:
        instead = alternative(step.tb_next.tb_frame.f_globals.get("__name__", ""))
    # a number may belong to an array from outside; an array is one for that code, too, so its complaint is right
    traced = (called is not None and called.traced) or any(map(_is_number, _variables(step.tb_next)))
    if not ours and not (instead and traced and TYPES.search(_said(fault))):
        return None
    name = called.text if called else "this operation"
    said = " ".join(_said(fault).split())
    found = TracerConversionError(
        f"{name} cannot take a traced value ({said})",
        where=Where(step.tb_frame.f_code.co_filename, step.tb_lineno),
        remedy=instead or "use the NumPy function of the same purpose, or return the value",
    )
    found.__cause__ = fault
    return found


def complaint(fault: BaseException) -> None:
    """Make a refusal of a library's complaint about a traced value, which the user's code catches.

    Plain Python has the complaint, too, if it names an array as such, comes from an operator or a builtin function,
    wants something else than numbers, such as a path, or is about a number where an array was given.
    """
    if isinstance(fault, AttributeError) and _lacks_plain(fault):
        translated(fault)
        return
    said = "" if isinstance(fault, RetrogradError) else _said(fault)
    if PLAIN_TOO.search(said) or (WANTED.search(said) and not OF_NUMBERS.search(said)):
        return
    if not NOT_AN_ARRAY.search(said) and ("ndarray" in said or not TYPES.search(said)):
        return
    step = _users_step(fault.__traceback__)
    if (no_number := NO_NUMBER.search(said)) and step and _gets_arrays(step):
        return
    called = step and _called(step.tb_frame, step.tb_lasti)
    known = called and (alternative(called.name) or called.name.partition(".")[0] not in OF_PYTHON)
    if known or (step and _unnamed(step, called, said)) or no_number or OF_PLAIN.search(said):
        translated(cast(Exception, fault))


def _gets_arrays(step: TracebackType) -> bool:
    """Whether a call by position, or the code that it ran, is seen to get a traced array, and no traced number."""
    tree = _expression(step.tb_frame, step.tb_lasti)
    scope = {**step.tb_frame.f_globals, **step.tb_frame.f_locals}
    names = [node.id for node in tree.args if isinstance(node, ast.Name)] if isinstance(tree, ast.Call) else []
    values = [*map(scope.get, names), *_variables(step.tb_next)]
    return any(type(x) is Tracer for x in values) and not any(map(_is_number, values))


def _unnamed(step: TracebackType, called: Called | None, said: str) -> bool:
    """Whether a complaint is of a function without a name in the source: of a table, by ``map``, or without source."""
    if step.tb_next is not None:
        return called is None or called.name.partition(".")[0] in OF_PYTHON
    calls = dis.opname[step.tb_frame.f_code.co_code[step.tb_lasti]].startswith("CALL")
    return called is None and calls and not said.startswith("'Tracer' object")


def _lacks_plain(fault: AttributeError) -> bool:
    """Whether a traced value lacks an attribute that the plain value has, such as ``__array_interface__``."""
    return type(fault.obj) is Tracer and any(fault.name in vars(c) for c in type(fault.obj.shadow).__mro__)


def _variables(step: TracebackType | None) -> Iterator[Any]:
    """The values of the variables of the code that was called, and of what this called."""
    while step is not None:
        yield from step.tb_frame.f_locals.values()
        step = step.tb_next


def _said(fault: BaseException) -> str:
    """The text of an exception, which may be the user's own and raise."""
    try:
        return str(fault) if isinstance(fault, Exception) else ""
    except Exception:  # noqa: BLE001 - the text of an object may raise anything
        return ""


def _is_number(x: Any) -> bool:
    return issubclass(type(x), Held) and not isinstance(x.shadow, ndarray)


def _users_step(traceback: TracebackType | None) -> TracebackType | None:
    """The innermost step of a traceback in the user's code, or in a library's if there is none."""
    steps = []
    while traceback is not None:
        if not is_foreign(traceback.tb_frame):
            steps.append(traceback)
        traceback = traceback.tb_next
    own = [s for s in steps if not _is_installed(s.tb_frame)]
    return next(reversed(own or steps), None)


def _is_installed(frame: FrameType) -> bool:
    """Whether a frame runs code of an installed package; compiled code is known by the file of its module."""
    return any("site-packages" in str(file) for file in (frame.f_code.co_filename, frame.f_globals.get("__file__")))


def _refusal(frame: FrameType, what: str, remedy: str) -> TracerConversionError:
    called = _called(frame, frame.f_lasti)
    if called is not None:
        instead = alternative(called.name)
        if instead is not None:
            what, remedy = f"{called.text} got a traced value, but needs a plain one", instead
    elif isinstance(tree := _expression(frame, frame.f_lasti), ast.BinOp) and isinstance(tree.op, ast.Mod):
        remedy = 'to write digits as in "%.3f" % x, use f"{x:.3f}" or "{:.3f}".format(x); else use np.mod'
    return TracerConversionError(what, where=Where(frame.f_code.co_filename, frame.f_lineno), remedy=remedy)


def _called(frame: FrameType, instruction: int) -> Called | None:
    """The function called at an instruction; None if the instruction is no call or the function has no name."""
    tree = _expression(frame, instruction)
    if not isinstance(tree, ast.Call):
        return None
    names = _dotted(tree.func)
    full = names and _full_name(names, frame)
    if not names or not full:
        return None
    used = {node.id for part in (*tree.args, *tree.keywords) for node in ast.walk(part) if isinstance(node, ast.Name)}
    scope = {**frame.f_globals, **frame.f_locals}
    return Called(".".join(names), full, any(_holds_traced(scope.get(name)) for name in used))


def _expression(frame: FrameType, instruction: int) -> ast.expr | None:
    """The expression that an instruction computes; None where that cannot be told."""
    source = _source(frame.f_code, instruction, frame.f_globals)
    try:
        return ast.parse(f"({source})", mode="eval").body
    except SyntaxError:
        return None


def _holds_traced(value: Any) -> bool:
    kind = type(value)
    if issubclass(kind, (list, tuple)):
        return any(map(_holds_traced, value))
    if issubclass(kind, dict):
        return any(map(_holds_traced, value.values()))
    return kind is Tracer


def _source(code: CodeType, instruction: int, names: Mapping[str, Any]) -> str:
    """The text of the expression that an instruction belongs to."""
    line, last, start, end = list(code.co_positions())[instruction // 2]
    lines = linecache.getlines(code.co_filename, dict(names))
    if line is None or last is None or start is None or end is None or last > len(lines):
        return ""
    text = [part.encode() for part in lines[line - 1 : last]]
    text[-1] = text[-1][:end]  # cut the end first: both ends may be in one line
    text[0] = text[0][start:]
    return b"".join(text).decode(errors="replace")


def _dotted(node: ast.expr) -> list[str]:
    """The parts of ``a.b.c``; of ``a.b(...).c`` and ``a.b(...)`` those of ``a.b``."""
    names: list[str] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            names, node = [], node.func
        else:
            return []
    return [node.id, *names]


def _full_name(names: list[str], frame: FrameType) -> str | None:
    """The full name of a function, with its module; finding it runs no code of the user's."""
    scopes = (frame.f_locals, frame.f_globals, vars(builtins))
    found = next((scope[names[0]] for scope in scopes if names[0] in scope), None)
    owner: Any = None
    for name in names[1:]:
        owner = found
        found = vars(owner).get(name) if isinstance(owner, ModuleType) else getattr(type(owner), name, None)
    if isinstance(owner, ModuleType):
        return f"{owner.__name__}.{names[-1]}"
    if owner is not None:
        cls = owner if isinstance(owner, type) else type(owner)
        return f"{cls.__module__}.{cls.__qualname__}.{names[-1]}"
    module = getattr(found, "__module__", None) or type(found).__module__
    return f"{module}.{getattr(found, '__qualname__', names[0])}"


def loops_around(frame: FrameType | None, last: int) -> list[Where]:
    """The lines of the user's loops in which a frame and its callers are, the innermost last; ``last`` is an id."""
    found: list[Where] = []
    while frame is not None and id(frame) != last:
        if not is_foreign(frame):
            found += sorted(_loops(frame), reverse=True)
        frame = frame.f_back
    return found[::-1]


def _loops(frame: FrameType) -> Iterator[Where]:
    """The loops around the present instruction of a frame: a jump back spans one."""
    code = {i.offset: i for i in dis.get_instructions(frame.f_code)}
    for jump in code.values():
        if "JUMP_BACKWARD" in jump.opname and jump.argval <= frame.f_lasti <= jump.offset:
            head = code[jump.argval] if code[jump.argval].opname == "FOR_ITER" else jump
            line = head.positions.lineno if head.positions is not None else None
            yield Where(frame.f_code.co_filename, line or frame.f_lineno)


ADVISERS.append(Adviser(refusal, alternative, translated, loops_around))
