"""Saved functions: a file with the graph as text and arrays as ``.npy``, and without any program.

A file has a line that names its form, a line with the hash of all that follows, a line of JSON, the text of the graph,
and one ``.npy`` after the other. It is read within bounds, and may only contain operations of the package. The
source is made again when it is loaded.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import SavedFileError
from ..ir.graph import Graph
from ..ir.parser import parse
from ..ir.printer import to_text
from ..ir.rewrite import walk
from ..ir.types import DTYPE_NAMES, Aval
from ..ir.verify import verify
from ..ops.structural.region import turn
from .frozen import BUILT_IN, Frozen, Strides, only_here
from .layouts_kept import fits, kept_strides
from .standalone import laid
from .trees_as_data import TreeForm, form_from_json

MAGIC = b"retrograd function "
FORMAT = 1
MOST_HEADER = 1 << 24  # bytes
MOST_TEXT = 1 << 28
MOST_NODES = 2_000_000
MOST_LEVELS = 40  # of graphs inside of graphs
MOST_BYTES = 1 << 46  # of one value in a graph
DAMAGED = "take the file from where it was saved, or save the function again"


@dataclass(frozen=True)
class SavedFunction:
    """What a file holds; ``constants`` are the values of the last inputs of the graph."""

    version: str  # of the package that saved it
    title: str
    graph: Graph
    arguments: TreeForm
    results: TreeForm
    parameters: tuple[str, ...]
    names: tuple[str, ...]
    strides: tuple[Strides, ...]
    written: tuple[int, ...]
    exact: bool
    fast: bool
    constants: tuple[Any, ...]


def saved_form(frozen: Frozen, version: str) -> SavedFunction:
    """A frozen function as a file holds it."""
    settings = frozen.compilation.settings
    return SavedFunction(
        version,
        frozen.title,
        frozen.graph,
        frozen.arguments,
        frozen.results,
        frozen.parameters,
        frozen.names,
        frozen.strides,
        frozen.written,
        settings.exact,
        settings.fast,
        frozen.constants,
    )


def to_bytes(saved: SavedFunction) -> bytes:
    """The contents of a file."""
    text = to_text(saved.graph).encode()
    arrays = [_npy(x) for x in saved.constants]
    header = {
        "retrograd": saved.version,
        "title": saved.title,
        "exact": saved.exact,
        "fast": saved.fast,
        "arguments": saved.arguments.to_json(),
        "results": saved.results.to_json(),
        "parameters": saved.parameters,
        "names": saved.names,
        "strides": saved.strides,
        "written": saved.written,
        "graph": len(text),
        "arrays": [[len(data), kept_strides(x)] for x, data in zip(saved.constants, arrays, strict=True)],
    }
    body = b"".join([json.dumps(header, sort_keys=True).encode(), b"\n", text, *arrays])
    return MAGIC + f"{FORMAT}\n{hashlib.sha256(body).hexdigest()}\n".encode() + body


def _npy(x: Any) -> bytes:
    file = io.BytesIO()
    array = np.asarray(x)
    np.lib.format.write_array(file, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
    return file.getvalue()


def write_whole(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file in one step: who reads it meanwhile finds the old one or the new one."""
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def read_saved(path: str | os.PathLike[str]) -> SavedFunction:
    """The contents of a file; SavedFileError if it cannot be read, or breaks a rule."""
    try:
        data = Path(path).read_bytes()
    except OSError as fault:
        raise SavedFileError(f"{os.fspath(path)} cannot be read: {fault.strerror}", remedy="check the path") from None
    try:
        return from_bytes(data)
    except SavedFileError as fault:
        raise SavedFileError(f"{os.fspath(path)}: {fault.what}", remedy=fault.remedy) from fault.__cause__


def from_bytes(data: bytes) -> SavedFunction:
    """The inverse of ``to_bytes``; SavedFileError for anything else."""
    first, _, rest = data.partition(b"\n")
    form = first.removeprefix(MAGIC)
    if not first.startswith(MAGIC) or not form.isdigit():
        raise SavedFileError("this is not a saved function", remedy="save one by f.save(path)")
    if form != str(FORMAT).encode():
        raise SavedFileError(
            f"the file has the format {form[:9].decode()}, but this version of retrograd reads the format {FORMAT}",
            remedy="load it with the version that saved it, or save the function again",
        )
    digest, _, body = rest.partition(b"\n")
    if digest != hashlib.sha256(body).hexdigest().encode():
        raise SavedFileError("the file was changed: its hash differs", remedy=DAMAGED)
    try:
        return _read(body)
    except SavedFileError:
        raise
    except Exception as fault:  # a file that breaks the rules may do so anywhere
        said = str(getattr(fault, "what", fault)).partition("\n")[0]
        raise SavedFileError(
            f"the file contains no function: {type(fault).__name__}: {said}", remedy=DAMAGED
        ) from fault


def _read(body: bytes) -> SavedFunction:
    line, _, rest = body.partition(b"\n")
    if len(line) > MOST_HEADER:
        raise ValueError("its header is too long")
    header = json.loads(line, parse_constant=_no_constant)
    size = _count(header["graph"], MOST_TEXT)
    lengths = [_count(n, len(rest)) for n, _ in header["arrays"]]
    if size + sum(lengths) != len(rest):
        raise ValueError("the lengths of its parts do not add up")
    text = rest[:size].decode()
    if text.count("\n") > MOST_NODES:
        raise ValueError("its graph is too long")
    if any(len(row) - len(row.lstrip(" ")) > 4 * MOST_LEVELS for row in text.splitlines()):
        raise ValueError("its graphs are nested too deeply")
    graph = parse(text)
    _check_graph(graph)
    verify(graph)
    at, arrays = size, []
    for n, (_, strides) in zip(lengths, header["arrays"], strict=True):
        arrays.append(_array(rest[at : at + n], strides))
        at += n
    return _checked(header, graph, arrays)


def _checked(header: dict[str, Any], graph: Graph, arrays: Sequence[np.ndarray[Any, Any]]) -> SavedFunction:
    """The parts of a file, if they fit together."""
    arguments, results = form_from_json(header["arguments"]), form_from_json(header["results"])
    taken = sorted(arguments.leaves())
    count = len(taken)
    strides = tuple(_strides(s) for s in header["strides"])
    names, parameters = tuple(header["names"]), tuple(header["parameters"])
    written = tuple(_count(k, count - 1) for k in header["written"])
    positional = arguments.parts[0].parts
    right = (
        taken == list(range(count))
        and len(graph.inputs) == count + len(arrays)
        and len(strides) == len(names) == count
        and len(parameters) == len(positional)
        and all(type(name) is str and name.isidentifier() for name in parameters)
        and (arguments.kind, *(part.kind for part in arguments.parts)) == ("tuple", "tuple", "dict")
        and all(type(key) is str for key in arguments.parts[1].keys)
        and all(type(name) is str for name in (*names, *parameters, header["retrograd"], header["title"]))
        and type(header["exact"]) is type(header["fast"]) is bool
        and all(0 <= k < len(graph.outputs) for k in results.leaves())
        and all(s is None or len(s) == v.aval.ndim for s, v in zip(strides, graph.inputs, strict=False))
        and not any(v.aval.kind == "generator" or v.aval.steps is not None for v in graph.inputs)
    )
    if not right:
        raise ValueError("its parts do not fit together")
    constants = [_as_kind(x, v.aval) for x, v in zip(arrays, graph.inputs[count:], strict=True)]
    return SavedFunction(
        version=header["retrograd"],
        title=header["title"],
        graph=graph,
        arguments=arguments,
        results=results,
        parameters=parameters,
        names=names,
        strides=strides,
        written=written,
        exact=header["exact"],
        fast=header["fast"],
        constants=tuple(constants),
    )


def _check_graph(graph: Graph) -> None:
    """Only operations of the package that work on values, and no value beyond all bounds."""
    for node in walk(graph):
        if node.prim.name not in BUILT_IN or (node.prim.final and node.prim is not turn):
            raise ValueError(f"{node.prim.name} is not allowed in a saved function")
        if (found := only_here(node, "saved")) is not None:
            raise ValueError(f"it {found[0]}")
    for aval in _avals(graph):
        if aval.nbytes > MOST_BYTES or math.prod(max(n, 1) for n in aval.shape) > MOST_BYTES or aval.ndim > 32:
            raise ValueError(f"{aval} is too large")


def _avals(graph: Graph) -> Iterator[Aval]:
    yield from graph.in_avals
    for node in graph.nodes:
        yield from (v.aval for v in node.outputs)
        for _, body in node.graphs:
            yield from _avals(body)


def _count(n: Any, most: int) -> int:
    if type(n) is not int or not 0 <= n <= most:
        raise ValueError(f"{n!r} is not a count up to {most}")
    return n


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _strides(data: Any) -> Strides:
    if data is None:
        return None
    if type(data) is not list or not all(type(n) is int for n in data):
        raise ValueError(f"{data!r} are not strides")
    return tuple(data)


def _array(data: bytes, strides: Any) -> np.ndarray[Any, Any]:
    """An array from its ``.npy`` form, whose header must fit the data before anything is made of it."""
    file = io.BytesIO(data)
    version = np.lib.format.read_magic(file)
    if version != (1, 0):
        raise ValueError(f"an array has the format {version}")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype not in DTYPE_NAMES or dtype.str not in {d.str for d in DTYPE_NAMES} or fortran:
        raise ValueError(f"an array of {dtype}")
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of the shape {shape} has other data")
    found: np.ndarray[Any, Any] = np.frombuffer(data, dtype, offset=file.tell()).reshape(shape).copy()
    order = _strides(strides)
    if order is None:
        return found
    if not fits(shape, dtype, order) or not found.size:
        raise ValueError(f"{order} are not strides of an array of the shape {shape}")
    again: np.ndarray[Any, Any] = laid(found, order)
    if again.tobytes() != found.tobytes():
        raise ValueError(f"the strides {order} make elements overlap")
    return again


def _as_kind(x: np.ndarray[Any, Any], aval: Aval) -> Any:
    if (x.shape, x.dtype) != (aval.shape, aval.dtype):
        raise ValueError(f"an array of dtype {x.dtype} and shape {x.shape} is not {aval}")
    return x if aval.kind == "array" else x[()] if aval.kind == "scalar" else x.item()
