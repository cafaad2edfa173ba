"""Sparse Jacobians: the graph gives the pattern of entries, and one product computes columns that share no row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..compiler.compiled import Compiled
from ..compiler.paths import FINDERS, Paths
from ..compiler.signature import Argnums, wanted
from ..compiler.stages import settled
from ..compiler.transform import Transform
from ..errors import OptionError, UnsupportedError
from ..ir.types import Aval
from ..passes.find_sparsity import find_sparsity
from ..tracer.outside import trace_here
from .along_tangents import jvp
from .at_a_point import vjp
from .batching import vmap
from .restricted import by_complex, restricted

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class SparseJacobian(Compiled):
    """The Jacobian of a function of one array as a ``csr_array``, with a row per element of the result."""

    def __init__(
        self, function: Callable[..., Any], argnums: Argnums, mode: str, label: str, backend: str | None = None
    ) -> None:
        super().__init__(function, Transform(label, backend=backend))
        self._argnums, self._mode = argnums, mode
        self._push = Compiled(self._pushed, self._transform)
        self._pull = Compiled(self._pulled, self._transform)
        self._found: dict[int, Compression] = {}

    def parts(self) -> tuple[Any, ...]:
        return type(self), (self._user, self._argnums, self._mode, self._transform.label, self._transform.backend)

    def _pushed(self, seeds: Any, *args: Any, **kwargs: Any) -> Any:
        """The Jacobian times each of the seeds."""
        f, (x,), _ = restricted(self._function, self._argnums, args, kwargs)
        return vmap(lambda v: jvp(f, (x,), (v,))[1])(seeds)

    def _pulled(self, seeds: Any, *args: Any, **kwargs: Any) -> Any:
        """Each of the seeds times the Jacobian."""
        f, leaves, _ = restricted(self._function, self._argnums, args, kwargs)
        pullback = vjp(f, *leaves)[1]
        return vmap(lambda ct: pullback(ct)[0])(seeds)

    def __call__(self, *args: Any, **kwargs: Any) -> csr_array:
        try:
            from scipy.sparse import csr_array  # scipy is an extra
        except ImportError:
            raise UnsupportedError(
                "sparse=True needs SciPy, which cannot be imported", remedy="install SciPy, or leave sparse=True out"
            ) from None
        pattern, x, out = self._pattern(args, kwargs)
        if id(pattern) not in self._found:
            self._found[id(pattern)] = compress(pattern, self._mode)
        c = self._found[id(pattern)]
        like, other = (x, out) if c.columns else (out, x)
        times, seeds = self._push if c.columns else self._pull, c.seeds(like)
        products = times(seeds, *args, **kwargs)
        if like.dtype.kind == "c":
            products = by_complex(products, times(1j * seeds, *args, **kwargs))
        data = products.reshape(c.count, other.size)[c.at]
        data = data if out.inexact else data.astype(x.dtype)  # zeros
        return csr_array((data, pattern.indices, pattern.indptr), shape=pattern.shape)

    def _pattern(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[csr_array, Any, Any]:
        """The pattern of possible entries, and the avals of the argument and of the result."""
        if trace_here() is not None:
            raise UnsupportedError(
                f"{self!r} is called inside a traced function, but a sparse matrix cannot be traced",
                remedy="leave sparse=True out there, or use rg.jvp, rg.vjp and rg.hvp",
            )
        found = FINDERS[-1](self, self._take(args, kwargs))
        call = found.call
        now = found.paths.present(found.captures) if isinstance(found.paths, Paths) else {}
        path = found.paths.way(self, *found.operands)
        active = wanted(call, self._function, self._argnums).active
        if sum(active) != 1 or not path.recorded.out_spec.is_leaf() or path.recorded.statics:
            raise OptionError(
                f"{self!r} needs one array as its argument and one as its result",
                remedy="name one argument in argnums, and join arrays by np.concatenate",
            )
        values = [*call.values(), *(now.get(id(c.payload), c.payload) for c in path.recorded.captures)]
        k, traced = active.index(True), path.derived.graph
        graph = traced.once(("settled", path.settings), lambda: settled(traced, path.settings))
        return find_sparsity(graph, k, values)[0], graph.inputs[k].aval, graph.outputs[0].aval


def without_aux(has_aux: bool) -> None:
    """OptionError for an auxiliary result beside a sparse matrix."""
    if has_aux:
        raise OptionError("has_aux=True and sparse=True", remedy="leave out one of them, and call the function for aux")


@dataclass(frozen=True, eq=False)
class Compression:
    """A colouring of the columns or the rows; ``at`` is the position of each entry of the pattern in the products."""

    pattern: csr_array
    columns: bool
    colours: np.ndarray[Any, Any]
    at: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]

    @property
    def count(self) -> int:
        """The number of colours."""
        return int(self.colours.max(initial=-1)) + 1

    def seeds(self, like: Aval) -> np.ndarray[Any, Any]:
        """For each colour, the sum of the unit vectors of that colour."""
        seeds = np.zeros((self.count, self.colours.size), like.dtype)
        seeds[self.colours, np.arange(self.colours.size)] = 1
        return seeds.reshape(self.count, *like.shape)


def compress(pattern: csr_array, mode: str) -> Compression:
    """The colouring of columns ("fwd") or rows ("rev"); "auto" takes the side whose fullest line is shorter."""
    turned = pattern.T.tocsr()
    columns = mode == "fwd" or (mode == "auto" and _fullest(pattern) <= _fullest(turned))
    colours = colour(pattern if columns else turned)
    cols = pattern.indices
    rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
    return Compression(pattern, columns, colours, (colours[cols], rows) if columns else (colours[rows], cols))


def _fullest(pattern: csr_array) -> int:
    """The largest number of entries in a row, which is the least number of colours."""
    return int(np.diff(pattern.indptr).max(initial=0))


def colour(pattern: csr_array) -> np.ndarray[Any, Any]:
    """A number for each column, different where two columns share a row (Curtis, Powell, Reid 1974)."""
    import networkx as nx  # heavy

    n = pattern.shape[1]
    if 2 * _fullest(pattern) > n:  # colours would save little
        return np.arange(n)
    counts = pattern.astype(np.int32)
    colours = nx.greedy_color(nx.from_scipy_sparse_array(counts.T @ counts), "largest_first")
    return np.array([colours[k] for k in range(n)], dtype=int)
