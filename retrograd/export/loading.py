"""Loaded functions: compiled functions whose trace comes from a file."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..compiler.compilation import Derived
from ..compiler.compiled import Compiled
from ..compiler.paths import Found, Paths
from ..compiler.settings import Settings
from ..compiler.signature import Call, is_traced
from ..compiler.transform import Transform
from ..errors import ControlFlowError, SavedFileError, ShapeError, TreeError
from ..ir.builder import Builder, Symbol
from ..ir.evaluate import evaluate
from ..ir.rewrite import walk
from ..ops.structural.guard import Miss, guard
from ..tracer.array import shadow_of
from ..tracer.record import Recorded
from ..tracer.surroundings import SURROUNDINGS
from ..tracer.trace import Capture, traceable
from ..tracer.tree import flatten, key_orders, written
from .saving import DAMAGED, SavedFunction, from_bytes, read_saved, to_bytes, write_whole
from .trees_as_data import TreeForm, known_class


class Expected:
    """What a saved function takes at one place."""

    def __init__(self, form: TreeForm) -> None:
        self.kind, self.value = form.kind, form.value


class LoadedFunction:
    """The function of a file: it takes what the saved one was saved for, and nothing else."""

    def __init__(self, saved: SavedFunction) -> None:
        self.saved = saved
        self.__name__ = self.__qualname__ = saved.graph.name
        self.__doc__ = f"{saved.title}, loaded from a file that retrograd {saved.version} saved."
        tree = saved.arguments.build(Expected, known_class)
        self.expected, self.spec = flatten(tree)
        self.orders = key_orders(tree)
        self.places = [k for k, x in enumerate(self.expected) if x.kind == "leaf"]
        if [self.expected[k].value for k in self.places] != [*range(len(self.places))]:
            raise SavedFileError("the arguments in the file are in the wrong order", remedy=DAMAGED)
        self.__signature__ = _signature(saved)
        saved.results.build(Expected, known_class)  # so that an unknown class is found out here

    def __repr__(self) -> str:
        return f"<function {self.__name__} of a file>"

    def __reduce__(self) -> Any:
        return _again, (to_bytes(self.saved),)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.compiled(*args, **kwargs)

    @cached_property
    def compiled(self) -> LoadedCompiled:
        """The function as ``rg.load`` returns it."""
        return LoadedCompiled(self, Restored("load"))

    def fitted(self, call: Call) -> Call:
        """A call, if it is one that the function was saved for; TreeError, ShapeError."""
        if call.spec != self.spec:
            raise TreeError(
                f"the arguments have the structure {written(call.spec)}, but {self.__name__} was saved for "
                f"{written(self.spec)}",
                remedy="pass the same containers, and the same keywords",
            )
        told = SURROUNDINGS[-1].told
        if told(call.orders) != told(self.orders):
            raise TreeError(
                f"the keys of dicts have the order {call.orders}, but {self.__name__} was saved for {self.orders}",
                remedy="pass the keys in the same order, since a function may iterate over them",
            )
        leaves = list(call.leaves)
        for i, (x, expected) in enumerate(zip(call.leaves, self.expected, strict=True)):
            if expected.kind == "any":
                leaves[i] = None
            elif expected.kind == "static":
                self._check_static(call.names[i], x, expected.value)
            else:
                self._check_traced(call.names[i], x, expected.value)
        return replace(call, leaves=leaves, traced=tuple(self.places), unread=frozenset())

    def _check_static(self, name: str, x: Any, value: Any) -> None:
        if type(x) is not type(value) or repr(x) != repr(value):
            raise ShapeError(
                f"{name} is {x!r:.80}, but {self.__name__} was saved for {value!r:.80}",
                remedy="save the function again, for this value",
            )

    def _check_traced(self, name: str, x: Any, k: int) -> None:
        aval, strides = self.saved.graph.inputs[k].aval, self.saved.strides[k]
        found = traceable(shadow_of(x)) if is_traced(x) or isinstance(x, int) else None
        if found != aval:
            raise ShapeError(
                f"{name} is {found or type(x).__name__}, but {self.__name__} was saved for {aval}",
                remedy="pass the same shapes and types, or save the function again for these",
            )
        array = shadow_of(x)
        if found.kind == "array" and found.ndim > 1:
            ordered = array.flags.c_contiguous
            if strides is None and not ordered:
                raise ShapeError(f"the memory of {name} is not in C order", remedy=f"np.ascontiguousarray({name})")
            if strides is not None and array.strides != strides:
                raise ShapeError(
                    f"{name} has the strides {array.strides}, but {self.__name__} was saved for {strides}",
                    remedy="pass an array with the same layout",
                )

    def assemble(self, results: Sequence[Any]) -> Any:
        """The user's result."""
        return self.saved.results.build(
            lambda form: results[form.value] if form.kind == "leaf" else form.value, known_class
        )


def _signature(saved: SavedFunction) -> inspect.Signature:
    """The parameters of a saved function, as far as their names are identifiers."""
    kinds = inspect.Parameter
    try:
        positional = [kinds(name, kinds.POSITIONAL_OR_KEYWORD) for name in saved.parameters]
        return inspect.Signature(positional + [kinds(k, kinds.KEYWORD_ONLY) for k in saved.arguments.parts[1].keys])
    except (ValueError, IndexError):  # keywords may be any texts
        return inspect.Signature([kinds("args", kinds.VAR_POSITIONAL)])


def _again(data: bytes) -> LoadedFunction:
    """The function of the contents of a file, for pickles."""
    return LoadedFunction(from_bytes(data))


@dataclass(frozen=True)
class Restored(Transform):
    """``load``: what the file holds stands for the recording."""

    def describe(self, function: Callable[..., Any]) -> str:
        return f"<loaded {getattr(function, '__name__', '')}>"

    def take(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        found: Any = function
        call: Call = found.fitted(super().take(function, args, kwargs))
        return call

    def record(self, function: Callable[..., Any], call: Call) -> tuple[Recorded, Derived]:
        found: Any = function
        saved: SavedFunction = found.saved
        graph, given = saved.graph, [shadow_of(x) for x in call.values()]
        if any(node.prim is guard for node in walk(graph)):
            _check_way(found, [*given, *saved.constants])
        at_end = zip(saved.constants, graph.inputs[len(given) :], strict=True)
        captures = tuple(Capture(x, Symbol(Builder(), v), x) for x, v in at_end)
        recorded = Recorded(graph, flatten(None)[1], captures, (), {}, saved.written)
        return recorded, Derived(graph, found.assemble, ())


def _check_way(function: LoadedFunction, values: list[Any]) -> None:
    """ControlFlowError for arguments for which the function decides otherwise than when it was saved."""
    try:
        evaluate(function.saved.graph, values)
    except Miss as miss:
        raise ControlFlowError(
            f"{function.__name__} makes other decisions for these arguments than for those it was saved with",
            where=miss.where,
            remedy="decide with np.where or rg.cond, which save both branches, or save the function for these, too",
        ) from None
    except Exception:  # noqa: BLE001 - it is raised again where the code runs
        return


class LoadedCompiled(Compiled):
    """A loaded function; it rounds as it did where it was saved, whatever ``rg.config`` says now."""

    def _made(self, versions: list[Paths], others: list[Paths] | None, call: Call, settings: Settings) -> Found:
        saved: SavedFunction = self._user.saved  # type: ignore[attr-defined]  # of a LoadedFunction
        found = super()._made(versions, others, call, settings._replace(exact=saved.exact, fast=saved.fast))
        try:
            assert isinstance(found.paths, Paths)
            _ = found.paths.code
        except Exception as fault:
            said = str(fault).partition("\n")[0]
            raise SavedFileError(f"the graph of {self!r} cannot be compiled: {said}", remedy=DAMAGED) from fault
        return found

    def save(self, path: str | os.PathLike[str], /, *args: Any, **kwargs: Any) -> None:
        """Write the file again; arguments, if there are any, must be those that the function was saved for."""
        if args or kwargs:
            self._take(args, kwargs)
        write_whole(path, to_bytes(self._user.saved))  # type: ignore[attr-defined]  # of a LoadedFunction


def load(path: str | os.PathLike[str]) -> Any:
    """The function that ``f.save(path)`` wrote: compiled, and differentiable again.

    Nothing in the file is a program: the source is made from the graph here. Classes of containers must be imported
    before.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    Compiled
        A function of arguments with the shapes, types and containers that it was saved for.

    Raises
    ------
    SavedFileError
        If the file is damaged, or of another version.

    Examples
    --------
    >>> import numpy as np, retrograd as rg, tempfile, os
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "wave.rg")
    ...     rg.jit(np.sin).save(path, 0.5)
    ...     wave = rg.load(path)
    >>> float(rg.grad(wave)(0.5) - np.cos(0.5))
    0.0
    """
    return LoadedFunction(read_saved(path)).compiled
