"""Functions of this package that generated modules contain word for word, such as schedules of loops."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from .embedded import EMBEDDED, Embedded, register

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class EmbeddedFunction(Embedded):
    """A function that runs here, too. ``needs`` names the embedded functions that it calls."""

    function: Callable[..., Any] = field(kw_only=True)
    needs: tuple[str, ...] = ()

    @cached_property
    def source(self) -> str:
        """The definition of the function, without annotations and docstring."""
        return _bare(self.function)

    @property
    def sources(self) -> list[str]:
        """The sources of the functions that this one calls, and its own."""
        called = [text for name in self.needs for text in EMBEDDED[name].sources]
        return list(dict.fromkeys([*called, self.source]))


def embedded(*needs: Callable[..., Any]) -> Callable[[F], F]:
    """Register a function under its name, with the registered functions that it calls."""

    def add(function: F) -> F:
        register(function.__name__, EmbeddedFunction(function=function, needs=tuple(f.__name__ for f in needs)))
        return function

    return add


def function_of(name: str) -> Callable[..., Any]:
    """The embedded function of this name, to run here."""
    found = EMBEDDED[name]
    assert isinstance(found, EmbeddedFunction)
    return found.function


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
