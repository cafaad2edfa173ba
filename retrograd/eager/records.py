"""Record: a computation that is separate from its tensors and holds all that gradients need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from ..compiler.cache import CacheInfo
from ..errors import LeakedTracerError, NonDifferentiableError, NonScalarOutputError, OptionError, RecordMismatchError
from ..ir.types import aval_of
from ..tracer.trace import STOPPED, traceable
from ..where import user_site
from .arraylike import Eager
from .history import HISTORY, Step
from .operations import ArrayLike, copied, operation, request


class RecordTensor(Eager):
    """A value of a record. NumPy functions and operators on it run at once and are recorded.

    ``data`` is its value, read-only; it stays readable after its record is closed.
    """

    __slots__ = ("data", "position", "record")

    def __init__(self, record: Record, position: int, data: Any) -> None:
        self.record, self.position, self.data = record, position, data

    def apply(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        return self.record.apply(function, args, kwargs)

    def detach(self) -> RecordTensor:
        """The same value as a constant of the record."""
        return self.record.constant(self)

    def grad(self) -> Gradients:
        """The gradients of this value with respect to everything in its record.

        Returns
        -------
        Gradients
            ``.wrt(tensor)`` is the gradient with respect to one tensor.

        Raises
        ------
        NonScalarOutputError
            If the value has several elements.
        NonDifferentiableError
            If it is no floating-point number.
        LeakedTracerError
            If the record is closed.
        """
        return self.record.gradients(self)

    def __reduce__(self) -> Any:
        raise OptionError("a tensor of a record cannot be deep-copied or pickled", remedy="use t.data, or np.copy(t)")

    def __repr__(self) -> str:
        return f"RecordTensor({self.data!r})"


class Gradients:
    """The gradients of one value of a record: ``grads.wrt(tensor)``."""

    def __init__(self, record: Record, loss: int, step: Step) -> None:
        self._record, self._loss, self._step = record, loss, step
        self._values = record.values
        self._found = step.adjoint(loss)(self._values)

    def wrt(self, tensor: Any) -> Any:
        """The gradient with respect to one tensor, which may be an intermediate one.

        Parameters
        ----------
        tensor : RecordTensor
            A tensor of the same record.

        Returns
        -------
        array
            Of the shape and dtype of the tensor; zero if the value does not depend on it.

        Raises
        ------
        RecordMismatchError
            If the object is not a tensor of this record.
        NonDifferentiableError
            If the tensor holds integers.
        """
        if not isinstance(tensor, RecordTensor) or tensor.record is not self._record:
            raise RecordMismatchError(
                f"{tensor!r:.60} is not a tensor of the loss's record",
                remedy="pass a tensor created by rec.tensor, or computed from one",
            )
        k = tensor.position
        found = self._found.get(k)
        if found is not None:
            return found
        if not aval_of(tensor.data).inexact:
            raise NonDifferentiableError(f"a tensor of {tensor.dtype} has no gradient", remedy="create it from floats")
        if k > self._loss:  # the tensor was made after the loss
            self._found[k] = np.zeros(tensor.shape, tensor.dtype)[()]
        else:
            self._found = self._step.adjoint(self._loss, k)(self._values)
        return self._found[k]


class Record:
    """A computation graph of its own, to which its tensors belong.

    ``rec.tensor(value)`` enters a value. NumPy functions and operators on tensors run at once and are recorded.
    ``loss.grad().wrt(t)`` is a gradient. Gradients are compiled from the recorded operations, once for each sequence of
    operations, shapes and dtypes: a training loop that makes a record in each step compiles in the first step only. At
    the end of a ``with`` statement the record is closed and forgets all values.

    Raises
    ------
    RecordMismatchError
        If values of two records meet in one operation.
    LeakedTracerError
        If a closed record is used.

    Examples
    --------
    >>> import numpy as np, retrograd as rg
    >>> x, y = 2.0, 3.0
    >>> for k in range(2):
    ...     rec = rg.eager.Record()
    ...     tx, ty = rec.tensor(x), rec.tensor(y)
    ...     z = tx * ty
    ...     x = x - 0.1 * z.grad().wrt(tx)
    ...     print(round(float(x), 12))
    1.7
    1.4
    >>> print(z.data.round(12))
    5.1
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._steps: list[Step] = []
        self._step = HISTORY.begin()
        self._closed = False
        self._names: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget all values; tensors keep their data, but cannot be used or differentiated any more."""
        self._closed = True
        self.values, self._steps = [], []

    @staticmethod
    def cache_info() -> CacheInfo:
        """Counts over all records: steps found; steps recorded and gradients compiled; steps kept."""
        return HISTORY.info()

    def tensor(self, value: Any) -> RecordTensor:
        """Enter a value with respect to which gradients can be taken.

        Parameters
        ----------
        value : array, list or number
            The value, which is copied.

        Returns
        -------
        RecordTensor
            A tensor of this record.

        Raises
        ------
        RecordMismatchError
            If the value is a tensor of another record.
        UnsupportedError
            If its dtype is not traced.
        """
        if isinstance(value, ArrayLike):
            raise RecordMismatchError(
                f"{value!r:.60} is added to a record as a new value, which would lose its gradient",
                remedy="pass value.data if that is intended",
            )
        return RecordTensor(self, *self._leaf(copied(value)[()], variable=True))

    def unique(self, name: str | None, default: str) -> str:
        """``name``, if no other layer of this record has it, or ``default`` with the next free number.

        Raises OptionError if the name is taken.
        """
        if name is None:
            name = next(n for n in map(f"{default}{{}}".format, range(1, 10**9)) if n not in self._names)
        elif name in self._names:
            raise OptionError(
                f"two layers of one record are called {name!r}",
                remedy="give each its own name; call one layer twice to share its parameters",
            )
        self._names.add(name)
        return name

    def _leaf(self, value: Any, variable: bool) -> tuple[int, Any]:
        self._check_open()
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
            key: Any = (variable, value.shape, value.dtype)
        else:
            key = (variable, type(value))
        first = len(self.values)
        before = self._step
        self._step = before.then(key, lambda: Step(before, first, traceable(value), variable))
        self.values.append(value)
        self._steps.append(self._step)
        return first, value

    def _operand(self, x: Any) -> int:
        """The position of an operand; a plain value becomes a constant of the record."""
        if type(x) is RecordTensor:
            if x.record is not self:
                raise RecordMismatchError(
                    "one operation mixes tensors of two records",
                    remedy="add x.data to the other record, or use one record",
                )
            return x.position
        return self._leaf(np.array(x) if isinstance(x, np.ndarray) else x, variable=False)[0]

    def apply(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run a NumPy function on tensors of this record, and record it."""
        self._check_open()
        asked = request(function, args, kwargs, RecordTensor)
        positions = tuple([self._operand(x) for x in asked.operands])
        values = self.values
        given = [values[k] for k in positions]
        before = self._step

        def make() -> Step:
            made = operation(asked, given)
            return Step(before, len(values), None, False, made, positions, user_site()[0])

        step = before.then((asked.key, positions), make)
        assert step.operation is not None
        found = asked.call(*given)  # if this fails, the record stays as it is
        self._step = step
        result = step.operation.wrapped(found, self._result)
        return step.operation.wrapped(result, lambda t, _: self.constant(t)) if STOPPED.get() else result

    def _result(self, value: Any, _: int) -> RecordTensor:
        if type(value) is np.ndarray:
            value.flags.writeable = False
        self.values.append(value)
        self._steps.append(self._step)
        return RecordTensor(self, len(self.values) - 1, value)

    def constant(self, tensor: RecordTensor) -> RecordTensor:
        """The value of a tensor as a constant, which depends on nothing."""
        return RecordTensor(self, *self._leaf(tensor.data, variable=False))

    def gradients(self, loss: RecordTensor) -> Gradients:
        """The gradients of a tensor of this record."""
        self._check_open()
        if np.size(loss.data) != 1:
            raise NonScalarOutputError(
                f"grad() is called on a tensor of shape {loss.shape}, which has {loss.size} elements",
                remedy="reduce it to one number: np.sum(t).grad()",
            )
        if loss.dtype.kind != "f":
            raise NonDifferentiableError(
                f"a tensor of {loss.dtype} has no gradient",
                remedy="differentiate real numbers: np.real(t), np.abs(t), t.astype(float)",
            )
        return Gradients(self, loss.position, self._steps[loss.position])

    def _check_open(self) -> None:
        if self._closed:
            raise LeakedTracerError(
                "a closed record is used",
                remedy="compute inside its with statement; t.data remains readable",
            )
