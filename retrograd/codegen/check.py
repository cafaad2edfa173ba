"""check: generated source may use only what the emitter writes."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir.primitive import REGISTRY

# The kinds of nodes that may occur, and their fields that hold further nodes; operators and contexts are harmless.
FIELDS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Module: ("body",),
    ast.Import: ("names",),
    ast.alias: (),
    ast.FunctionDef: ("args", "body", "decorator_list", "returns"),
    ast.arguments: ("posonlyargs", "args", "vararg", "kwonlyargs", "kw_defaults", "kwarg", "defaults"),
    ast.arg: ("annotation",),
    ast.Return: ("value",),
    ast.Assign: ("targets", "value"),
    ast.AugAssign: ("target", "value"),
    ast.Delete: ("targets",),
    ast.For: ("target", "iter", "body", "orelse"),
    ast.While: ("test", "body", "orelse"),
    ast.If: ("test", "body", "orelse"),
    ast.Pass: (),
    ast.Break: (),
    ast.Expr: ("value",),
    ast.Constant: (),
    ast.Name: (),
    ast.Attribute: ("value",),
    ast.Subscript: ("value", "slice"),
    ast.Slice: ("lower", "upper", "step"),
    ast.Tuple: ("elts",),
    ast.List: ("elts",),
    ast.ListComp: ("elt", "generators"),
    ast.comprehension: ("target", "iter", "ifs"),
    ast.Call: ("func", "args", "keywords"),
    ast.keyword: ("value",),
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.Compare: ("left", "comparators"),
}
METHODS = frozenset(
    {
        "T",
        "append",
        "astype",
        "at",
        "copy",
        "real",
        "reduce",
        "reshape",
        "reverse",
        "transpose",
        "accumulate",
        "add",
        "maximum",
        "minimum",
    }
)
FUNCTIONS = frozenset(
    ["array", "asarray", "arange", "empty", "full", "inf", "nan", "ones", "zeros", "broadcast_to", "reshape"]
)
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
    pending: list[ast.AST] = [tree]
    while pending:
        node: Any = pending.pop()
        kind = type(node)
        fields = FIELDS.get(kind)
        if fields is None:
            raise InternalError(f"generated source holds a {kind.__name__}")
        if kind is ast.Attribute:
            if node.attr not in allowed:
                raise InternalError(f"generated source uses the attribute {node.attr}")
        elif kind is ast.Name:
            if node.id.startswith("__"):
                raise InternalError(f"generated source uses the name {node.id}")
        elif kind is ast.alias and node.name != "numpy":
            raise InternalError(f"generated source imports {node.name}")
        for name in fields:
            child = getattr(node, name)
            if type(child) is list:
                pending.extend(c for c in child if c is not None)
            elif child is not None:
                pending.append(child)
    return tree
