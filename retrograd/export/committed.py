"""Exported modules as files, and whether a committed one still equals the current output for its function."""

from __future__ import annotations

import ast
import dataclasses
import difflib
import io
import os
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from ..codegen.names import harmless
from ..compiler.compiled import Compiled
from ..compiler.settings import config
from ..compiler.transform import Transform
from ..errors import ChangedError, OptionError
from ..ir.target import VERSION
from .frozen import freeze
from .saving import write_whole
from .written_module import FORMAT, Exported, code_digest, without_record, write_module

OURS = "retrograd."
MOST_SHOWN = 60  # lines of a difference
Found = Callable[[str], Any]


def export_to(
    path: str | os.PathLike[str],
    compiled: Compiled,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    origin: dict[str, Any] | None = None,
) -> None:
    """Write the module of a compiled function, and the arrays beside it."""
    made = exported(path, compiled, args, kwargs, origin)
    target = Path(path)
    if made.arrays:
        file = io.BytesIO()
        np.savez(file, **made.arrays)  # type: ignore[arg-type]  # its stubs take these for options
        write_whole(target.with_suffix(".npz"), file.getvalue())
    if made.c:
        write_whole(target.with_suffix(".c"), made.c.encode())
    write_whole(target, made.text.encode())


def exported(
    path: str | os.PathLike[str],
    compiled: Compiled,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    origin: dict[str, Any] | None = None,
) -> Exported:
    """The module of a compiled function, as it would be written to this path."""
    target = Path(path)
    if target.suffix != ".py" or not harmless(target.stem):
        raise OptionError(
            f"{target.name!r} is not a valid file name for a module", remedy="use letters and digits: grad_loss.py"
        )
    frozen = freeze(compiled, args, kwargs, "exported")
    return write_module(frozen, target.stem, origin or origin_of(compiled))


# --------------------------------------------------------------------------------------------- where it comes from


def origin_of(compiled: Any) -> dict[str, Any]:
    """The function behind a compiled one, by its module and name, and the transforms, the last first."""
    transforms: list[Any] = []
    while isinstance(compiled, Compiled):
        options = _options(compiled._transform)
        transforms.append([type(compiled).__name__, type(compiled._transform).__name__, options])
        compiled = compiled._user
    return {"of": _place(compiled), "transforms": None if any(t[2] is None for t in transforms) else transforms}


def _place(function: Any) -> str:
    """``module:name`` of a function; nothing where that name does not lead to it, as for lambdas and methods."""
    module, name = getattr(function, "__module__", None), str(getattr(function, "__qualname__", ""))
    if not isinstance(module, str) or not _is(_named(sys.modules.get(module), name), function):
        return ""
    if module == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        return f"{Path(file).name}:{name}" if file else ""
    return f"{module}:{name}"


def _named(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def _is(found: Any, function: Any) -> bool:
    """Whether an object is a function, or a compiled one that wraps it."""
    while isinstance(found, Compiled) and found is not function:
        found = found._user
    return found is function


def _options(transform: Transform) -> dict[str, Any] | None:
    """The fields of a transform that are not what they are by default; None if one is no plain value."""
    found = {}
    for f in dataclasses.fields(transform):
        x = getattr(transform, f.name)
        if f.default is not dataclasses.MISSING and x == f.default and type(x) is type(f.default):
            continue
        try:
            found[f.name] = _told(x)
        except TypeError:
            return None
    return found


def _told(x: Any) -> Any:
    """An option as a record holds it: functions of the package by their names; TypeError for anything else."""
    if isinstance(x, tuple):
        return list(map(_told, x))
    if isinstance(x, FunctionType) and x.__module__.startswith(OURS) and "<" not in x.__qualname__:
        return f"{x.__module__}:{x.__qualname__}"
    if x is None or type(x) in (bool, int, float, str):
        return x
    raise TypeError(type(x).__name__)


def _option(x: Any) -> Any:
    """The inverse of ``_told``."""
    if isinstance(x, list):
        return tuple(map(_option, x))
    if isinstance(x, str) and x.startswith(OURS):
        module, _, name = x.partition(":")
        return vars(sys.modules[module])[name]
    return x


def remade(function: Any, transforms: Sequence[Any]) -> Any:
    """The compiled function that ``origin_of`` described."""
    # Of two types with one name, the one that is not compiled for calls in C stands last.
    kinds = {cls.__name__: cls for cls in (*_below(Compiled), Compiled, *_below(Transform), Transform)}
    for compiled, transform, options in reversed(transforms):
        try:
            given = {name: _option(x) for name, x in options.items()}
            function = kinds[compiled](function, kinds[transform](**given))
        except (KeyError, TypeError) as fault:
            raise OptionError(
                f"the committed file records an unknown transform: {transform}", remedy="export it again"
            ) from fault
    return function


def _below(cls: Any) -> list[Any]:
    own: list[Any] = cls.__subclasses__()
    return [x for each in own for x in (each, *_below(each))]


# ------------------------------------------------------------------------------------------------- the comparison


def check(path: str | os.PathLike[str], find: Found, target: str | None = None) -> str:
    """Words that say that a committed module is still what its function gives; ChangedError if it is not.

    ``find`` loads a function from ``module:function``; ``target`` overrides the one that the module names.
    """
    old, record, compiled, (args, kwargs) = _committed(path, find, target)
    try:
        with config(**record.get("settings", {})):
            new = exported(path, compiled, args, kwargs, {k: record.get(k) for k in ("of", "transforms")})
    except Exception as fault:
        raise ChangedError(
            f"{os.fspath(path)} cannot be generated again: {fault}",
            remedy="export the function again with new arguments",
        ) from fault
    return _compared(os.fspath(path), old, record, new)


def renew(path: str | os.PathLike[str], find: Found, target: str | None = None) -> str:
    """Export the function of a committed module again, with the arguments of its example."""
    _, record, compiled, (args, kwargs) = _committed(path, find, target)
    with config(**record.get("settings", {})):
        export_to(path, compiled, args, kwargs, {k: record.get(k) for k in ("of", "transforms")})
    return f"{os.fspath(path)} is written\n"


def _committed(
    path: str | os.PathLike[str], find: Found, target: str | None
) -> tuple[str, dict[str, Any], Any, tuple[Any, Any]]:
    """The text of a module, its record, its function as it is now, and the arguments of its example."""
    text = _read(path)
    record = _record_of(text, path)
    compiled = _compiled(record, find, target, path)
    try:
        args, kwargs = runpy.run_path(os.fspath(path))["_example"]()
        classes = _classes(record.get("classes", {}), compiled)
        return text, record, compiled, (_of_classes(args, classes), _of_classes(kwargs, classes))
    except Exception as fault:
        raise ChangedError(
            f"the committed {os.fspath(path)} does not run: {type(fault).__name__}: {fault}", remedy="export it again"
        ) from fault


def _classes(places: dict[str, str], compiled: Any) -> dict[str, Any]:
    """The user's classes by the names that a module has for them, as far as they are found."""
    while isinstance(compiled, Compiled):
        compiled = compiled._user
    near = getattr(compiled, "__globals__", {})
    found = {}
    for name, place in places.items():
        module, _, path = place.partition(":")
        known: Any = near if path.partition(".")[0] in near else vars(sys.modules.get(module, object))
        for part in path.split("."):
            known = known.get(part) if isinstance(known, Mapping) else getattr(known, part, None)
        if isinstance(known, type):
            found[name] = known
    return found


def _of_classes(tree: Any, classes: dict[str, Any]) -> Any:
    """A tree with the user's classes in place of those of a module."""
    if type(tree) in (list, tuple):
        return type(tree)(_of_classes(x, classes) for x in tree)
    if type(tree) is dict:
        return {k: _of_classes(x, classes) for k, x in tree.items()}
    cls = classes.get(type(tree).__name__)
    if cls is None:
        return tree
    if isinstance(tree, tuple):
        return cls._make(_of_classes(x, classes) for x in tree)
    made = object.__new__(cls)
    for name, x in vars(tree).items():
        object.__setattr__(made, name, _of_classes(x, classes))
    return made


def _read(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise OptionError(f"cannot read {os.fspath(path)!r}: {fault}", remedy="export the function first") from None


def _record_of(text: str, path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        for part in ast.parse(text).body:
            if isinstance(part, ast.Assign) and ast.unparse(part.targets[0]) == "RECORD":
                record: Any = ast.literal_eval(part.value)
                if isinstance(record, dict) and record.get("format") == FORMAT:
                    return record
    except (SyntaxError, ValueError):
        pass
    raise OptionError(
        f"{os.fspath(path)} is not a module exported by this version of retrograd",
        remedy="export the function again: python -m retrograd export module:function --arg ... -o FILE",
    )


def _compiled(record: dict[str, Any], find: Found, target: str | None, path: str | os.PathLike[str]) -> Any:
    """The compiled function that a module was made of, as it is now."""
    name = target or record.get("of") or ""
    if not name:
        raise OptionError(
            f"{os.fspath(path)} does not record the function that it was exported from",
            remedy="name it: python -m retrograd export module:function --check FILE",
        )
    found = find(name)
    if isinstance(found, Compiled) and (target or not record.get("transforms")):
        return found
    while isinstance(found, Compiled):  # the name means a decorated function
        found = found._user
    if not record.get("transforms"):
        raise OptionError(
            f"{os.fspath(path)} does not record how {name} is differentiated",
            remedy="name the compiled function: module:name, where name = rg.grad(f)",
        )
    return remade(found, record["transforms"])


def _compared(path: str, old: str, record: dict[str, Any], new: Exported) -> str:
    again = f"python -m retrograd export --renew {path}"
    if old == new.text:
        return f"{path} matches its function\n"
    if _essence(old) == _essence(new.text):
        before = record.get("retrograd")
        other = (
            f"versions of retrograd ({before}, now {VERSION})"
            if before != VERSION
            else "comments, layout or its metadata"
        )
        return f"{path} matches its function; only {other} differ\n"
    theirs, ours = _lines(old), _lines(new.text)
    edited = record.get("code") != code_digest(old)
    if not edited and record.get("graph") == new.record["graph"]:
        return (
            f"{path} matches its function: the text differs, but the graph is the same\n{_shown(theirs, ours, path)}\n"
        )
    if edited:
        why = "was edited since it was exported, and no longer matches its function"
    elif any(record.get(k) != new.record[k] for k in ("takes", "gives")):
        why = "has other arguments or results than the function has now"
    elif record.get("traced") == new.record["traced"]:
        why = f"was derived differently by retrograd {record.get('retrograd')}, or for other constants"
    else:
        why = "no longer matches its function"
    raise ChangedError(f"{path} {why}\n{_shown(theirs, ours, path)}", remedy=f"if this is intended: {again}")


def _essence(text: str) -> str:
    """What a module does, without comments, docstrings, layout and its record."""
    tree = ast.parse(text)
    tree.body = [part for part in tree.body if not _tells(part)]
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def _tells(part: ast.stmt) -> bool:
    """Whether a statement only tells of the module: its record, and numbers whose last bits depend on the machine."""
    targets = part.targets if isinstance(part, ast.Assign) else [part.target] if isinstance(part, ast.AnnAssign) else []
    return any(isinstance(t, ast.Name) and t.id in ("RECORD", "_EXPECTED") for t in targets)


def _lines(text: str) -> list[str]:
    return without_record(text).splitlines()


def _shown(old: list[str], new: list[str], path: str) -> str:
    """The difference between two modules, the committed one first."""
    found = [*difflib.unified_diff(old, new, f"{path} (committed)", "the function now", n=2, lineterm="")]
    more = [f"... and {len(found) - MOST_SHOWN} more lines"] if len(found) > MOST_SHOWN else []
    return "\n".join([*found[:MOST_SHOWN], *more])
