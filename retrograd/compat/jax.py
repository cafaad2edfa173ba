"""to_jax: compiled functions in JAX programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from typing import Any, Literal, get_args

import numpy as np

from ..api.batching import vmap
from ..api.eval_shape import eval_shape
from ..api.jit import jit
from ..compiler.settings import OVERRIDES, config
from ..errors import ControlFlowError, OptionError, ShapeError, TreeError, UnsupportedError
from ..tracer.containers import flatten_like
from ..tracer.outside import trace_here
from ..tracer.tree import Spec, flatten, unflatten
from ..where import user_site
from .flat_calls import Frame, Restricted, is_inexact, package, refuse_draws

VmapMethod = Literal["sequential", "sequential_unrolled", "expand_dims", "broadcast_all"]
VALUES = (int, str, bytes)  # static arguments that are known by their value
MOST_KINDS = 64  # of calls of one function, that are kept

Function = Callable[..., Any]


def to_jax(function: Function, *, vmap_method: VmapMethod = "sequential", result_shape_dtypes: Any = None) -> Function:
    """A compiled function for JAX's programs: a ``jax.pure_callback`` with its derivative.

    It can be called inside of ``jax.jit``, ``jax.grad``, ``jax.vjp``, ``jax.jacrev`` and ``jax.vmap``; reverse mode has
    every order. Dtypes are JAX's: without ``jax_enable_x64`` doubles become single. Ints and bools have no derivative.

    Parameters
    ----------
    function : callable
        A plain NumPy function.
    vmap_method : str
        How ``jax.vmap`` runs it: ``"sequential"``, one batch element after the other, or ``"broadcast_all"`` or
        ``"expand_dims"``, all at once under ``rg.vmap``.
    result_shape_dtypes : tree, optional
        Anything with ``shape`` and ``dtype`` for each result, where Python decides by values. By default
        ``rg.eval_shape`` finds them.

    Returns
    -------
    callable
        It takes and returns trees of JAX's arrays and numbers; other arguments are static.

    Raises
    ------
    UnsupportedError
        If JAX is not installed, for results other than numbers, and for draws of random numbers.
    ControlFlowError
        If Python decides by a traced value and the shapes of the results are not given.
    ShapeError, TreeError, OptionError
        If the results or an option do not fit.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> import jax  # doctest: +SKIP
    >>> norm = rg.to_jax(lambda x: np.sqrt(np.sum(x * x)))  # doctest: +SKIP
    >>> jax.jit(jax.grad(norm))(jax.numpy.array([3.0, 4.0]))  # doctest: +SKIP
    Array([0.6, 0.8], dtype=float32)
    """
    if vmap_method not in get_args(VmapMethod):
        raise OptionError(
            f"vmap_method={vmap_method!r}", remedy=f"choose one of {', '.join(map(repr, get_args(VmapMethod)))}"
        )
    made = JaxFunction(package("jax", "rg.to_jax"), function, vmap_method, result_shape_dtypes)

    def in_jax(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if trace_here() is not None else made(*args, **kwargs)

    return update_wrapper(in_jax, function, updated=())


class JaxFunction:
    """A function in JAX's programs; calls with arguments of one kind share what was made for the first."""

    def __init__(self, jax: Any, function: Function, vmap_method: VmapMethod, results: Any) -> None:
        self.jax, self.function, self.vmap_method, self.results = jax, function, vmap_method, results
        self.compiled = jit(function)
        self._kinds: dict[Any, JaxKind] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        frame, operands, others = Frame.of(args, kwargs, self._is_operand)
        for x in others:
            if x is not None and not self.jax.tree_util.all_leaves([x]):
                raise TreeError(
                    f"a {type(x).__name__} is a container to JAX, but not to retrograd",
                    remedy="register its class by rg.register_container, too",
                )
        avals = tuple(map(self._aval, operands))
        fixed = tuple((type(x), x if isinstance(x, VALUES) else id(x)) for x in others)
        key = (frame, tuple((a.shape, a.dtype, a.weak_type) for a in avals), fixed, config.now())
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            kind = self._kinds[key] = JaxKind(self, frame, avals, others)
        return unflatten(kind.out_spec, kind.run(*operands))

    def _is_operand(self, x: Any) -> bool:
        return isinstance(x, (self.jax.Array, np.ndarray, np.generic, float, complex))

    def _aval(self, x: Any) -> Any:
        """Shape and dtype as JAX has them, and whether it is a plain number to JAX, which takes the dtype of others."""
        dtype = self.jax.numpy.result_type(x)
        if not isinstance(dtype, np.dtype):
            raise UnsupportedError(
                f"an argument is a JAX array of {dtype}, which NumPy does not have",
                remedy="pass an array of numbers: of a random key, jax.random.key_data(key)",
            )
        weak = dtype.kind in "fc" and (type(x) in (float, complex) or getattr(x, "weak_type", False))
        return self.jax.ShapeDtypeStruct(np.shape(x), dtype, weak_type=weak)


class JaxKind:
    """What calls with the same shapes, dtypes and static arguments share: JAX's function of the arrays."""

    def __init__(self, owner: JaxFunction, frame: Frame, avals: Sequence[Any], others: tuple[Any, ...]) -> None:
        self._owner, self._frame, self._avals, self._others = owner, frame, avals, others
        self._where = user_site()[0]
        self._settings = config.now()  # JAX calls from threads of its own
        self._pure = False  # as far as is known
        self._pulled: dict[tuple[int, ...], JaxFunction] = {}
        self._lanes = vmap(self._one_lane, in_axes=(0, None))
        self.shapes, self.out_spec = self._results()
        self.run = owner.jax.custom_vjp(self._value)
        self.run.defvjp(self._forward, self._backward, symbolic_zeros=True)

    def _results(self) -> tuple[list[Any], Spec]:
        """Shapes and dtypes of the results, and the structure of these."""
        jax, results = self._owner.jax, self._owner.results
        if results is None:
            examples = [a.dtype.type(0).item() if a.weak_type else a for a in self._avals]
            try:
                results = self._frame.call(partial(eval_shape, self._owner.function), examples, self._others)
            except ControlFlowError as fault:
                remedy = "give rg.to_jax the shapes of the results: result_shape_dtypes=jax.ShapeDtypeStruct(...)"
                raise ControlFlowError(fault.what, where=fault.where, remedy=remedy) from None
        leaves, spec = flatten(results)
        for x in leaves:
            if not hasattr(x, "shape") or not hasattr(x, "dtype"):
                raise UnsupportedError(
                    f"a result is a {type(x).__name__}, which JAX does not support",
                    remedy="return arrays and numbers, in containers",
                )
        return [jax.ShapeDtypeStruct(x.shape, jax.dtypes.canonicalize_dtype(x.dtype)) for x in leaves], spec

    def _value(self, *operands: Any) -> Any:
        return self._owner.jax.pure_callback(self._on_host, self.shapes, *operands, vmap_method=self._owner.vmap_method)

    def _forward(self, *operands: Any) -> Any:
        moving = {i: x.value for i, x in enumerate(operands) if x.perturbed and is_inexact(x.value)}
        still = {i: x.value for i, x in enumerate(operands) if i not in moving}
        return self.run(*(x.value for x in operands)), (moving, still)

    def _backward(self, kept: tuple[dict[int, Any], dict[int, Any]], cts: Sequence[Any]) -> tuple[Any, ...]:
        """The cotangents of all operands; JAX wants zeros for those that are not differentiated."""
        jax, (moving, still) = self._owner.jax, kept
        given = [
            jax.numpy.zeros(s.shape, s.dtype) if isinstance(ct, jax.custom_derivatives.SymbolicZero) else ct
            for ct, s in zip(cts, self.shapes, strict=True)
            if s.dtype.kind in "fc"
        ]
        pulled = self._pullback(tuple(moving))([*moving.values()], [*still.values()], self._others, given)
        found = dict(zip(moving, pulled, strict=True))
        return tuple(found[i] if i in found else self._zeros(a) for i, a in enumerate(self._avals))

    def _zeros(self, aval: Any) -> Any:
        if aval.dtype.kind in "fc":
            return self._owner.jax.numpy.zeros(aval.shape, aval.dtype)
        return np.zeros(aval.shape, self._owner.jax.dtypes.float0)

    def _pullback(self, moving: tuple[int, ...]) -> JaxFunction:
        """The pullback to these operands, as a function in JAX's programs, so that it has a derivative as well."""
        if moving not in self._pulled:
            owner, results = self._owner, [self._avals[i] for i in moving]
            pulled = Restricted(owner.function, self._frame, moving).pulled
            self._pulled[moving] = JaxFunction(owner.jax, pulled, owner.vmap_method, results)
        return self._pulled[moving]

    def _on_host(self, *operands: Any) -> list[Any]:
        """The results, computed by compiled code; further axes of the operands, before their own, are lanes."""
        pairs = [(np.asarray(x), a) for x, a in zip(operands, self._avals, strict=True)]
        lanes = np.broadcast_shapes(*(x.shape[: x.ndim - len(a.shape)] for x, a in pairs))
        if lanes:
            stacked = [np.broadcast_to(x, lanes + a.shape).reshape(-1, *a.shape) for x, a in pairs]
            results = self._run(self._lanes, stacked, self._others)
        else:
            given = [x.item() if a.weak_type else x[()] for x, a in pairs]
            results = self._frame.call(partial(self._run, self._owner.compiled), given, self._others)
        leaves = flatten_like(self.out_spec, results, "the results")
        return [self._fitted(x, s, lanes) for x, s in zip(leaves, self.shapes, strict=True)]

    def _run(self, compiled: Any, *args: Any, **kwargs: Any) -> Any:
        token = OVERRIDES.set(self._settings)
        try:
            if not self._pure:
                refuse_draws(compiled, args, kwargs, "JAX runs it again for its derivative")
                self._pure = True
            return compiled(*args, **kwargs)
        finally:
            OVERRIDES.reset(token)

    def _one_lane(self, arrays: Sequence[Any], others: Sequence[Any]) -> Any:
        return self._frame.call(self._owner.function, arrays, others)

    def _fitted(self, x: Any, wanted: Any, lanes: tuple[int, ...]) -> Any:
        """A result as JAX expects it."""
        found = np.asarray(x)
        if lanes:
            found = found.reshape(lanes + found.shape[1:])
        if found.shape != lanes + wanted.shape or not np.can_cast(found.dtype, wanted.dtype, "same_kind"):
            raise ShapeError(
                f"a result is {found.dtype}{[*found.shape]}, but JAX expects {wanted.dtype}{[*wanted.shape]}",
                where=self._where,
                remedy="JAX programs have fixed shapes, which must not depend on values or on outside state",
            )
        return found.astype(wanted.dtype, copy=False)
