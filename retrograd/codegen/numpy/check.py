"""check: generated source may use only what the emitter writes; loading this file has it checked before it runs."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from functools import lru_cache

import numpy as np

from ...errors import InternalError
from ...ir.embedded import EMBEDDED
from ...ir.modules import SCIPY
from ...ir.primitive import REGISTRY
from .plain_numbers.number_texts import FAILURES, FUNCTIONS
from .target import BUILTINS, CHECKS

NODES = frozenset(
    [
        ast.Module,
        ast.Import,
        ast.alias,
        ast.FunctionDef,
        ast.arguments,
        ast.arg,
        ast.Return,
        ast.Assign,
        ast.AugAssign,
        ast.Delete,
        ast.For,
        ast.While,
        ast.If,
        ast.Pass,
        ast.Break,
        ast.Expr,
        ast.Constant,
        ast.Name,
        ast.Attribute,
        ast.Subscript,
        ast.Slice,
        ast.Tuple,
        ast.List,
        ast.ListComp,
        ast.comprehension,
        ast.Call,
        ast.keyword,
        ast.Raise,
        ast.Try,
        ast.ExceptHandler,
        ast.IfExp,
        ast.BoolOp,
        ast.BinOp,
        ast.UnaryOp,
        ast.Compare,
    ]
)
KEYWORDS = frozenset({"else:", "try:", f"except {FAILURES}:"})  # lines that need no look
HARMLESS = (ast.boolop, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context)
# Names that emitters write; primitives tell of those in their texts.
WRITTEN = (
    "T all any append array asarray astype at concatenate conjugate copy count_nonzero empty full imag inf nan ones "
    "real reduce reshape reverse split transpose zeros "
    "data flat ndarray tolist "
    "ops structural disk open_disk write read drop again close resumed"
)
IMPORTS = frozenset(
    {"binascii", "math", "numpy", "retrograd.ops.structural.disk", "zlib", *(f"scipy.{part}" for part in SCIPY)}
)


@lru_cache(maxsize=8)
def _names(primitives: int) -> frozenset[str]:
    known = [p.numpy for p in REGISTRY.values()]
    texts = " ".join(f"{t.code if isinstance(t.code, str) else ''} {t.op} {t.ufunc} {t.statement}" for t in known)
    used = {part for path in re.findall(r"(?:np|scipy)\.([\w.]+)", texts) for part in path.split(".")}
    used.update(name for t in known for name in t.names.split())
    used |= FUNCTIONS | {*WRITTEN.split()} | {dtype.__name__ for dtype in np.sctypeDict.values()} | {"bool"}
    return frozenset(used)


# Names, except keywords= and called( ones, and numbers and texts.
TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
MASKED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\b(?!\(|=[^=])|(?<!\w)\d+|" + TEXT, re.ASCII)
NUMBERED = re.compile(r"\b(?<!\.)(?!__)[A-Za-z_]\w*\d\b(?!\(|=[^=])", re.ASCII)
COMMENT = re.compile(r"  # [^\r\n]*")
DEFINITION = re.compile(r"def [a-z_A-Z]\w*\((\w+(=\w+)?(, \w+(=\w+)?)*)?\):\Z", re.ASCII)
REFUSED = frozenset(dir(builtins)) - frozenset(BUILTINS)
KEPT = frozenset(keyword.kwlist) | frozenset(BUILTINS) | {"np"}


def _without_embedded(source: str) -> str:
    """The source without the package's own functions, which stand in it word for word and need no check."""
    source = f"\n{source}"
    for part in source.split("\ndef ")[1:]:
        embedded = EMBEDDED.get(part.partition("(")[0])
        if embedded is not None:
            source = source.replace(f"\n{embedded.source}\n", "\n")
    return source[1:]


def check_source(source: str) -> None:
    """InternalError if generated source holds anything beyond the allowlists.

    Statements stand on one line each, and most differ only in names and numbers: each shape is parsed once. Most names
    end in a digit; these are masked everywhere at once, so that few lines are left to look at.
    """
    source = _without_embedded(source)
    docstring_end = source.index('"""', 3) + 3 if source.startswith('"""') else 0
    masked = NUMBERED.sub("x", COMMENT.sub("", source[docstring_end:]))
    for line in dict.fromkeys(map(str.strip, masked.splitlines())):
        if not line or line in KEYWORDS:
            continue
        code = line.removeprefix("el") if line.startswith("elif ") else line
        shape = code if code.startswith(("import ", "from ")) else MASKED.sub(_masked, code)
        if DEFINITION.match(code):
            continue
        plain = code.isascii()  # Python reads some other letters as ASCII ones
        if not plain or not _check_shape(shape if not shape.endswith(":") else shape + " pass"):
            _check_tree(ast.parse(source))
            return


def _masked(match: re.Match[str]) -> str:
    name = match[1]
    if name is None:
        return "''" if match[0][0] in "'\"" else "1"
    if name in KEPT:
        return name
    if name.startswith("__") or name in REFUSED:
        raise InternalError(f"generated source uses the name {name}")
    return "x"


@lru_cache(maxsize=4096)
def _check_shape(shape: str) -> bool:
    """Check one statement; False if the text is not a statement by itself."""
    try:
        tree = ast.parse(shape)
    except SyntaxError:
        return False
    _check_tree(tree)
    return True


def _check_tree(tree: ast.Module) -> None:
    allowed = _names(len(REGISTRY))
    conditions = {id(node.test) for node in ast.walk(tree) if isinstance(node, ast.If)}
    for node in ast.walk(tree):
        kind = type(node)
        if kind not in NODES and not isinstance(node, HARMLESS):
            raise InternalError(f"generated source contains a {kind.__name__}")
        if isinstance(node, ast.Try) and not _runs_again(node):
            raise InternalError("generated source contains a try statement of another form")
        if isinstance(node, ast.BoolOp) and id(node) not in conditions:
            raise InternalError("generated source contains an and or an or outside of a condition")
        if isinstance(node, ast.Attribute) and node.attr not in allowed:
            raise InternalError(f"generated source uses the attribute {node.attr}")
        if isinstance(node, ast.Name) and (node.id.startswith("__") or node.id in REFUSED):
            raise InternalError(f"generated source uses the name {node.id}")
        if isinstance(node, ast.alias) and node.name not in IMPORTS:
            raise InternalError(f"generated source imports {node.name}")


def _runs_again(tried: ast.Try) -> bool:
    """Whether a try has one handler alone, for what Python's numbers raise."""
    kinds = [ast.unparse(handler.type) for handler in tried.handlers if handler.type and not handler.name]
    return kinds == [FAILURES] and len(tried.handlers) == 1 and not tried.orelse and not tried.finalbody


CHECKS.append(check_source)
