"""The members of compiled functions that write files."""

from __future__ import annotations

import inspect
import os
from typing import Any

from ..compiler.compiled import member
from ..errors import OptionError
from ..ir.target import VERSION


@member
def export(self: Any, path: str | os.PathLike[str], /, *args: Any, **kwargs: Any) -> None:
    """Write a module that computes this function for these arguments, with NumPy alone (and SciPy, if it is used).

    The module has a function with types, its shapes in a docstring, a record of what it was made of, and a self-test:
    ``python FILE``. Arrays of more than 64 elements are in an ``.npz`` beside it. State that the function reads is
    frozen. The module refuses other shapes, types, containers and decisions by name. On the native target its C is
    written, too; the first line of that file is the command that compiles it.

    Parameters
    ----------
    path : path
        The file.
    *args, **kwargs
        Arguments of a call.

    Raises
    ------
    UnsupportedError
        For what only this process can do: random numbers, host functions, states in files.

    Examples
    --------
    >>> import numpy as np, retrograd as rg, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "slope.py")
    ...     rg.grad(lambda x: np.sum(x**2)).export(path, np.ones(3))
    ...     print(path.read_text().splitlines()[0].strip('"'))
    <grad of <lambda>>, frozen as lambda_3_grad.
    """
    from .committed import export_to  # noqa: PLC0415 - few programs write files

    export_to(path, self, args, kwargs)


@member
def save(self: Any, path: str | os.PathLike[str], /, *args: Any, **kwargs: Any) -> None:
    """Write the function for these arguments into a file: its graph as text, arrays as data, and no program.

    ``rg.load(path)`` gives it back, in another process too. State that the function reads is frozen.

    Parameters
    ----------
    path : path
        The file.
    *args, **kwargs
        Arguments of a call. Without them, the one call is saved that the function knows.

    Raises
    ------
    UnsupportedError
        For what only this process can do: random numbers, host functions, primitives of your own, states in files.
    OptionError
        If the arguments are needed.

    Examples
    --------
    >>> import numpy as np, retrograd as rg, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "slope.rg")
    ...     rg.grad(np.sin).save(path, 0.5)
    ...     print(float(rg.load(path)(0.5)) == np.cos(0.5))
    True
    """
    from .frozen import freeze, freeze_known  # noqa: PLC0415 - few programs write files
    from .saving import saved_form, to_bytes, write_whole  # noqa: PLC0415 - likewise

    frozen = None if args or kwargs else freeze_known(self, "saved")
    if frozen is None:
        if not args and not kwargs and not _takes_nothing(self._function):
            raise OptionError(
                f"{self!r} has not been called yet, so its shapes are unknown",
                remedy="give the arguments of a call after the path: f.save(path, x)",
            )
        frozen = freeze(self, args, kwargs, "saved")
    write_whole(path, to_bytes(saved_form(frozen, VERSION)))


def _takes_nothing(function: Any) -> bool:
    """Whether a function may be called without arguments."""
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        return False
    return True
