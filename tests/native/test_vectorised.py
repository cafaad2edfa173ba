"""The compiler that is there vectorises each loop that is marked: nothing else would show that it does not."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import retrograd as rg
from retrograd.codegen.native import shared_objects
from retrograd.codegen.native.target import _alike, _source
from retrograd.ir import Aval, Graph
from retrograd.ir.primitive import REGISTRY
from tests.support.graphs import one_node
from tests.support.native import needs_compiler, taken
from tests.support.samples import SAMPLES

MARK = "#pragma omp simd"
LIBRARY = re.compile(  # functions of the C library, which are called for each element
    r"\b(tan|asinh|acosh|atanh|erfc|fmod|nextafter|rg_remainder|rg_floor_divide)f?\("
)
COPY = re.compile(r".*\{\s*const [\w ]+ (\w+) = \w+\[[^]]*\];\s*\w+\[[^]]*\] = \1;")  # memcpy
EXTREMA = re.compile(r"\brg_(larger|smaller)(_number)?f?\(|\bnan\d+ \|=")  # reductions that Clang leaves as they are
REPORTS = {  # flags with which a compiler tells which loops it has vectorised, and how
    "gcc": (("-fno-ipa-icf", "-fopt-info-vec-optimized"), r"optimized: (?:loop|outer loop) vectorized"),
    "clang": (("-Rpass=loop-vectorize",), r"remark: vectorized"),
}
TABLE = [np.dtype(code) for code in ("f8", "f4", "c16", "c8", "i8", "?")]
N = 1000


def cases() -> list[Graph]:
    """Each operation, and each reduction of all elements, of rows and of columns."""
    found = []
    for name, prim in sorted(REGISTRY.items()):
        real = prim.texts.get("native")
        for dtype in TABLE:
            text = (real.of_complex or real) if real is not None and dtype.kind == "c" else real
            if text is None or dtype.kind not in text.kinds:
                continue
            if text.fold is not None:
                for shape, axis in (((N,), (0,)), ((40, N), (1,)), ((40, N), (0,))):
                    found.append(one_node(prim, [Aval(shape, dtype)], {"axis": axis, "keepdims": False}))
            elif text.c and name in SAMPLES:
                avals = [Aval((N,), dtype)] * len(SAMPLES[name][0].operands())
                if name == "where":
                    avals[0] = Aval((N,), np.dtype(bool))
                found.append(one_node(prim, avals, SAMPLES[name][0].graph().nodes[-1].attrs))
    return [graph for graph in found if taken(graph)]


def scalar_loops(graphs: list[Graph], tmp_path: Path) -> list[str]:
    """The marked loops that the compiler has not vectorised, but for those that it is known to leave."""
    bodies = [replace(graph) for graph in graphs]
    alike = _alike(bodies)
    assert sum(map(len, alike)) == len(graphs)
    source = _source(bodies, [same[0] for same in alike])
    tool = shared_objects.compiler()
    assert tool is not None
    (tmp_path / "law.c").write_text(source)
    clang = "clang" in tool.version.lower()
    report, told = REPORTS["clang" if clang else "gcc"]
    command = [*tool.command, *tool.flags, *report, "-o", "law.so", "law.c", "-lm"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    done = {int(line) for line in re.findall(rf"law\.c:(\d+):\d+: {told}", run.stderr)}
    lines = source.splitlines()
    marked = sum(line.strip().startswith(MARK) for line in lines)
    assert marked >= len(graphs) // 2, f"{marked} loops of {len(graphs)} graphs are marked"
    found = []
    for k, line in enumerate(lines):
        if line.strip().startswith(MARK):
            inner = " " * (len(line) - len(line.lstrip()) + 1)
            end = next(e for e in range(k + 2, len(lines)) if not lines[e].startswith(inner))
            body = "\n".join(lines[k + 1 : end])
            known = LIBRARY.search(body) or COPY.fullmatch(body) or (clang and EXTREMA.search(body))
            if not known and not done & {*range(k + 1, end + 1)}:
                found.append(body)
    return found


def _chain(outer: np.ufunc, inner: np.ufunc, x: np.ndarray[Any, Any]) -> Any:
    return outer(2.0 + inner(np.abs(x)))


@needs_compiler
def test_functions_of_functions_are_vectorised(tmp_path: Path) -> None:
    pairs = product((np.log, np.log1p, np.tanh), (np.exp, np.expm1, np.sin))
    graphs = [rg.jit(partial(_chain, *pair)).graph(np.ones(N)) for pair in pairs]
    found = scalar_loops([replace(graph, name=f"chain_{k}") for k, graph in enumerate(graphs)], tmp_path)
    assert not found, "\n\n".join(found)


@needs_compiler
def test_every_marked_loop_is_vectorised(tmp_path: Path) -> None:
    graphs = cases()
    assert len(graphs) > 200
    kinds = Counter(graph.inputs[-1].aval.dtype.kind for graph in graphs)
    assert all(kinds[kind] >= few for kind, few in {"f": 150, "c": 50, "i": 30, "b": 15}.items()), kinds
    found = scalar_loops(graphs, tmp_path)
    assert not found, "\n\n".join(found)
