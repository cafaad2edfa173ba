"""Names of modules: ``….autograd.numpy`` is NumPy, and after ``install()`` this package is ``autograd``.

The import system asks a finder here before it would look into NumPy's folders and load NumPy a second time.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np

from ...errors import OptionError

HOME = __name__.rpartition(".")[0]
NAME = "autograd"
OURS = {"numpy.numpy_boxes": f"{HOME}.numpy_boxes", "numpy.numpy_vjps": f"{HOME}.numpy_vjps"}
OURS |= {f"scipy.{name}": f"{HOME}.scipy.{name}" for name in ("signal",)}


def meaning(name: str) -> str | None:
    """The real name of a module that is asked for, if it is one of these."""
    for prefix in (HOME, NAME) if sys.modules.get(NAME) is sys.modules.get(HOME) else (HOME,):
        rest = name.removeprefix(f"{prefix}.")
        if rest == name:
            continue
        if rest in OURS:
            return OURS[rest] if OURS[rest] != name else None
        if rest == "numpy" or rest.startswith(("numpy.", "scipy.")):
            return rest
        return f"{HOME}.{rest}" if prefix == NAME else None
    return None


class RealModules(MetaPathFinder, Loader):
    """Finds modules that are known under other names, and objects such as ``scipy.stats.norm``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See ``importlib``."""
        return None if meaning(fullname) is None else ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        """The real module takes the place of the one that was made for it."""
        name = module.__name__
        real = meaning(name)
        assert real is not None
        sys.modules[name] = _found(real, name)


def _found(real: str, name: str) -> ModuleType:
    try:
        return import_module(real)
    except ModuleNotFoundError as missing:
        if missing.name != real:
            raise
    parent, _, last = real.rpartition(".")
    found: ModuleType | None = getattr(import_module(parent), last, None)
    if found is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return found


def _below_numpy(prefix: str) -> dict[str, ModuleType]:
    """NumPy and the modules that NumPy does not have, which the import system would set as its attributes."""
    own = {f"{prefix}.{rest}": import_module(real) for rest, real in OURS.items() if rest.startswith("numpy.")}
    return {f"{prefix}.numpy": np, **own}


def install() -> None:
    """From now on ``import autograd`` gives this package, in the whole process; ``uninstall()`` ends it.

    Raises OptionError if the package autograd itself is loaded.
    """
    ours = sys.modules[HOME]
    if sys.modules.get(NAME, ours) is not ours:
        raise OptionError(
            "the package autograd is already loaded, and parts of the program use its functions",
            remedy="call retrograd.compat.autograd.install() before the first import of autograd",
        )
    sys.modules.update({NAME: ours, **_below_numpy(NAME)})


def uninstall() -> None:
    """Take back ``install()``: later imports of ``autograd`` find the package of that name, if there is one."""
    if sys.modules.get(NAME) is sys.modules[HOME]:
        for name in [name for name in list(sys.modules) if name == NAME or name.startswith(f"{NAME}.")]:
            del sys.modules[name]


def prepare() -> None:
    """Put the names below this package in place; done once, when it is loaded."""
    sys.modules.update(_below_numpy(HOME))
    sys.meta_path.insert(0, RealModules())
