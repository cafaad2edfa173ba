"""Trees of arguments and results as data: as JSON in saved functions, and as source in exported modules."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from ..errors import SavedFileError, UnsupportedError
from ..tracer.tree import Besides

DEEPEST = 60  # levels of containers
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _.,:;!?-+*/()[]=<>@%|'")
NUMBERS = (bool, int, float, complex, str, bytes)  # types of static values
CALLED = "call it inside, and return what it gives: rg.jit(lambda x, ct: rg.vjp(f, x)[1](ct))"
CONTAINERS = "use tuples, lists, dicts, namedtuples and dataclasses of arrays and numbers, and capture everything else"
MEMBERS = {"tuple": 0, "list": 0, "dict": 1, "namedtuple": 1, "dataclass": 1}  # kinds of containers; 1 if with keys


class Place:
    """Stands for the k-th traced value in a tree."""

    def __init__(self, k: int) -> None:
        self.k = k


@dataclass(frozen=True)
class TreeForm:
    """One level of a tree.

    A ``leaf`` has its number as ``value``, a ``static`` leaf what it is; ``any`` is an argument that nothing reads.
    Containers have ``parts``; dicts have ``keys``, and classes their module and name as ``value`` and their fields as
    ``keys``.
    """

    kind: str
    value: Any = None
    keys: tuple[Any, ...] = ()
    parts: tuple[TreeForm, ...] = ()

    def leaves(self) -> Iterator[int]:
        """The numbers of the traced leaves, from left to right."""
        if self.kind == "leaf":
            yield self.value
        for part in self.parts:
            yield from part.leaves()

    def to_json(self) -> list[Any]:
        """The form as lists, numbers and texts."""
        if self.kind == "static":
            return ["static", _static_as_text(self.value)]
        keys = [_static_as_text(k) for k in self.keys]
        return [self.kind, self.value, keys, [part.to_json() for part in self.parts]]

    def build(self, leaf: Callable[[TreeForm], Any], class_of: Callable[[TreeForm], Any]) -> Any:
        """The tree with what ``leaf`` makes of each leaf; ``class_of`` finds the class of a namedtuple or dataclass."""
        if self.kind == "none":
            return None
        if self.kind in ("leaf", "static", "any"):
            return leaf(self)
        parts = [part.build(leaf, class_of) for part in self.parts]
        if self.kind == "dict":
            return dict(zip(self.keys, parts, strict=True))
        if self.kind == "namedtuple":
            return class_of(self)._make(parts)
        if self.kind == "dataclass":
            made = object.__new__(class_of(self))
            for name, part in zip(self.keys, parts, strict=True):
                object.__setattr__(made, name, part)
            return made
        return tuple(parts) if self.kind == "tuple" else parts


def form_of_tree(
    tree: Any, orders: Iterable[tuple[Any, ...]], what: str, unread: Callable[[Any], bool] = lambda _: False
) -> TreeForm:
    """The form of a tree with a ``Place`` for each traced leaf; UnsupportedError for what data cannot express.

    ``orders`` are the keys of its dicts in their right order, as ``key_orders`` gives them; ``what`` names the tree.
    """
    rest = (keys for keys in orders if not isinstance(keys, Besides))

    def form(x: Any) -> TreeForm:
        if isinstance(x, Place):
            return TreeForm("leaf", x.k)
        if unread(x):
            return TreeForm("any")
        cls = type(x)
        if x is None or cls in NUMBERS:
            return TreeForm("none") if x is None else TreeForm("static", x)
        if cls in (tuple, list):
            return TreeForm(cls.__name__, parts=tuple(map(form, x)))
        if cls is dict and all(type(k) in NUMBERS for k in x):
            keys = next(rest)
            return TreeForm("dict", None, keys, tuple(form(x[k]) for k in keys))
        fields = _fields(cls)
        if fields is None:
            raise UnsupportedError(
                f"{what} holds {named(cls)}, which cannot be stored in a file",
                remedy=CALLED if cls is FunctionType and "result" in what else CONTAINERS,
            )
        kind = "namedtuple" if issubclass(cls, tuple) else "dataclass"
        parts = tuple(form(getattr(x, k)) for k in fields)
        return TreeForm(kind, f"{cls.__module__}:{cls.__qualname__}", fields, parts)

    return form(tree)


def named(cls: type) -> str:
    """A class in words."""
    return "a function" if cls is FunctionType else f"an object of the class {cls.__qualname__}"


def _fields(cls: type) -> tuple[str, ...] | None:
    """The names of the fields of a namedtuple or dataclass."""
    if issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
        return tuple(getattr(cls, "_fields"))  # noqa: B009 - type checkers know no such attribute
    return tuple(f.name for f in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else None


def _static_as_text(x: Any) -> list[str]:
    if isinstance(x, float):
        return ["float", x.hex()]
    if isinstance(x, complex):
        return ["complex", x.real.hex(), x.imag.hex()]
    return [type(x).__name__, x.hex() if isinstance(x, bytes) else str(x)]


def form_from_json(data: Any, level: int = 0) -> TreeForm:
    """The inverse of ``TreeForm.to_json``; ValueError or TypeError for anything else."""
    if level > DEEPEST:
        raise ValueError("containers are nested too deeply")
    if data[0] == "static":
        _, text = data
        return TreeForm("static", _static_from_text(text))
    kind, value, keys, parts = data
    known = tuple(map(_static_from_text, keys))
    inner = tuple(form_from_json(part, level + 1) for part in parts)
    alone = kind in ("leaf", "none", "any")
    if type(kind) is not str or not (alone or kind in MEMBERS) or (alone and (known or inner)):
        raise ValueError(f"{kind!r} is not a kind of tree")
    if not alone and (len(known) != len(inner) * MEMBERS[kind] or len(set(known)) != len(known)):
        raise ValueError(f"the keys of a {kind} do not match its parts")
    of_class = kind in ("namedtuple", "dataclass")
    if type(value) is not (int if kind == "leaf" else str if of_class else type(None)):
        raise ValueError(f"{value!r} is not the value of a {kind}")
    if of_class and not all(type(name) is str and name.isidentifier() for name in known):
        raise ValueError(f"{known!r} are not fields")
    return TreeForm(kind, value, known, inner)


def _static_from_text(data: Any) -> Any:
    kind, *rest = data
    if not all(type(x) is str for x in data):
        raise ValueError(f"{data!r} is not a value")
    if kind == "complex":
        real, imag = rest
        return complex(float.fromhex(real), float.fromhex(imag))
    (text,) = rest
    if kind == "bool":
        return {"True": True, "False": False}[text]
    readers: dict[str, Callable[[str], Any]] = {"int": int, "float": float.fromhex, "str": str, "bytes": bytes.fromhex}
    return readers[kind](text)


def known_class(form: TreeForm) -> Any:
    """The class of a namedtuple or dataclass, which must be imported already; SavedFileError if it is another now."""
    module, _, name = form.value.partition(":")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    if not isinstance(found, type):
        raise SavedFileError(
            f"the saved function takes or returns objects of the class {name} of the module {module}, which is not "
            "imported here",
            remedy=f"import {module} before rg.load, which itself imports nothing",
        )
    right = (issubclass(found, tuple) and hasattr(found, "_make")) if form.kind == "namedtuple" else True
    if _fields(found) != form.keys or not right:
        raise SavedFileError(
            f"the class {name} of the module {module} has changed its fields since the function was saved: "
            f"{', '.join(map(str, _fields(found) or ()))} in place of {', '.join(form.keys)}",
            remedy="save the function again",
        )
    return found


def quoted(text: str) -> str:
    """Source of a text, in which nothing but harmless characters stand for themselves."""
    return '"' + "".join(c if c in PLAIN else f"\\U{ord(c):08x}" for c in text) + '"'


def harmless_text(text: str) -> str:
    """A text for docstrings and comments: other characters become question marks."""
    return "".join(c if c in PLAIN else "?" for c in text)
