"""check: generated source may use only what the emitter writes."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

import numpy as np

from ..errors import InternalError
from ..ir.primitive import REGISTRY

NODES = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Import, ast.alias, ast.Return, ast.Assign, ast.AugAssign,
    ast.Delete, ast.For, ast.While, ast.If, ast.Pass, ast.Break, ast.Expr, ast.Constant, ast.Name, ast.Load, ast.Store,
    ast.Del, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.ListComp, ast.comprehension, ast.Call,
    ast.keyword, ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip
METHODS = frozenset({"append", "astype", "at", "copy", "reduce", "reverse", "accumulate", "add", "maximum", "minimum"})
FUNCTIONS = frozenset(["array", "asarray", "arange", "empty", "full", "inf", "nan", "ones", "zeros", "broadcast_to"])
BUILTINS = {"range": range, "len": len, "zip": zip, "float": float, "int": int, "bool": bool, "complex": complex}


@lru_cache(maxsize=8)
def _numpy_names(primitives: int) -> frozenset[str]:
    texts = " ".join(
        f"{p.code if isinstance(p.code, str) else ''} {p.op} {p.ufunc} {p.statement}" for p in REGISTRY.values()
    )
    used = {part for path in re.findall(r"np\.([\w.]+)", texts) for part in path.split(".")}
    return frozenset(used) | FUNCTIONS | {dtype.__name__ for dtype in np.sctypeDict.values()} | {"bool"}


def check_source(source: str) -> ast.Module:
    """The syntax tree of generated source; ``InternalError`` if it holds anything beyond the allowlists."""
    tree = ast.parse(source)
    allowed = _numpy_names(len(REGISTRY)) | METHODS
    for node in ast.walk(tree):
        if not isinstance(node, NODES):
            raise InternalError(f"generated source holds a {type(node).__name__}")
        if isinstance(node, ast.Import) and [a.name for a in node.names] != ["numpy"]:
            raise InternalError(f"generated source imports {[a.name for a in node.names]}")
        if isinstance(node, ast.Attribute) and node.attr not in allowed:
            raise InternalError(f"generated source uses the attribute {node.attr}")
        if isinstance(node, ast.Name) and node.id.startswith("__"):
            raise InternalError(f"generated source uses the name {node.id}")
    return tree
