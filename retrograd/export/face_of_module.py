"""The public function of an exported module: its types, the checks of its arguments, its results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..codegen.names import Names, harmless
from ..errors import OptionError
from ..ir.texts import literal
from ..ir.types import Aval
from .frozen import Frozen
from .module_parts import Code, ModuleParts
from .trees_as_data import TreeForm, harmless_text, quoted


@dataclass
class Face:
    """The function that users call: its parameters with types, what it checks, what it returns."""

    parameters: list[str]
    returns: str
    lines: list[str]
    takes: list[str]
    gives: list[str]


def face_of(frozen: Frozen, parts: ModuleParts, code: Code, function: str, constants: Sequence[str]) -> Face:
    """The function of a module that calls the code with its constants."""
    positional, keywords = frozen.arguments.parts
    used = Names({function, *keywords.keys})
    lines: list[str] = []
    leaves: dict[int, str] = {}
    reader = ArgumentReader(frozen, parts, lines, leaves)
    parameters, takes = [], []
    for k, (name, form) in enumerate(zip(frozen.parameters, positional.parts, strict=True)):
        own = used.fresh(_parameter(name) or f"arg{k}")
        reader.read(form, own, own)
        parameters.append(f"{own}: {annotation(form, frozen.final.in_avals, parts)}")
        takes += reader.told(form, own)
    for k, (name, form) in enumerate(zip(keywords.keys, keywords.parts, strict=True)):
        if not harmless(name) or name.startswith("_"):
            raise OptionError(
                f"the keyword {name!r} cannot be a parameter of an exported function",
                remedy="export a function with another name for it: rg.grad(lambda x, k: f(x, **{'list': k}))",
            )
        parameters += ["*"] if k == 0 else []
        reader.read(form, name, name)
        parameters.append(f"{name}: {annotation(form, frozen.final.in_avals, parts)}")
        takes += reader.told(form, name)
    returns = annotation(frozen.results, frozen.final.out_avals, parts)
    for name in {p.partition(":")[0] for p in parameters} & parts.classes.keys():
        raise OptionError(f"a parameter and a class are called {name}", remedy="give one of them another name")
    operands = [leaves[k] for k in range(len(leaves))]
    if frozen.written:
        places = f"({', '.join(map(str, frozen.written))},)"
        lines.append(f"{parts.use('checked_apart')}(({', '.join(operands)},), {places})")
    call = f"{code.function}({', '.join([*operands, *constants])})"
    outs = len(frozen.final.outputs)
    named = [f"_r{k}" for k in range(outs)]
    if outs:
        lines.append(f"{', '.join(named)} = {call}" if outs != 1 else f"_r0 = {call}")
    else:
        lines.append(call)
    lines.append(f"return {assembled(frozen.results, named, parts)}")
    gives = list(told_lines(frozen.results, "result", frozen.final.out_avals))
    return Face(parameters, returns, lines, takes, gives)


def _parameter(name: str) -> str | None:
    return name if harmless(name) and not name.startswith("_") else None


class ArgumentReader:
    """Writes the statements that check the arguments, and take them apart."""

    def __init__(self, frozen: Frozen, parts: ModuleParts, lines: list[str], leaves: dict[int, str]) -> None:
        self._frozen, self._parts, self._lines, self._leaves = frozen, parts, lines, leaves
        self._count = 0

    def told(self, form: TreeForm, name: str) -> list[str]:
        """Lines that tell what an argument is."""
        return list(told_lines(form, name, self._frozen.final.in_avals))

    def read(self, form: TreeForm, source: str, name: str) -> None:
        """Check what ``source`` gives; messages call it ``name``."""
        use, said = self._parts.use, quoted(name)
        if form.kind == "any":
            return
        if form.kind == "leaf":
            self._leaves[form.value] = source
            self._lines.append(self._leaf(form.value, source, said))
        elif form.kind in ("static", "none"):
            self._lines.append(f"{use('checked_value')}({source}, {said}, {_static(form.value)})")
        else:
            inner = [self._fresh() for _ in form.parts]
            taken = f"{', '.join(inner)}{',' * (len(inner) == 1)} = " if inner else ""
            self._lines.append(taken + self._opened(form, source, said))
            for k, (part, x) in enumerate(zip(form.parts, inner, strict=True)):
                self.read(part, x, f"{name}{_step(form, k)}")

    def _fresh(self) -> str:
        self._count += 1
        return f"_{self._count}"

    def _opened(self, form: TreeForm, source: str, said: str) -> str:
        use = self._parts.use
        if form.kind in ("tuple", "list"):
            return f"{use('checked_items')}({source}, {said}, {form.kind}, {len(form.parts)})"
        keys = f"({', '.join(map(_static, form.keys))}{',' * (len(form.keys) == 1)})"
        if form.kind == "dict":
            return f"{use('checked_entries')}({source}, {said}, {keys})"
        return f"{use('checked_fields')}({source}, {said}, {quoted(_class_name(form))}, {keys})"

    def _leaf(self, k: int, source: str, said: str) -> str:
        aval, strides = self._frozen.final.inputs[k].aval, self._frozen.strides[k]
        if aval.kind != "array":
            return f"{self._parts.use('checked_number')}({source}, {said}, {_type(aval)})"
        laid = "" if strides is None else f", {strides}"
        return f"{self._parts.use('checked_array')}({source}, {said}, {aval.shape}, {literal(aval.dtype)}{laid})"


def _step(form: TreeForm, k: int) -> str:
    """The way to a part, in words of Python."""
    if form.kind in ("tuple", "list"):
        return f"[{k}]"
    return f"[{form.keys[k]!r}]" if form.kind == "dict" else f".{form.keys[k]}"


def _static(x: Any) -> str:
    if isinstance(x, str):
        return quoted(x)
    return literal(x)


def _class_name(form: TreeForm) -> str:
    """The name that the class of a namedtuple or dataclass has in the module."""
    name = form.value.rpartition(".")[2].rpartition(":")[2]
    fields = [k for k in form.keys if not harmless(k)]
    if not harmless(name) or fields:
        raise OptionError(
            f"the class {form.value} cannot be in an exported module: {', '.join(fields) or name} is not a plain name",
            remedy="use names of ASCII letters that are not Python keywords or builtins",
        )
    return str(name)


def _type(aval: Aval) -> str:
    return aval.dtype.type(0).item().__class__.__name__ if aval.kind == "python" else literal(aval.dtype)


def annotation(form: TreeForm, avals: Sequence[Aval], parts: ModuleParts) -> str:
    """The type of a tree."""
    if form.kind == "leaf":
        aval = avals[form.value]
        return f"NDArray[{literal(aval.dtype)}]" if aval.kind == "array" else _type(aval)
    if form.kind in ("static", "none", "any"):
        return "Any" if form.kind == "any" else "None" if form.kind == "none" else type(form.value).__name__
    inner = [annotation(part, avals, parts) for part in form.parts]
    if form.kind == "tuple":
        return f"tuple[{', '.join(inner) or '()'}]"
    if form.kind in ("list", "dict"):
        of = inner[0] if len({*inner}) == 1 else "Any"
        keys = {type(k).__name__ for k in form.keys}
        key = next(iter(keys)) if len(keys) == 1 else "Any"
        return f"list[{of}]" if form.kind == "list" else f"dict[{key}, {of}]"
    return class_name_in(form, parts)


def class_name_in(form: TreeForm, parts: ModuleParts) -> str:
    """The name of a class that the module defines."""
    name: str = _class_name(form)
    known = parts.classes.setdefault(name, form)
    if (known.kind, known.value, known.keys) != (form.kind, form.value, form.keys):
        raise OptionError(f"two classes are called {name}", remedy="give one of them another name")
    return name


def told_lines(form: TreeForm, name: str, avals: Sequence[Aval]) -> Iterator[str]:
    """Lines of a docstring."""
    if form.kind == "leaf":
        aval = avals[form.value]
        shape = f"array of dtype {aval.dtype} and shape {aval.shape}" if aval.kind == "array" else _type(aval)
        yield f"{harmless_text(name)}: {shape.removeprefix('np.')}"
    elif form.kind == "any":
        yield f"{harmless_text(name)}: anything, as it is never read"
    elif form.kind in ("static", "none"):
        yield f"{harmless_text(name)}: always {harmless_text(repr(form.value))}"
    elif not form.parts:
        yield f"{harmless_text(name)}: an empty {form.kind}"
    for k, part in enumerate(form.parts):
        yield from told_lines(part, f"{name}{_step(form, k)}", avals)


def assembled(form: TreeForm, results: Sequence[str], parts: ModuleParts) -> str:
    """Source of a tree."""
    if form.kind == "leaf":
        return str(results[form.value])
    if form.kind in ("static", "none", "any"):
        return _static(form.value)
    inner = [assembled(part, results, parts) for part in form.parts]
    if form.kind == "tuple":
        return f"({', '.join(inner)}{',' * (len(inner) == 1)})"
    if form.kind == "list":
        return f"[{', '.join(inner)}]"
    if form.kind == "dict":
        return f"{{{', '.join(f'{_static(k)}: {x}' for k, x in zip(form.keys, inner, strict=True))}}}"
    return f"{class_name_in(form, parts)}({', '.join(f'{k}={x}' for k, x in zip(form.keys, inner, strict=True))})"
