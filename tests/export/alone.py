"""Runs exported modules where retrograd cannot be imported: ``python -I -S alone.py FOLDER``.

It reads ``calls.pickle``, by name the arguments of a call, and writes ``found.pickle``, by name what came out of it.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def module_at(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look there
    spec.loader.exec_module(module)
    del sys.modules[path.stem]
    return module


def with_classes(tree: Any, module: ModuleType) -> Any:
    """A tree with objects of the module's classes for what ``described`` made of others."""
    if isinstance(tree, dict) and "class" in tree:
        fields = {name: with_classes(x, module) for name, x in tree["fields"].items()}
        return getattr(module, tree["class"])(**fields)
    if isinstance(tree, dict):
        return {name: with_classes(x, module) for name, x in tree.items()}
    return type(tree)(with_classes(x, module) for x in tree) if type(tree) in (list, tuple) else tree


def main(folder: Path) -> None:
    found: dict[str, Any] = {}
    for name, (args, kwargs) in pickle.loads((folder / "calls.pickle").read_bytes()).items():
        module = module_at(folder / f"{name}.py")
        function = getattr(module, module.RECORD["function"])
        found[name] = bits(function(*with_classes(args, module), **with_classes(kwargs, module)))
        example, named = module._example()
        assert not module._difference(function(*example, **named), module._EXPECTED), name
    assert not [name for name in sys.modules if name.startswith("retrograd.")]
    (folder / "found.pickle").write_bytes(pickle.dumps(found))


def bits(tree: Any) -> Any:
    """A tree with types, dtypes, layouts and bytes in place of numbers and arrays."""
    if isinstance(tree, dict):
        return {key: bits(x) for key, x in tree.items()}
    if hasattr(tree, "__dataclass_fields__"):
        return type(tree).__name__, {name: bits(getattr(tree, name)) for name in tree.__dataclass_fields__}
    if isinstance(tree, (list, tuple)):
        return type(tree).__name__, [bits(x) for x in tree]
    if type(tree).__module__ == "numpy":
        return type(tree).__name__, tree.dtype.str, tree.shape, tree.strides, tree.tobytes()
    return type(tree).__name__, repr(tree)


if __name__ == "__main__":
    sys.path += sys.argv[2].split(os.pathsep)  # where NumPy and SciPy are
    sys.modules["retrograd"] = None  # type: ignore[assignment]  # so importing it fails
    main(Path(sys.argv[1]))
