"""Statements of branches, of guards, and of nodes that leave a function."""

from __future__ import annotations

from typing import Any

from ....ir.embedded import embed
from ....ir.graph import Node
from ....ir.texts import literal
from ....ops.structural.cond import branches_of, cond
from ....ops.structural.exit_if import exit_if
from ....ops.structural.guard import guard
from ....ops.structural.throw import throw_if
from ..bodies import BodyEmitter
from ..emitter import emits

# The test for each kind of question: that the answer is the expected one, and that any part of it is not.
ASKED = {
    "bool": ("{v}", "not {v}"),
    "int": ("int({v}) == {expected}", "int({v}) != {expected}"),
    "number": ("{v} == {expected}", "{v} != {expected}"),
    "size": ("len({v}) == {expected}", "len({v}) != {expected}"),
}
LANES = {
    "bool": ("{v}.all()", "not {v}.all()"),
    "int": ("({v} == {expected}).all()", "({v} != {expected}).any()"),
    "number": ("({v} == {expected}).all()", "({v} != {expected}).any()"),
}

embed("""
def miss(value):
    raise LookupError("no compiled path continues with this value", value)
""")
embed("""
def throw(form, *leaves):
    raise RuntimeError(form, leaves)
""")


@emits(cond)
def _cond(emitter: BodyEmitter, node: Node, ins: list[str], outs: list[str]) -> None:
    index, *operands = ins
    branches = branches_of(dict(node.attrs))
    if len(branches) == 2:
        tests = [(f"if {index}:", branches[1]), ("else:", branches[0])]
    else:
        last = len(branches) - 1
        tests = [
            (f"{'if' if k == 0 else 'elif'} {index} {'<=' if k == 0 else '=='} {k}:", g)
            for k, g in enumerate(branches[:last])
        ]
        tests.append(("else:", branches[last]))
    for header, branch in tests:
        with emitter.block(header):
            results = emitter.inline(branch, operands, bound=len(operands))
            emitter.moved(outs, results, branch)


def _test(value: str, kind: str, expected: Any, lanes: bool) -> tuple[str, str]:
    """Source that is true if the answer is the expected one, and source that is true if it is not."""
    yes, no = (LANES if lanes else ASKED)[kind]
    if kind == "bool" and not expected:
        yes, no = ("not {v}.any()", "{v}.any()") if lanes else (no, yes)
    return yes.format(v=value, expected=literal(expected)), no.format(v=value, expected=literal(expected))


@emits(guard)
def _guard(emitter: BodyEmitter, node: Node, ins: list[str], _: list[str]) -> None:
    emitter.embed("miss")
    with emitter.block(f"if {_test(ins[0], **node.attrs)[1]}:"):
        emitter.line(f"return miss({ins[0]})")


@emits(exit_if)
def _exit_if(emitter: BodyEmitter, node: Node, ins: list[str], _: list[str]) -> None:
    attrs = {name: value for name, value in node.attrs.items() if name != "body"}
    with emitter.block(f"if {_test(ins[0], **attrs)[0]}:"):
        results = emitter.inline(node.attrs["body"], ins[1:], len(ins) - 1)
        emitter.where = None
        emitter.line(f"return {results[0] if len(results) == 1 else '(' + ', '.join(results) + ')'}")


@emits(throw_if)
def _throw_if(emitter: BodyEmitter, node: Node, ins: list[str], _: list[str]) -> None:
    emitter.embed("throw")
    with emitter.block(f"if {ins[0]}:"):
        form = '"' + node.attrs["form"].replace("\\", "\\\\") + '"'
        emitter.line(f"throw({', '.join([form, *ins[1:]])})")
