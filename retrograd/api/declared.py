"""A user's declaration of a primitive, checked before it is registered: its source, its rules, its shape."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from string import Formatter
from typing import Any

import numpy as np

from ..errors import OptionError, RetrogradError, UserError
from ..ir.builder import Builder, Symbol
from ..ir.evaluate import evaluate, run_node
from ..ir.modules import SCIPY
from ..ir.primitive import Derivative, Primitive, Pull, Push
from ..ir.texts import NumPyText
from ..ir.types import Aval, aval_of
from ..passes.blame import line_in

RULES = (
    "a push takes (t, out, *operands), a pull (ct, *operands). These are symbols, which NumPy's functions do not take. "
    "Write operators and primitives (from retrograd.ops.elementary import exp), or use rg.custom_jvp, whose rules may "
    "call NumPy"
)
TAKES = {
    "shape": "it takes the avals of the operands, with .shape and .dtype, and the attributes, and returns an aval",
    "batch": "it takes the primitive, the size of the batch, the operands, which are batched, and the attributes",
}
EXPRESSIONS = (
    *(ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Tuple, ast.List, ast.Call),
    *(ast.keyword, ast.BinOp, ast.UnaryOp, ast.Compare, ast.operator, ast.unaryop, ast.cmpop, ast.expr_context),
)
MEMBERS = frozenset({"T", "real", "imag", "reshape", "transpose", "astype", "copy", "conjugate"})
SAMPLED = (np.float64, np.complex128, np.int64, np.bool_)


def fields_of(name: str, emit: Any) -> tuple[int, list[str]]:
    """The number of operands and the attributes that a template names; OptionError for a faulty template."""
    if not isinstance(emit, str):
        raise OptionError(f"emit of {name} is {emit!r}", remedy="give NumPy source over operands, as 'np.cbrt({0})'")
    try:
        found = [field for _, field, _, _ in Formatter().parse(emit) if field is not None]
    except ValueError as fault:
        raise OptionError(f"emit of {name} is not a template: {fault}", remedy="write operands as {0}, {1}") from None
    numbers = sorted({int(field) for field in found if field.isdigit()})
    others = sorted({field for field in found if not field.isdigit()})
    wrong = [field for field in others if not field.isidentifier() or field == "args"]
    if wrong or not numbers or numbers != list(range(len(numbers))):
        which = f"the operands {', '.join(map(str, numbers))}" if numbers else "no operand"
        raise OptionError(
            f"emit of {name} names {which}" + (f", and {{{wrong[0]}}}" if wrong else ""),
            remedy="name every operand by its number from {0} on, and attributes by identifiers",
        )
    return len(numbers), others


def check_expression(name: str, emit: str, count: int, attributes: Sequence[str]) -> None:
    """OptionError unless the template is an expression whose names exist in NumPy or SciPy."""
    operands = [f"operand_{k}" for k in range(count)]
    text = emit.format(*operands, **{attribute: f"attribute_{attribute}" for attribute in attributes})
    known = {*operands, *(f"attribute_{attribute}" for attribute in attributes), "np", "scipy"}
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as fault:
        raise OptionError(f"emit of {name} is not an expression: {fault.msg}", remedy=f"correct {emit!r}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in known:
            raise OptionError(
                f"emit of {name} names {node.id}, which is not available in generated source",
                remedy="use operands, attributes, np and scipy",
            )
    for node in ast.walk(tree):
        path = _path(node)
        if path[:1] == ["scipy"] and find_spec("scipy") is None:
            raise OptionError(
                f"emit of {name} names {'.'.join(path)}, but SciPy is not installed",
                remedy="python -m pip install scipy",
            )
        if path[:1] in (["np"], ["scipy"]) and not _exists(path):
            raise OptionError(
                f"emit of {name} names {'.'.join(path)}, which does not exist", remedy=f"correct {emit!r}"
            )
        if not isinstance(node, EXPRESSIONS) or (
            isinstance(node, ast.Attribute) and path[:1] not in (["np"], ["scipy"]) and node.attr not in MEMBERS
        ):
            raise OptionError(
                f"emit of {name} holds {ast.unparse(node)!r}, which is not allowed in generated source",
                remedy="write one plain expression of NumPy's functions and operators",
            )


def _path(node: ast.AST) -> list[str]:
    """The names of ``np.linalg.inv``; nothing for what is no chain of attributes of a name."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [node.id, *reversed(names)] if isinstance(node, ast.Name) and names else []


def _exists(path: Sequence[str]) -> bool:
    if path[0] == "scipy" and path[1] in SCIPY:
        path = (f"scipy.{path[1]}", *path[2:])
    try:
        found: Any = np if path[0] == "np" else import_module(path[0])
        for part in path[1:]:
            found = getattr(found, part)
    except (AttributeError, ImportError):
        return False
    return True


def check_ufunc(name: str, emit: str, ufunc: Any, count: int) -> None:
    """OptionError unless the source is a call of the ufunc."""
    found = getattr(np, ufunc.removeprefix("np."), None) if isinstance(ufunc, str) else None
    operands = ", ".join(f"{{{k}}}" for k in range(count))
    if not isinstance(found, np.ufunc) or emit != f"{ufunc}({operands})":
        raise OptionError(
            f"ufunc of {name} is {ufunc!r}, but emit is not a call of such a ufunc",
            remedy="leave ufunc out, or give the ufunc that emit calls, as 'np.cbrt'",
        )


def derivatives(name: str, given: Any, count: int) -> tuple[Derivative, ...]:
    """One derivative for each operand, rules with errors that name them; OptionError for what is no rule."""
    if isinstance(given, (Push, Pull)) or not isinstance(given, Sequence):
        raise OptionError(f"diff of {name} is {given!r}", remedy="give a list with one entry for each operand")
    for k, rule in enumerate(given):
        if rule is not None and not isinstance(rule, (Push, Pull)):
            raise OptionError(
                f"the derivative of operand {k} of {name} is {rule!r}",
                remedy="wrap the rule in rg.push(...), or in rg.pull(...) if emit is linear in the operand",
            )
    if len(given) != count:
        raise OptionError(
            f"{name} has {count} operands, but diff has {len(given)} entries",
            remedy="give one entry for each operand, None where the derivative is zero",
        )
    return tuple(rule and _named(name, k, rule) for k, rule in enumerate(given))


def told(name: str, option: str, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule given as an option, with errors that tell whose rule it is."""

    def told_rule(*args: Any, **attrs: Any) -> Any:
        try:
            return rule(*args, **attrs)
        except RetrogradError:
            raise
        except Exception as fault:
            said = f"the rule {option}= of {name} fails{_line(rule, fault)}: {type(fault).__name__}: {fault}"
            raise OptionError(said, remedy=f"correct the rule: {TAKES[option]}") from fault

    return told_rule


def _line(rule: Callable[..., Any], fault: Exception) -> str:
    """The line of a rule at which it fails, with a word before it; nothing if it is not called at all."""
    code = getattr(rule, "__code__", None)
    line = line_in(code.co_filename, fault) if code is not None else None
    return f" at {line}" if line is not None else ""


def _named(name: str, k: int, declared: Push | Pull) -> Push | Pull:
    """The rule, with errors that tell whose rule it is, and a check of what it gives."""
    into = isinstance(declared, Pull) and declared.into

    def rule(*args: Any, **attrs: Any) -> Any:
        try:
            found = declared.rule(*args, **attrs)
        except RetrogradError:
            raise
        except Exception as fault:
            at = _line(declared.rule, fault)
            raise OptionError(
                f"the rule of operand {k} of {name} fails{at}: {type(fault).__name__}: {fault}", remedy=RULES
            ) from fault
        like = args[1] if isinstance(declared, Push) else args[0] if into else args[1 + k]
        if found is None and isinstance(declared, Push):
            return None
        if not isinstance(found, Symbol) or found.shape != like.shape:
            what = f"a value of shape {found.shape}" if isinstance(found, Symbol) else repr(found)
            raise OptionError(
                f"the rule of operand {k} of {name} gives {what}, but the operand has the shape {like.shape}",
                remedy=RULES,
            )
        return found

    return Push(rule) if isinstance(declared, Push) else Pull(rule, into)


def check_on_samples(prim: Primitive, count: int, emit: str) -> bool:
    """Whether an operation of the default shape rule acts on each element alone; OptionError where it cannot be right.

    Its source runs on samples of the first dtype for which it gives what the shape rule says, and its rules are
    evaluated there.
    """
    faults: list[str] = []
    for dtype in SAMPLED:
        samples = [_sample(k, dtype) for k in range(count)]
        try:
            node, out = _run(prim, samples)
        except UserError:
            raise
        except Exception as fault:  # noqa: BLE001 - the user's source on samples that may not suit it
            faults.append(f"{type(fault).__name__}: {fault}")
            continue
        wanted = node.out.aval
        if not isinstance(out, np.ndarray) or (out.shape, out.dtype) != (wanted.shape, wanted.dtype):
            found = f"{out.dtype}{list(out.shape)}" if isinstance(out, np.ndarray) else type(out).__name__
            faults.insert(0, f"it gives {found} for operands of {np.dtype(dtype)}{list(samples[0].shape)}")
            if np.asarray(out).dtype.kind == "c":
                continue  # as {0} + 1j
            break
        _check_rules(prim, samples)
        return _elementwise(prim, samples, out)
    raise OptionError(
        f"emit of {prim.name}, {emit!r}, does not fit the shape rule, by which all operands and the result have one "
        f"shape and dtype: {faults[0]}",
        remedy="correct emit, or give shape=, a function from the avals of the operands to that of the result",
    )


def _sample(k: int, dtype: Any) -> Any:
    """Different numbers for each operand; of integers none is zero."""
    x = np.linspace(0.2, 0.9, 6) + 0.07 * k + np.arange(1, 7) * (dtype is np.int64)
    return x.reshape(2, 3).astype(dtype)


def _run(prim: Primitive, samples: Sequence[Any]) -> tuple[Any, Any]:
    b = Builder()
    made = prim(*(b.input(aval_of(x)) for x in samples))
    node = b.made[made.value]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return node, run_node(node, samples)[0]


def _elementwise(prim: Primitive, samples: Sequence[Any], out: Any) -> bool:
    """Whether each element of the result is that of the operation on single elements, up to rounding."""
    for at in np.ndindex(out.shape):
        try:
            alone = _run(prim, [x[at] for x in samples])[1]
        except Exception:  # noqa: BLE001 - it needs arrays
            return False
        if np.shape(alone) or not np.allclose(alone, out[at], rtol=1e-9, atol=0, equal_nan=True):
            return False
    return True


def _check_rules(prim: Primitive, samples: Sequence[Any]) -> None:
    """OptionError for a rule that fails or is not linear in the tangent, or a pull of what is not linear."""
    if samples[0].dtype.kind not in "fc":
        return
    for k in range(len(samples)):
        rule = prim.derivative(k)
        if isinstance(rule, Pull):
            _check_pull(prim, samples, k)
        if isinstance(rule, (Push, Pull)) and not (isinstance(rule, Pull) and rule.into):
            at = _tangent(prim, rule, samples)
            if at is not None and not _linear(at, samples[0]):
                raise OptionError(
                    f"the rule of operand {k} of {prim.name} is not linear in its first argument, the "
                    + ("tangent" if isinstance(rule, Push) else "cotangent"),
                    remedy="multiply the derivative by the first argument of the rule",
                )


def _tangent(prim: Primitive, rule: Any, samples: Sequence[Any]) -> Callable[[Any], Any] | None:
    """The rule as a function of the tangent, at the samples; None where the derivative is zero."""
    b = Builder()
    t, *args = (b.input(Aval(x.shape, x.dtype)) for x in (samples[0], *samples))
    operands = [prim(*args), *args] if isinstance(rule, Push) else args
    found = rule.rule(t, *operands)
    if found is None:
        return None
    graph = b.graph("rule", [found])
    return lambda x: evaluate(graph, [x, *samples])[0]


def _check_pull(prim: Primitive, samples: Sequence[Any], k: int) -> None:
    if not _linear(lambda t: _run(prim, [*samples[:k], t, *samples[k + 1 :]])[1], samples[k]):
        raise OptionError(
            f"{prim.name} is declared to be linear in operand {k}, but it is not",
            remedy="declare the tangent with rg.push(lambda t, out, *operands: ...)",
        )


def _linear(function: Callable[[Any], Any], x: Any) -> bool:
    """Whether a function is linear, as far as multiples of a sample and their sums tell; NaN count for nothing."""
    y = x[::-1, ::-1] * 1.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        once, other, both, none = (np.asarray(function(v)) for v in (x, y, x * -2 + y, x * 0))
        off = np.abs(both - (once * -2 + other)), np.abs(none)
        scale = np.abs(once) + np.abs(other) + 1e-300
    return all(not np.any(part > 1e-9 * scale) for part in off)


def plain_attributes(name: str, attrs: dict[str, Any], wanted: Sequence[str], loose: bool) -> None:
    """OptionError for attributes that are missing, unknown or no plain values."""
    missing = [attribute for attribute in wanted if attribute not in attrs]
    unknown = [] if loose else [attribute for attribute in attrs if attribute not in wanted]
    if missing or unknown:
        what = f"lacks the attribute {missing[0]}" if missing else f"has no attribute {unknown[0]}"
        raise OptionError(f"{name} {what}", remedy=f"its attributes are: {', '.join(wanted) or 'none'}")
    for attribute, value in attrs.items():
        if not all(isinstance(part, PLAIN) for part in _parts(value)):
            raise OptionError(
                f"the attribute {attribute} of {name} is {value!r}",
                remedy="pass arrays as operands; attributes are numbers, strings, and tuples of them",
            )


PLAIN = (bool, int, float, complex, str, type(None), np.dtype, slice, np.bool_, np.integer, np.floating)


def _parts(value: Any) -> Iterator[Any]:
    if type(value) is tuple:
        for part in value:
            yield from _parts(part)
    else:
        yield value


def unregistered(name: str, shape: Any, emit: str, diff: tuple[Derivative, ...]) -> Primitive:
    """A primitive to try declarations on, which the registry does not know."""
    return Primitive(name=name, shape=shape, diff=diff, texts={"numpy": NumPyText(code=emit)})
