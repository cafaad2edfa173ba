"""What a call costs beyond the generated body, for arguments of many structures: `python -m bench.dispatch`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np

import retrograd as rg
from bench import table
from bench.environment import describe
from bench.timing import sample, warm_up

WARM_UP_SECONDS = 0.1
Call = Callable[[], Any]


@dataclass
class Layer:
    """A dataclass of arrays."""

    w: Any
    b: Any


def summed(*args: Any, **kwargs: Any) -> Any:
    """The sum of the first and the last array."""
    leaves = _arrays((args, kwargs))
    return leaves[0] + leaves[-1]


def powered(x: Any, n: int, name: str) -> Any:
    """A function with arguments that are static."""
    return x * n if name == "x" else x


def as_dict(*arrays: Any) -> Any:
    """A dict of results."""
    return {f"a{k}": x for k, x in enumerate(as_list(*arrays))}


def as_layer(*arrays: Any) -> Any:
    """A dataclass of two results."""
    return Layer(*as_list(*arrays))


def as_nested(*arrays: Any) -> Any:
    """Tuples of a result and a pair of results."""
    found = as_list(*arrays)
    return tuple((found[k], (found[k + 1], found[k + 2])) for k in range(0, len(found), 3))


def as_list(*arrays: Any) -> list[Any]:
    """As many results as arrays."""
    return [x + x for x in arrays]


def _arrays(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, Layer):
        tree = [tree.w, tree.b]
    return [x for part in tree for x in _arrays(part)] if isinstance(tree, (list, tuple)) else [tree]


def cases(arrays: Sequence[Any]) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """For each row of the table: a function, its arguments, its keyword arguments."""
    pairs = list(zip(arrays[::2], arrays[1::2], strict=True))
    return {
        "1 array": (summed, tuple(arrays[:1]), {}),
        "2 arrays": (summed, tuple(arrays[:2]), {}),
        "4 arrays": (summed, tuple(arrays[:4]), {}),
        "8 arrays": (summed, tuple(arrays[:8]), {}),
        "100 arrays": (summed, tuple(arrays[:100]), {}),
        "a float": (summed, (1.5,), {}),
        "2 keywords": (summed, (), {"a": arrays[0], "b": arrays[1]}),
        "an int and a text": (powered, (arrays[0], 3, "x"), {}),
        "a dataclass of 2": (summed, (Layer(*arrays[:2]),), {}),
        "a dict of 20": (summed, ({f"a{k}": x for k, x in enumerate(arrays[:20])},), {}),
        "20 pairs": (summed, (tuple(pairs[:20]),), {}),
        "[(w, b), (w, b)], x, y": (summed, (pairs[:2], *arrays[4:6]), {}),
        "2 arrays → a dataclass": (as_layer, tuple(arrays[:2]), {}),
        "6 arrays → nested tuples": (as_nested, tuple(arrays[:6]), {}),
        "20 arrays → a list": (as_list, tuple(arrays[:20]), {}),
        "20 arrays → a dict": (as_dict, tuple(arrays[:20]), {}),
    }


def of_retrograd(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Call, Call]:
    """The compiled call, and the bare generated function with the same arrays."""
    compiled = rg.jit(function)
    leaves = [x for x in rg.tree.leaves((args, kwargs)) if not isinstance(x, (int, str))]
    return partial(compiled, *args, **kwargs), partial(compiled.executable(*args, **kwargs).function, *leaves)


def of_jax(function: Callable[..., Any], args: Any, kwargs: Any) -> Call | None:
    """The call of ``jax.jit``, which gets NumPy arrays, too."""
    if not find_spec("jax"):
        return None
    jax = import_module("jax")
    static = tuple(k for k, x in enumerate(args) if isinstance(x, (int, str)))
    compiled = jax.jit(function, static_argnums=static)
    return lambda: jax.block_until_ready(compiled(*args, **kwargs))


def of_torch(function: Callable[..., Any], args: Any, kwargs: Any) -> Call | None:
    """The call of a ``torch.func.vjp``: there is no compiled function without a C++ compiler. NumPy arrays enter."""
    if not find_spec("torch") or any(isinstance(x, (int, str, float)) for x in args):
        return None
    torch = import_module("torch")
    leaves, structure = rg.tree.flatten((args, kwargs))

    def apart(*tensors: Any) -> Any:
        given, named = rg.tree.unflatten(structure, tensors)
        return function(*given, **named)

    # torch gives back a tree of its own kinds of nodes only
    results = (lambda *tensors: rg.tree.leaves(apart(*tensors))) if function is as_layer else apart
    return lambda: torch.func.vjp(results, *map(torch.from_numpy, leaves))[0]


def seconds(calls: Sequence[Call], samples: int) -> list[list[float]]:
    """The times of calls that take turns, in seconds, one list for each."""
    number = max(1, min(warm_up(call, WARM_UP_SECONDS) for call in calls))
    rounds = [[sample(call, number) for call in calls] for _ in range(samples)]
    return [list(times) for times in zip(*rounds, strict=True)]


def main() -> None:
    """Print the table and the line fitted to arrays as arguments."""
    parser = argparse.ArgumentParser(prog="python -m bench.dispatch", description=__doc__)
    parser.add_argument("--samples", type=int, default=300)
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    options = parser.parse_args()

    jax = find_spec("jax") and import_module("jax")
    if jax:
        jax.config.update("jax_enable_x64", True)
        jax.tree_util.register_dataclass(Layer, ["w", "b"], [])
    rows, beyond = [], {}
    for name, (function, args, kwargs) in cases(list(np.random.default_rng(0).standard_normal((100, 3)))).items():
        whole, body = seconds(of_retrograd(function, args, kwargs), options.samples)
        beyond[name] = median(a - b for a, b in zip(whole, body, strict=True))
        others = [of(function, args, kwargs) for of in (of_jax, of_torch)]
        theirs = ["–" if call is None else table.time(median(seconds([call], options.samples)[0])) for call in others]
        rows.append([name, table.time(median(whole)), table.time(median(body)), table.time(beyond[name]), *theirs])
    print(f"{describe()}\n")
    header = ["arguments", "call", "body", "beyond the body", "jax.jit", "torch.func.vjp"]
    print(table.render(header, rows, markdown=options.markdown))
    counts = [1, 2, 4, 8]
    further, _ = np.polyfit(counts, [beyond[f"{n} array{'s' * (n > 1)}"] for n in counts], 1)
    print(f"\none array: {table.time(beyond['1 array'])}; each further array: {table.time(further)}")


if __name__ == "__main__":
    main()
