"""The parts of an exported module besides its function: source of the package, arrays, classes, a target's code."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any

import numpy as np

from ..compiler.executable import Executable
from ..ir.target import Module
from ..ir.texts import literal
from . import standalone
from .frozen import Frozen
from .layouts_kept import kept_strides
from .trees_as_data import NUMBERS, TreeForm

MARK = "  # "  # before comments at the ends of lines, which are for the package's own linters
LITERAL = 64  # elements up to which an array stands in the module; larger ones lie beside it
ALWAYS = ("leaves_of", "sampled", "difference", "self_test")
NEEDS = {  # what else a function of the package needs to stand in a module
    "miss": ("OtherWayError",),
    "throw": ("ThrownPayload",),
    "stored": ("digest_of_arrays",),
    "laid": ("span_of",),
}
RESERVED = frozenset(  # names of a module
    {"Any", "NDArray", "NamedTuple", "Path", "RECORD", "ast", "dataclass", "hashlib", "np", "sys"}
    | {"ArgumentError", "OtherWayError", "ThrownPayload", "_EXPECTED", "_arrays", "_example"}
    | {f"_{name}" for name, x in vars(standalone).items() if isinstance(x, FunctionType)}
)
DONE_HERE = ("miss", "throw", "unsolved")  # functions of generated code that modules have in a form of their own


@dataclass
class Code:
    """What a target writes: imports, text, the name of its function, and the kinds of functions that it calls.

    ``run`` has the bits that the text must have. ``beside`` is C for a file beside the module, which computes the
    functions ``built`` where it is compiled with ``build``; what is compiled contains the ``digest``.
    """

    imports: list[str]
    text: str
    function: str
    names: set[str]  # that the text defines
    calls: list[str]  # of ``DONE_HERE``
    run: Callable[..., Any]
    beside: str = ""
    built: tuple[str, ...] = ()
    build: str = ""  # with {stem} for the name of the file
    digest: str = ""


@dataclass
class ModuleParts:
    """The parts of a module that grow while others are written."""

    stem: str
    used: dict[str, None] = field(default_factory=dict)  # what stands in the module word for word
    arrays: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    classes: dict[str, TreeForm] = field(default_factory=dict)

    def use(self, name: str) -> str:
        """The name of a function that stands in the module from now on."""
        self.used[name] = None
        return f"_{name}"

    def array(self, x: Any, name: str) -> str:
        """Source of an array or number: a literal, or one of the arrays beside the module."""
        if not isinstance(x, np.ndarray):
            return literal(x) if type(x) in NUMBERS else f"{literal(x.dtype)}({literal(x.item())})"
        strides = kept_strides(x)
        known = np.ascontiguousarray(x).reshape(x.shape)
        if x.size <= LITERAL and not (x.dtype.kind in "fc" and np.isnan(x).any()):
            text = f"np.array({_listed(known)}, {literal(x.dtype)})"
            text += f".reshape({x.shape})" if x.ndim != 1 or not x.size else ""
        else:
            self.arrays[name] = known
            text = f'_arrays["{name}"]'
        return text if strides is None else f"{self.use('laid')}({text}, {strides})"


def _listed(x: np.ndarray[Any, Any]) -> str:
    return f"[{', '.join(literal(v) for v in x.reshape(-1).tolist())}]"


def _of_numpy(frozen: Frozen) -> Code:
    """The statements of the NumPy target."""
    executable = Executable(replace(frozen.final, name="_computed"), ordered=frozen.ordered)
    return code_of(executable.module, executable.function)


def code_of(module: Module, run: Callable[..., Any]) -> Code:
    """The parts of a module of NumPy statements."""
    tree = ast.parse(module.source)
    lines = module.source.splitlines()
    imports, kept, calls = [], [], []
    for k, part in enumerate(tree.body):
        end = tree.body[k + 1].lineno - 1 if k + 1 < len(tree.body) else len(lines)
        text = "\n".join(lines[part.lineno - 1 : end]).rstrip()
        if isinstance(part, ast.Import | ast.ImportFrom):
            imports.append(text)
        elif isinstance(part, ast.FunctionDef) and part.name in DONE_HERE:
            calls.append(part.name)
        elif not isinstance(part, ast.Expr):
            kept.append(text)
    names = {part.name for part in tree.body if isinstance(part, ast.FunctionDef)}
    return Code(imports, "\n\n\n".join(kept), module.function, names, calls, run)


# By the name of a target: what writes its part of a module.
CODE: dict[str, Callable[[Frozen], Code]] = {"numpy": _of_numpy}


def closed(parts: ModuleParts) -> list[str]:
    """The names of all that stands in a module word for word."""
    found: dict[str, None] = {}
    for name in parts.used:
        if name.startswith("checked_"):
            found["ArgumentError"] = None
        found.update(dict.fromkeys((*NEEDS.get(name, ()), name)))
    return list(found)


def word_for_word(parts: ModuleParts) -> list[str]:
    """The sources of functions and classes of the package, under private names."""
    names = closed(parts)
    functions = [name for name in names if isinstance(vars(standalone)[name], FunctionType)]
    texts = []
    for name in names:
        text = inspect.getsource(vars(standalone)[name]).rstrip()
        for other in functions:
            if other not in DONE_HERE:
                text = _renamed(text, other)
        texts.append("\n".join(line.partition(MARK)[0] for line in text.splitlines()))
    return texts


def _renamed(text: str, name: str) -> str:
    return re.sub(rf"\b{name}\b(?=\()", f"_{name}", text)


def class_texts(parts: ModuleParts) -> list[str]:
    """The classes of namedtuples and dataclasses, with the fields that they had."""
    texts = []
    for name, form in parts.classes.items():
        fields = "".join(f"    {field}: Any\n" for field in form.keys) or "    pass\n"
        head = f"class {name}(NamedTuple):" if form.kind == "namedtuple" else f"@dataclass\nclass {name}:"
        texts.append(f'{head}\n    """Of the arguments or results."""\n\n{fields}'.rstrip())
    return texts
