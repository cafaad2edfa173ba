"""One thread of a BLAS: of NumPy's while small products follow each other, of SciPy's while it solves small systems.

OpenBLAS distributes products from a quarter of a million multiplications on, and its threads wait for the next one by
spinning. If they are many, that gains little, and with a busy neighbour each waits for a slice of the scheduler.
SciPy has a BLAS of its own, with as many threads again, for which those of NumPy's leave no core free.
"""

from __future__ import annotations

import ctypes
import math
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache, partial, wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...ir.graph import Graph, Node
from ...ir.loop_node import loop_of
from ...ir.rewrite import walk
from ...ops.formulas import factors
from .target import AROUND

Shape = tuple[int, ...]

SHARED = 2**18  # multiplications from which OpenBLAS shares a product among threads
MATRIX_TIMES_VECTOR = 2**13  # ... of a matrix and a vector
LARGE = 25_000_000  # multiplications from which threads are worth it in a loop
SEVERAL, SMALL = 8, 4_000_000  # so many products outside of loops that are smaller than this
FEW = 16  # steps of a loop that counts as what it would be without one: a stack of matrices one by one has such loops
FORMS = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads", "openblas_{}_num_threads")
SYSTEMS = frozenset(  # primitives that SciPy computes
    {
        *("solve_triangular", "lu_factor", "lu_by_lapack", "solve_by_lu"),
        *("cholesky_by_lapack", "half_inverse_by_lapack", "inverse_of_triangle"),
    }
)
PRODUCTS = frozenset({"dot", "matmul", "value_within", "write_within"})  # primitives that may multiply by BLAS
LOOPS = frozenset({"scan", "while_loop", "sweep", "unsweep"})


def _around(graph: Graph) -> Callable[[Any], Any] | None:
    names = {prim.name for inner in (graph, *_bodies(graph)) for prim in inner.prims}
    solves = not names.isdisjoint(SYSTEMS)
    packages = ["numpy"] if not names.isdisjoint(PRODUCTS) and small_products(graph, solves) else []
    if solves and small_systems(graph):
        packages.append("scipy")
    return partial(on_one_thread, packages=packages) if packages else None


AROUND.append(_around)


def _bodies(graph: Graph) -> list[Graph]:
    return [body for node in walk(graph) for _, body in node.graphs] if graph.nested else []


def small_products(graph: Graph, solves: bool = False) -> bool:
    """Whether a graph has products, in loops or many, that threads would slow down, and none that they would help.

    If SciPy also ``solves`` systems, one product is enough: the threads that it wakes would keep SciPy's waiting.
    """
    steps: dict[int, float] = {}
    for loop in (node for node in walk(graph) if node.prim.name in LOOPS):
        found = loop_of(loop)
        for node in walk(loop):
            times = math.inf if found is None or found.length < 0 else found.length  # -1: known at run time
            steps[id(node)] = max(steps.get(id(node), 1), times)
    products = [(node, pair) for node in walk(graph) if node.prim.name in PRODUCTS for pair in _factors(node)]
    shared = [(node, n) for node, pair in products for n, least in [_multiplications(*pair)] if n >= least]
    number = sum(_stacked(node) * steps.get(id(node), 1) for node, _ in shared)
    in_number = number >= SEVERAL and all(n < SMALL for _, n in shared)
    looped = any(steps.get(id(node), 1) > FEW for node, _ in shared)
    return (in_number or looped or (solves and bool(shared))) and all(n < LARGE for _, n in shared)


def _stacked(product: Node) -> int:
    """The matrices of a product, which BLAS multiplies one by one."""
    return math.prod(product.out.aval.shape[:-2])


def small_systems(graph: Graph) -> bool:
    """Whether SciPy solves systems in a graph, all of them too small for threads."""
    sizes = [_cube(node) for node in walk(graph) if node.prim.name in SYSTEMS]
    return bool(sizes) and max(sizes) < LARGE


def _cube(system: Node) -> int:
    """About the multiplications of a system: the elements of its matrix times its rows."""
    matrix = system.inputs[0].aval.shape[-2:]
    return math.prod(matrix) * matrix[-1]


def _factors(node: Node) -> list[tuple[Shape, Shape]]:
    """The shapes of the factors of the products of a node; those of a formula are at their largest."""
    if node.prim.name not in ("dot", "matmul"):
        return factors(node)
    a, b = (v.aval.shape for v in node.inputs)
    return [(a, b)]


def _multiplications(a: Shape, b: Shape) -> tuple[int, int]:
    """The multiplications of one product, and from how many on it is shared."""
    n = math.prod(a[-2:]) * (b[-1] if len(b) > 1 else 1)
    return n, SHARED if len(a) > 1 and len(b) > 1 else MATRIX_TIMES_VECTOR


class _Limit:
    """The number of threads, set to one while any function that wants this runs, in any thread of Python's."""

    def __init__(self, read: Callable[[], int], write: Callable[[int], Any]) -> None:
        self._read, self._write = read, write
        self._lock = threading.Lock()
        self._running = self._before = 0
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        """Forget the threads of the other process, which will not leave here."""
        self._lock = threading.Lock()
        if self._running:
            self._running = 0
            self._write(self._before)

    def __enter__(self) -> None:
        with self._lock:
            if not self._running:
                self._before = self._read()
                if self._before > 1:
                    self._write(1)
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            if not self._running and self._before > 1:
                self._write(self._before)


@cache
def limit(package: str = "numpy") -> _Limit | None:
    """The limit of the OpenBLAS that a package brings; None where it has another BLAS."""
    spec = find_spec(package)
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec is not None else []
    for folder in folders:
        for path in (*folder.parent.glob(f"{package}.libs/*openblas*"), *folder.glob(".dylibs/*openblas*")):
            library = ctypes.CDLL(str(path))
            for form in FORMS:
                if hasattr(library, form.format("set")):
                    return _Limit(getattr(library, form.format("get")), getattr(library, form.format("set")))
    return None


def on_one_thread(function: Callable[..., Any], packages: Sequence[str] = ("numpy",)) -> Callable[..., Any]:
    """The function, during which the BLAS of each package has one thread; afterwards it has as many as before."""
    for package in packages:
        found = limit(package)
        function = function if found is None else _limited(function, found)
    return function


def _limited(function: Callable[..., Any], found: _Limit) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any) -> Any:
        with found:
            return function(*args)

    return call
