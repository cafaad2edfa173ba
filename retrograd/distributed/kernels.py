"""Shipments: what is done with each shard, as it is sent to workers, and how a worker makes code of it once."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import threading
from collections import ChainMap, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from ..api.along_tangents import jvp
from ..api.batching import vmap
from ..api.gradients import grad, value_and_grad
from ..api.jit import jit
from ..compiler.compiled import Compiled
from ..compiler.settings import OVERRIDES, Settings, config
from ..compiler.signature import Argnums, name_of
from ..errors import ArgnumsError, OptionError, RetrogradError, UnsupportedError
from ..export.loading import LoadedFunction, load
from .faults import TravelError

MOST_KERNELS = 32  # that a process keeps compiled


@dataclass(frozen=True)
class Kernel:
    """What is done with each shard: ``kind`` of ``function``, with these options. It is pickled with its function.

    ``memory`` is a budget in bytes for one process; ``lanes`` are the axes of a map.
    """

    kind: str
    function: Any
    argnums: Argnums = 0
    memory: int | None = None
    nan_safe: bool = False
    lanes: Any = 0

    @property
    def task(self) -> str:
        """What the tasks are called after the function's name."""
        return {"value_and_grad": "gradient"}.get(self.kind, self.kind)

    @property
    def name(self) -> str:
        """The name of the user's function, for tasks and messages."""
        return name_of(self.function) or type(self.function).__name__

    def build(self, threads: int) -> Compiled:
        """The compiled function of the parameters and a shard; ``threads`` of them share the budget of a process."""
        f = self.function
        if self.kind == "value_and_grad":
            share = None if self.memory is None else self.memory // threads
            built = value_and_grad(f, self.argnums, nan_safe=self.nan_safe, memory=share)
        elif self.kind == "hvp":
            built = jit(HessianProduct(f))
        else:
            built = vmap(f, in_axes=self.lanes)
        found: Compiled = built
        return found


class HessianProduct:
    """The Hessian of a loss in its first argument, times a direction: a function of point, direction and shard."""

    def __init__(self, loss: Callable[..., Any]) -> None:
        self.loss = loss
        self.__name__ = f"{name_of(loss)}_hvp"

    def __call__(self, x: Any, v: Any, *shard: Any) -> Any:
        return jvp(lambda x: grad(self.loss)(x, *shard), (x,), (v,))[1]


class JacobianRow:
    """One row of the Jacobian of a function of one array: a function of the row's number and the point."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__name__ = f"{name_of(function)}_row"

    def __call__(self, row: Any, x: Any) -> Any:
        return grad(lambda x: np.reshape(self.function(x), -1)[row])(x)


class Conditions(NamedTuple):
    """What a call depends on besides its arguments: ``rg.config``, and what NumPy does about errors (``np.geterr``)."""

    settings: Settings
    errors: dict[str, Any]

    @classmethod
    def now(cls) -> Conditions:
        """Those in force here; a function that is to be called at errors stays here, and a warning takes its place."""
        known = ("ignore", "warn", "raise", "print")
        return cls(config.now(), {kind: how if how in known else "warn" for kind, how in np.geterr().items()})

    def apply(self, function: Callable[..., Any], *args: Any) -> Any:
        """A call under these conditions."""
        token = OVERRIDES.set(self.settings)
        try:
            with np.errstate(**self.errors):
                return function(*args)
        finally:
            OVERRIDES.reset(token)


class Shipment(NamedTuple):
    """A kernel as bytes, their hash with that of the settings that it is compiled under, and its conditions."""

    digest: str
    payload: bytes
    conditions: Conditions
    name: str

    @classmethod
    def of(cls, kernel: Kernel) -> Shipment:
        """The shipment of a kernel, with what its function reads by value now; TravelError if it cannot be pickled."""
        try:
            payload = by_value(kernel)
        except Exception as fault:
            raise TravelError(
                f"{kernel.name} cannot be sent to workers: {type(fault).__name__}: {fault}",
                remedy="open files, locks and connections inside of the function, or where a shard is loaded",
            ) from fault
        conditions = Conditions.now()
        digest = hashlib.sha256(payload + repr(conditions.settings).encode()).hexdigest()
        return cls(digest, payload, conditions, kernel.name)


class Kernels:
    """The compiled kernels of a process, by the hashes of their shipments; the least recently used go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[tuple[str, int], Compiled] = OrderedDict()
        self.misses = 0

    def of(self, shipment: Shipment, threads: int) -> Compiled:
        """The kernel of a shipment, unpickled and built once; what it compiles is kept with it."""
        key = (shipment.digest, threads)
        with self._lock:
            found = self._made.get(key)
            if found is None:
                self.misses += 1
                found = self._made[key] = _unpickled(shipment).build(threads)
                if len(self._made) > MOST_KERNELS:
                    self._made.popitem(last=False)
            self._made.move_to_end(key)
            return found


KERNELS = Kernels()


def _unpickled(shipment: Shipment) -> Kernel:
    try:
        kernel: Kernel = pickle.loads(shipment.payload)  # noqa: S301 - from the client, whom workers trust
    except RetrogradError:
        raise
    except Exception as fault:
        raise TravelError(
            f"{shipment.name} was sent to a worker and cannot be unpickled there: {type(fault).__name__}: {fault}",
            remedy="install the module of the function on the workers, or send it: client.upload_file('module.py')",
        ) from fault
    return kernel


def function_of(loss: Any) -> Any:
    """What the user gave as a function: a function, or the file that ``f.save`` wrote."""
    if isinstance(loss, (str, os.PathLike)):
        return load(loss)
    if not callable(loss):
        raise OptionError(
            f"{loss!r:.80} is not a function", remedy="pass a function, or the path of a file that f.save wrote"
        )
    return loss


def plain(kernel: Kernel) -> Kernel:
    """A kernel whose loaded function is a plain callable, which is pickled as the contents of its file."""
    saved = getattr(kernel.function, "_user", None)
    return replace(kernel, function=saved) if isinstance(saved, LoadedFunction) else kernel


def check_argnums(argnums: Argnums, count: int) -> None:
    """ArgnumsError for positions other than those of the parameters, which stand before the arguments of a shard."""
    for k in argnums if isinstance(argnums, (tuple, list)) else (argnums,):
        if not isinstance(k, int) or isinstance(k, bool) or not 0 <= k < count:
            raise ArgnumsError(
                f"argnums={argnums!r}, but the parameters of this call are {', '.join(map(str, range(count)))}",
                remedy="give positions of parameters, since arguments of single shards have no common gradient",
            )


def needs_dask(name: str = "distributed") -> Any:
    """The package; UnsupportedError if it is not installed."""
    try:
        return import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] not in ("cloudpickle", "dask", "distributed"):
            raise
        raise UnsupportedError(
            f"this needs the package {name}, which is not installed",
            remedy="python -m pip install 'retrograd[distributed]'",
        ) from None


def by_value(x: Any) -> bytes:
    """A pickle by cloudpickle, in which code keeps the name of its file: errors on workers name the user's line."""
    file = io.BytesIO()
    _pickler()(file, protocol=pickle.HIGHEST_PROTOCOL).dump(x)
    return file.getvalue()


@cache
def _pickler() -> Any:
    plain = needs_dask("cloudpickle").Pickler
    reduced = plain.dispatch_table[CodeType]

    def with_file(code: CodeType) -> tuple[Any, ...]:
        return _in_file, (*reduced(code), "".join(code.co_filename))  # a new string: the bytes depend on it alone

    return type("Pickler", (plain,), {"dispatch_table": ChainMap({CodeType: with_file}, plain.dispatch_table)})


def _in_file(make: Callable[..., CodeType], parts: tuple[Any, ...], file: str) -> CodeType:
    return make(*parts).replace(co_filename=file)
