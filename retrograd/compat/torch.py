"""to_torch: compiled functions in PyTorch programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, update_wrapper
from typing import Any

import numpy as np

from ..api.jit import jit
from ..errors import UnsupportedError
from ..tracer.outside import trace_here
from ..tracer.tree import flatten, unflatten
from .flat_calls import Frame, Restricted, is_inexact, package, refuse_draws, seeded

MOST_KINDS = 64  # of calls of one function, that are kept

Function = Callable[..., Any]


def to_torch(function: Function) -> Function:
    """A compiled function for PyTorch's tensors: a ``torch.autograd.Function`` with its pullback.

    Tensors with ``requires_grad`` are differentiated, and no others, to any order. ``torch.compile`` leaves the call as
    it is, and ``torch.func`` does not go through it.

    Parameters
    ----------
    function : callable
        A plain NumPy function. It gets arrays that share the tensors' memory, with their dtypes.

    Returns
    -------
    callable
        It takes and returns trees of tensors on the CPU. Arrays and numbers among the arguments are constants. Results
        other than arrays are unchanged.

    Raises
    ------
    UnsupportedError
        If PyTorch is not installed, and for tensors that NumPy does not have: on another device, sparse, of bfloat16.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> import torch  # doctest: +SKIP
    >>> norm = rg.to_torch(lambda x: np.sqrt(np.sum(x * x)))  # doctest: +SKIP
    >>> x = torch.tensor([3.0, 4.0], requires_grad=True)  # doctest: +SKIP
    >>> norm(x).backward()  # doctest: +SKIP
    >>> x.grad  # doctest: +SKIP
    tensor([0.6000, 0.8000])
    """
    torch = package("torch", "rg.to_torch")
    made = TorchFunction(torch, function)

    def in_torch(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if trace_here() is not None else made(*args, **kwargs)

    wrapper: Function = torch.compiler.disable(update_wrapper(in_torch, function, updated=()))
    return wrapper


class TorchFunction:
    """A function of tensors; calls with arguments of one kind share what was made for the first."""

    def __init__(self, torch: Any, function: Function) -> None:
        self.torch, self._function = torch, function
        self._compiled = jit(function)
        self._kinds: dict[Any, TorchKind] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        frame, operands, others = Frame.of(args, kwargs, self._is_operand)
        moving = tuple(i for i, x in enumerate(operands) if self._moves(x))
        if not moving:
            leaves, spec = flatten(frame.call(self._compiled, [array_of(x) for x in operands], others))
            return unflatten(spec, [tensor_of(self.torch, x) if is_array(x) else x for x in leaves])
        kind = self._kinds.get((frame, moving))
        if kind is None:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            kind = TorchKind(self.torch, Restricted(self._function, frame, moving))
            self._kinds[frame, moving] = kind
        return TorchStep(kind, operands, others).run()

    def _is_operand(self, x: Any) -> bool:
        return isinstance(x, (self.torch.Tensor, np.ndarray, np.generic, float, complex))

    def _moves(self, x: Any) -> bool:
        return isinstance(x, self.torch.Tensor) and x.requires_grad and self.torch.is_grad_enabled()


class TorchKind:
    """A function of the operands of one kind of call, some of which are differentiated."""

    def __init__(self, torch: Any, function: Restricted) -> None:
        self.torch, self.function = torch, function
        self.pulled = TorchFunction(torch, function.pulled)


class TorchStep:
    """One call in PyTorch's graph, and its step back."""

    def __init__(self, kind: TorchKind, operands: Sequence[Any], others: tuple[Any, ...]) -> None:
        self._kind, self._torch, self._others = kind, kind.torch, others
        self._places = [i for i, x in enumerate(operands) if isinstance(x, kind.torch.Tensor)]
        self._operands = [None if i in self._places else x for i, x in enumerate(operands)]
        self._tensors = [operands[i] for i in self._places]
        self._leaves: list[Any] = []  # of the results; None for those that are tensors
        self._inexact: list[bool] = []  # of those that are tensors
        self._pullback: Callable[[Sequence[Any]], Any]

    def run(self) -> Any:
        """The results of the call."""
        tensors, self._tensors = self._tensors, []  # PyTorch keeps them, and notices who writes into them
        found = iter(_step_function(self._torch).apply(self, *tensors))
        return unflatten(self._spec, [next(found) if x is None else x for x in self._leaves])

    def forward(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """The results that are tensors."""
        moving, still = self._kind.function.parted([array_of(x) for x in self._all(tensors)])
        out, pullback = self._kind.function.vjp(moving, still, self._others)
        leaves, self._spec = flatten(out)
        arrays = [x for x in leaves if is_array(x)]
        self._leaves = [None if is_array(x) else x for x in leaves]
        self._inexact = [is_inexact(x) for x in arrays]
        self._pullback = lambda cts: pullback(seeded(out, cts))[0]
        return tuple(tensor_of(self._torch, x) for x in arrays)

    def exact(self, results: Sequence[Any]) -> list[Any]:
        """Those results that have no cotangent."""
        return [x for x, inexact in zip(results, self._inexact, strict=True) if not inexact]

    def backward(self, tensors: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """A cotangent for each tensor, None for those that are constant; in a graph where PyTorch makes one.

        PyTorch's cotangents of complex numbers are the conjugates of ours.
        """
        given = [ct.conj() for ct, inexact in zip(cts, self._inexact, strict=True) if inexact]
        if self._torch.is_grad_enabled():
            arrays = self._kind.function.parted([array_of(x) for x in self._all(tensors)])
            refuse_draws(self._kind.function.vjp, (*arrays, self._others), {}, "double backward runs it again")
            moving, still = self._kind.function.parted(self._all(tensors))
            found = iter(self._kind.pulled(moving, still, self._others, given))
        else:
            found = (tensor_of(self._torch, x) for x in self._pullback([array_of(ct) for ct in given]))
        return [next(found).conj() if i in self._kind.function.moving else None for i in self._places]

    def _all(self, tensors: Sequence[Any]) -> list[Any]:
        """All operands of the call."""
        made = list(self._operands)
        for i, x in zip(self._places, tensors, strict=True):
            made[i] = x
        return made


@cache
def _step_function(torch: Any) -> Any:
    """The ``torch.autograd.Function`` that takes a step and its tensors."""

    def forward(ctx: Any, step: TorchStep, *tensors: Any) -> tuple[Any, ...]:
        results = step.forward(tensors)
        ctx.step = step
        ctx.save_for_backward(*tensors)
        ctx.mark_non_differentiable(*step.exact(results))
        return results

    def backward(ctx: Any, *cts: Any) -> tuple[Any, ...]:
        return None, *ctx.step.backward(ctx.saved_tensors, cts)

    members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("RetrogradStep", (torch.autograd.Function,), members)


def is_array(x: Any) -> bool:
    """Whether a result becomes a tensor."""
    return isinstance(x, (np.ndarray, np.generic))


def tensor_of(torch: Any, x: Any) -> Any:
    """A result as a tensor, which shares its memory."""
    return torch.from_numpy(np.asarray(x))


def array_of(x: Any) -> Any:
    """An operand for the compiled function: a tensor as an array that shares its memory, or as a number.

    Raises UnsupportedError.
    """
    if not hasattr(x, "detach"):
        return x
    if x.device.type != "cpu":
        raise UnsupportedError(f"a tensor on the device {x.device}", remedy="pass x.cpu(), since NumPy runs on the CPU")
    if str(x.layout) != "torch.strided":
        raise UnsupportedError(f"a tensor of the layout {x.layout}", remedy="pass x.to_dense()")
    try:
        return x.detach().resolve_conj().resolve_neg().numpy()[()]
    except TypeError:
        raise UnsupportedError(f"a tensor of {x.dtype}, which NumPy does not have", remedy="pass x.float()") from None
    except RuntimeError as fault:
        remedy = "call the function outside of torch.func's transforms; rg.vmap, rg.jvp and rg.hessian take arrays"
        raise UnsupportedError(f"a tensor without its own memory: {fault}", remedy=remedy) from None
