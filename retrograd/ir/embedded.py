"""The functions that a generated module may contain word for word, by name: schedules, helpers of primitives."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from ..errors import InternalError

F = TypeVar("F", bound=Callable[..., Any])
_DEFINED = re.compile(r"^def (\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Embedded:
    """Plain Python that stands in generated modules: a ``text``, or a ``function`` that runs here, too.

    ``needs`` names the embedded functions that this one calls.
    """

    text: str = ""
    function: Callable[..., Any] | None = None
    needs: tuple[str, ...] = ()

    @cached_property
    def source(self) -> str:
        """The text; for a function, its definition without annotations and docstring."""
        return self.text.strip() if self.function is None else _bare(self.function)

    @property
    def sources(self) -> list[str]:
        """The sources of the functions that this one calls, and its own."""
        called = [text for name in self.needs for text in EMBEDDED[name].sources]
        return list(dict.fromkeys([*called, self.source]))


EMBEDDED: dict[str, Embedded] = {}


def embedded(*needs: Callable[..., Any]) -> Callable[[F], F]:
    """Register a function under its name, with the registered functions that it calls."""

    def add(function: F) -> F:
        _add(function.__name__, Embedded(function=function, needs=tuple(f.__name__ for f in needs)))
        return function

    return add


def embed(text: str) -> str:
    """Register the functions that a text defines; the text."""
    for name in _DEFINED.findall(text):
        _add(name, Embedded(text))
    return text


def _add(name: str, new: Embedded) -> None:
    if EMBEDDED.setdefault(name, new) != new:
        raise InternalError(f"two functions of generated modules are called {name}")


def _bare(function: Callable[..., Any]) -> str:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    definition.body = definition.body[1:]
    return ast.unparse(_Bare().visit(definition))


class _Bare(ast.NodeTransformer):
    """Removes annotations."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        assert node.value is not None
        return ast.copy_location(ast.Assign([node.target], node.value), node)
