"""Functions and classes that exported modules contain word for word; they only need NumPy."""

from __future__ import annotations

import ast
import ctypes
import hashlib
import importlib.machinery
import importlib.util
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import Any

import numpy as np


class ArgumentError(TypeError):
    """An argument is not what the function was exported for."""


class OtherWayError(ValueError):
    """The function makes other decisions for these arguments than for those it was exported with."""


class ThrownPayload(Exception):  # noqa: N818 - the user's own signal, not a fault
    """An error that the function throws, with its ``payload``."""

    def __init__(self, payload: Any) -> None:
        super().__init__(payload)
        self.payload = payload


def miss(value: Any) -> Any:
    """End a call with other Python decisions than in the traced one."""
    raise OtherWayError(
        "the function makes other decisions for these arguments than for those it was exported with: "
        "export it for these, too, or decide with np.where or rg.cond",
        value,
    )


def throw(form: str, *leaves: Any) -> Any:
    """End a call as ``throw_if`` does; ``form`` is source of the payload, with a number in braces for each leaf."""

    def built(at: Any) -> Any:
        if isinstance(at, ast.Name):
            return leaves[int(at.id[1:])]
        if isinstance(at, (ast.Tuple, ast.List)):
            parts = [built(x) for x in at.elts]
            return tuple(parts) if isinstance(at, ast.Tuple) else parts
        if isinstance(at, ast.Dict):
            return {built(k): built(v) for k, v in zip(at.keys, at.values, strict=True)}
        return ast.literal_eval(at)

    names = [f"_{k}" for k in range(len(leaves))]
    raise ThrownPayload(built(ast.parse(form.format(*names), mode="eval").body))


def unsolved(message: str) -> Any:
    """End a call whose equation has no solution."""
    raise FloatingPointError(message)


def checked_array(x: Any, name: str, shape: Any, dtype: Any, strides: Any = None) -> None:
    """Accept only an array of this shape, dtype and layout: the code is valid for these."""
    if type(x) is not np.ndarray:
        raise ArgumentError(f"{name} is of type {type(x).__name__}, but should be an array: pass np.asarray({name})")
    if x.shape != shape or x.dtype != dtype:
        raise ArgumentError(
            f"{name} has the shape {x.shape} and the dtype {x.dtype}, but the function was exported for "
            f"{shape} and {np.dtype(dtype)}"
        )
    if strides is None and x.ndim > 1 and not x.flags.c_contiguous:
        raise ArgumentError(f"the memory of {name} is not in C order: pass np.ascontiguousarray({name})")
    if strides is not None and x.strides != strides:
        raise ArgumentError(f"{name} has the strides {x.strides}, but the function was exported for {strides}")


def checked_number(x: Any, name: str, kind: type) -> None:
    """Accept only a number of this type, since NumPy treats other types differently."""
    if type(x) is not kind:
        wanted = kind.__name__ if kind.__module__ == "builtins" else f"np.{kind.__name__}"
        raise ArgumentError(f"{name} is of type {type(x).__name__}, but should be of type {wanted}")


def checked_value(x: Any, name: str, value: Any) -> None:
    """Accept only this value: the code is valid for it."""
    if type(x) is not type(value) or repr(x) != repr(value):
        raise ArgumentError(f"{name} is {x!r}, but the function was exported for {value!r}")


def checked_items(x: Any, name: str, kind: Any, length: int) -> Any:
    """The items of a list or tuple."""
    if type(x) is not kind or len(x) != length:
        raise ArgumentError(f"{name} should be a {kind.__name__} of {length} items")
    return x


def checked_entries(x: Any, name: str, keys: Any) -> Any:
    """The entries of a dict: its keys must have the same order, since a function may iterate over them."""
    if type(x) is not dict or [(type(k), k) for k in x] != [(type(k), k) for k in keys]:
        raise ArgumentError(f"{name} should be a dict with the keys {', '.join(map(repr, keys))}, in this order")
    return tuple(x.values())


def checked_fields(x: Any, name: str, kind: str, fields: Any) -> Any:
    """The fields of an object: its class has this name, wherever it is defined."""
    if type(x).__name__ != kind or not all(hasattr(x, field) for field in fields):
        raise ArgumentError(f"{name} should be a {kind} with the fields {', '.join(fields)}")
    return tuple(getattr(x, field) for field in fields)


def checked_apart(values: Any, written: Any) -> None:
    """Refuse arrays that share memory with one that the function writes into."""
    for k in written:
        for j, other in enumerate(values):
            if j != k and isinstance(other, np.ndarray) and np.may_share_memory(values[k], other):
                raise ArgumentError("the function writes into an argument that shares memory with another: pass a copy")


def span_of(shape: Any, strides: Any) -> tuple[int, int]:
    """The bytes before the first element of an array and behind its beginning, over which its elements are spread."""
    steps = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return -sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)


def laid(x: Any, strides: Any) -> Any:
    """A copy of an array whose memory has these strides."""
    before, after = span_of(x.shape, strides)
    memory = np.zeros(before + after + x.dtype.itemsize, np.uint8)
    made: Any = np.ndarray(x.shape, x.dtype, memory.data, before, strides)
    made[...] = x
    return made


def seeded(seed: int, low: Any, high: Any, shape: Any, dtype: Any) -> Any:
    """The same random numbers between two bounds at each call."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "c":
        parts = [rng.uniform(a, b, shape) for a, b in ((low.real, high.real), (low.imag, high.imag))]
        return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)
    if np.dtype(dtype).kind == "f":
        return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
    return np.asarray(rng.integers(int(low), int(high), shape, endpoint=True)).astype(dtype)


def stored(file: str, digest: str) -> Any:
    """The arrays of the file beside this module, by name; ValueError if it is not the one written with the module."""
    with np.load(Path(__file__).with_name(file), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    if digest_of_arrays(arrays) != digest:
        raise ValueError(f"{file} is not the file written with {Path(__file__).name}: export both again")
    return arrays


def digest_of_arrays(arrays: Any) -> str:
    """A hash of arrays and their names."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        x = arrays[name]
        found.update(f"{name} {x.dtype.str} {x.shape} ".encode() + x.tobytes())
    return found.hexdigest()


def use_built(scope: Any, names: Any, file: str, digest: bytes) -> None:
    """Have functions run as C if a file beside this module was compiled, here, from the C that was written with it."""
    path = Path(__file__).with_name(file)
    if not path.exists():
        return
    usual = sys.implementation.name == "cpython" and sys.maxsize == 2**63 - 1 and sys.byteorder == "little"
    if not usual or sysconfig.get_config_var("Py_GIL_DISABLED") or digest not in path.read_bytes():
        warnings.warn(f"{file} is for another Python, or of another export: NumPy computes", stacklevel=2)
        return
    loader = importlib.machinery.ExtensionFileLoader("rg_native", str(path))
    spec = importlib.util.spec_from_loader("rg_native", loader)
    assert spec is not None
    module: Any = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    private: Any = importlib.import_module("numpy._core._multiarray_umath")
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    types = [np.dtype(code) for code in ("f8", "f4", "i8", "?", "c16", "c8")]
    scalars = [dtype.type for dtype in types]
    module.setup(np.ndarray, address(private._ARRAY_API, None), *types, *scalars, *(scope[name] for name in names))
    for k, name in enumerate(names):
        scope[name] = getattr(module, f"k{k}")


def leaves_of(tree: Any) -> list[Any]:
    """The leaves of a tree of containers, from left to right."""
    if tree is None:
        return []
    if isinstance(tree, dict):
        tree = list(tree.values())
    elif hasattr(tree, "__dataclass_fields__"):
        tree = [getattr(tree, field) for field in tree.__dataclass_fields__]
    if isinstance(tree, (list, tuple)):
        return [leaf for part in tree for leaf in leaves_of(part)]
    return [tree]


def sampled(x: Any) -> list[Any]:
    """Some elements of an array, evenly spaced."""
    flat: Any = np.asarray(x).reshape(-1)
    return flat[:: max(1, -(-flat.size // 16))].tolist()  # type: ignore[no-any-return]  # a list


def difference(got: Any, expected: Any) -> str:
    """The fault of the results, or ""; ``expected`` has type, dtype, shape, largest number and samples of each."""
    leaves = leaves_of(got)
    if len(leaves) != len(expected):
        return f"{len(leaves)} results instead of {len(expected)}"
    for k, (x, (kind, dtype, shape, largest, samples)) in enumerate(zip(leaves, expected, strict=True)):
        if kind == "value":
            if repr(x) != samples:
                return f"result {k} is {x!r}, not {samples}"
            continue
        array = np.asarray(x)
        if (type(x).__name__, array.dtype.name, array.shape) != (kind, dtype, shape):
            return f"result {k} is a {type(x).__name__} of dtype {array.dtype} and shape {array.shape}"
        precision = float(np.finfo(dtype).eps) if array.dtype.kind in "fc" else 0.0
        given, wanted = np.array(sampled(x), complex), np.array(samples, complex)
        if not np.allclose(given, wanted, rtol=precision**0.5, atol=largest * precision**0.5, equal_nan=True):
            return f"result {k} is {sampled(x)}, not {samples}"
    return ""


def self_test(function: Any, example: Any, expected: Any) -> int:
    """Run a function on its example, and compare; 0 if all is well, else 1."""
    args, kwargs = example()
    wrong = difference(function(*args, **kwargs), expected)
    sys.stdout.write(f"{Path(sys.argv[0]).name}: {wrong or f'{len(expected)} results as expected'}\n")
    return 1 if wrong else 0
