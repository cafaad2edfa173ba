"""The text of an exported module: Frozen → Python source that only needs NumPy, and the arrays beside it.

A module has, in this order: its docstring, imports, the record of what it was made of, which ``--check`` reads, the
function with its types, the code as a target writes it, what arguments are checked by, constants, and a self-test.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.names import Names, harmless
from ..compiler.settings import config
from ..errors import InternalError, OptionError
from ..ir.target import TARGETS, VERSION
from ..ir.texts import literal
from ..ir.types import in_order
from . import c_beside, standalone  # noqa: F401 - the first fills the table of targets
from .face_of_module import Face, assembled, face_of
from .frozen import Frozen, digest_of
from .module_parts import ALWAYS, CODE, DONE_HERE, RESERVED, Code, ModuleParts, class_texts, closed, word_for_word
from .trees_as_data import TreeForm, harmless_text, quoted

FORMAT = 1
SETTINGS = ("exact", "fast", "nan_safe", "backend")  # on which the text depends


@dataclass
class Exported:
    """A module, and the arrays and the C beside it; ``record`` is what ``--check`` reads."""

    text: str
    arrays: dict[str, np.ndarray[Any, Any]]
    record: dict[str, Any]
    function: str
    c: str = ""


def write_module(frozen: Frozen, stem: str, record: dict[str, Any]) -> Exported:
    """The module of a frozen function, for a file of this stem; its results are those of the compiled function.

    ``record`` says where the function comes from.
    """
    with config(**frozen.compilation.settings._asdict()):
        code = CODE.get(TARGETS.chosen.name, CODE["numpy"])(frozen)
    parts = ModuleParts(stem)
    for name in ALWAYS:
        parts.use(name)
    names = Names({*code.names, *RESERVED})
    function = names.fresh(frozen.name if not frozen.name.startswith("_") else None, "function")
    constants = _constants(frozen, parts, names)
    face = face_of(frozen, parts, code, function, list(constants))
    for name in code.calls:
        parts.use(name)
    for name in (code.names | parts.classes.keys()) & (RESERVED - {*DONE_HERE}) | (code.names & parts.classes.keys()):
        raise OptionError(f"an exported module cannot define {name}", remedy="give this function or class another name")
    record = {
        "format": FORMAT,
        "retrograd": VERSION,
        **record,
        "function": function,
        "takes": [f"{harmless_text(n)}: {v.aval}" for n, v in zip(frozen.names, frozen.final.inputs, strict=False)],
        "gives": [str(frozen.final.outputs[k].aval) for k in frozen.results.leaves()],
        "settings": {name: getattr(frozen.compilation.settings, name) for name in SETTINGS},
        "classes": {name: form.value for name, form in parts.classes.items()},
        "graph": _digest(frozen),
        "traced": digest_of(frozen.compilation.recorded.graph),
    }
    return _with_example(frozen, _Draft(parts, code, function, face, constants, record))


def _digest(frozen: Frozen) -> str:
    """A hash of all that the results depend on."""
    trees = _without_modules(frozen.arguments.to_json()), _without_modules(frozen.results.to_json())
    return digest_of(frozen.final, trees, frozen.strides, frozen.written, *map(np.asarray, frozen.constants))


def _without_modules(tree: Any) -> Any:
    """The form of a tree as JSON, with classes by their names alone: a script's module has another name elsewhere."""
    if tree[0] == "static":
        return tree
    kind, value, keys, parts = tree
    value = value.rpartition(":")[2] if isinstance(value, str) else value
    return [kind, value, keys, [_without_modules(part) for part in parts]]


def _constants(frozen: Frozen, parts: ModuleParts, names: Names) -> dict[str, str]:
    """Source of what the function captured, by name."""
    values = frozen.graph.inputs[len(frozen.names) :]
    found = {}
    for k, (v, x) in enumerate(zip(values, frozen.constants, strict=True)):
        found[names.fresh(f"_{v.hint}" if harmless(v.hint) else None, "_constant")] = parts.array(x, f"c{k}")
    return found


@dataclass
class _Draft:
    """A module but for its example."""

    parts: ModuleParts
    code: Code
    function: str
    face: Face
    constants: dict[str, str]
    record: dict[str, Any]


def _with_example(frozen: Frozen, draft: _Draft) -> Exported:
    """The module with an example on which it runs: the numbers that it was exported with, or random ones like them."""
    arguments = frozen.arguments
    exact = [draft.parts.array(x, f"x{k}") for k, x in enumerate(frozen.values)]
    beside = {name: x for name, x in draft.parts.arrays.items() if name.startswith("x")}
    wanted = _leaves(frozen, draft.code)
    tried = [exact]
    if beside:
        drawn = [_drawn(k, x, draft.parts) if f"x{k}" in beside else exact[k] for k, x in enumerate(frozen.values)]
        tried.insert(0, drawn)
    made = _text(frozen, draft, exact, arguments, [])
    scope = run_module(made, draft.parts.arrays)
    _check(draft.function, scope, wanted)
    results: list[Any] | None = None
    for example in tried:
        if example is not exact:
            draft.parts.arrays = {k: x for k, x in draft.parts.arrays.items() if k not in beside}
        else:
            draft.parts.arrays |= beside
        scope = run_module(_text(frozen, draft, example, arguments, []), draft.parts.arrays)
        results = _results(draft.function, scope)
        if results is not None:
            break
    if results is None:
        raise InternalError(f"the exported module of {draft.function} does not run on its example")
    expected = [_expected(x) for x in results]
    draft.record["code"] = code_digest(_text(frozen, draft, example, arguments, expected))
    text = _text(frozen, draft, example, arguments, expected)
    command = f"/* {draft.code.build.format(stem=draft.parts.stem)} */\n"
    c = command + draft.code.beside if draft.code.beside else ""
    return Exported(text, draft.parts.arrays, draft.record, draft.function, c)


def _leaves(frozen: Frozen, code: Code) -> list[Any]:
    """The results of the compiled function, as leaves."""
    derived = frozen.compilation.derived
    with _silence():
        found = code.run(*frozen.values, *frozen.constants)
    return standalone.leaves_of(derived.assemble((found,) if len(frozen.final.outputs) == 1 else found))


@contextmanager
def _silence() -> Iterator[None]:
    """Warnings about numbers are for the user's own calls."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def _results(function: str, scope: dict[str, Any]) -> list[Any] | None:
    """The results of a module on its example; None where it fails, or gives what is no number."""
    try:
        with _silence():
            args, kwargs = scope["_example"]()
            found = standalone.leaves_of(scope[function](*args, **kwargs))
    except Exception:  # noqa: BLE001 - random arguments may be outside of the function's domain
        return None
    return found


def run_module(text: str, arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    """What a module defines, run from its text."""
    scope: dict[str, Any] = {"__name__": __name__, "_given": arrays}
    beside = [line for line in text.splitlines() if line.startswith("_arrays = ")]
    for line in beside:
        text = text.replace(line, "_arrays = _given")
    text = re.sub(r"^_use_built\(.*\)$", "", text, flags=re.MULTILINE)
    exec(compile(text, "<exported>", "exec", dont_inherit=True), scope)  # noqa: S102 - the text that is to be written
    return scope


def code_digest(text: str) -> str:
    """A hash of the text of a module, without its record, comments and white space."""
    plain = re.sub(r"[ \t]+#.*", "", without_record(text))
    return hashlib.sha256("".join(plain.split()).encode()).hexdigest()


def without_record(text: str) -> str:
    """The text of a module without its record, expected numbers, and the lines of programs behind its statements."""
    for begin, end in ((r"^RECORD = \{", r"^\}\n"), (r"^_EXPECTED: list\[Any\] = \[", r"^\]\n")):
        text = re.sub(f"{begin}.*?{end}", "", text, count=1, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r" +# \S+:\d+$", "", text, flags=re.MULTILINE)


def _check(function: str, scope: dict[str, Any], wanted: Sequence[Any]) -> None:
    """InternalError unless the module gives every bit that the compiled function gives."""
    args, kwargs = scope["_example"]()
    with _silence():
        got = standalone.leaves_of(scope[function](*args, **kwargs))
    right = len(got) == len(wanted)
    for x, y in zip(got, wanted, strict=False):
        right = right and type(x) is type(y) and np.asarray(x).tobytes() == np.asarray(y).tobytes()
        right = right and np.shape(x) == np.shape(y) and getattr(x, "strides", ()) == getattr(y, "strides", ())
    if not right:
        raise InternalError(f"the exported module of {function} returns other results than the compiled function")


def _drawn(k: int, x: np.ndarray[Any, Any], parts: ModuleParts) -> str:
    """Source of random numbers like those of an array."""
    text = f"{parts.use('seeded')}({k}, {_bounds(x)}, {x.shape}, {literal(x.dtype)})"
    return text if in_order(x) else f"{parts.use('laid')}({text}, {x.strides})"


def _bounds(x: np.ndarray[Any, Any]) -> str:
    with np.errstate(all="ignore"):
        if x.dtype.kind == "c":
            ends = [complex(end(x.real), end(x.imag)) for end in (np.min, np.max)]
        else:
            ends = [end(x).item() for end in (np.min, np.max)]
    return ", ".join(literal(end if np.isfinite(end) else type(end)(k)) for k, end in enumerate(ends))


def _expected(x: Any) -> str:
    """Source of what the self-test expects of a result."""
    if isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
        array = np.asarray(x)
        finite = np.abs(array[np.isfinite(array)]) if array.dtype.kind in "fc" else np.zeros(0)
        largest = float(finite.max(initial=0.0))
        samples = ", ".join(literal(v) for v in standalone.sampled(x))
        return f'("{type(x).__name__}", "{array.dtype.name}", {array.shape}, {literal(largest)}, [{samples}])'
    return f'("value", "", (), 0.0, {quoted(repr(x))})'


def _text(frozen: Frozen, draft: _Draft, example: Sequence[str], arguments: TreeForm, expected: Sequence[str]) -> str:
    parts, face = draft.parts, draft.face
    positional, keywords = arguments.parts
    args = assembled(positional, example, parts)
    kwargs = assembled(keywords, example, parts)
    if parts.arrays:
        parts.use("stored")
    if draft.code.beside:
        parts.use("use_built")
    body = [
        '"""' + _docstring(frozen, draft) + '\n"""',
        _imports(draft) + f"\n\nRECORD = {_record(draft.record)}",
    ]
    body += class_texts(parts)
    checks = "\n".join(f"    {line}" for line in face.lines)
    told = textwrap.indent(_paragraph(face.takes, face.gives), "    ")
    head = f"def {draft.function}({', '.join(face.parameters)}) -> {face.returns}:"
    body.append(f'{head}\n    """{harmless_text(frozen.title)}.\n\n{told}\n    """\n{checks}')
    body.append(draft.code.text)
    plumbing = word_for_word(parts)
    plumbing[0] = f"# What arguments are checked by, and the self-test.\n\n\n{plumbing[0]}"
    body += plumbing
    values = [f"{name} = {source}" for name, source in draft.constants.items()]
    if parts.arrays:
        digest = standalone.digest_of_arrays(parts.arrays)
        values.insert(0, f'_arrays = {parts.use("stored")}("{parts.stem}.npz", "{digest}")')
    body += ["\n".join(values)] if values else []
    body.append(f'def _example() -> Any:\n    """Arguments for the self-test."""\n    return {args}, {kwargs}')
    if draft.code.beside:
        names = ", ".join(map(quoted, draft.code.built))
        body.append(f'_use_built(globals(), [{names}], "{parts.stem}_c.so", b"{draft.code.digest}")')
    listed = "".join(f"    {row},\n" for row in expected)
    body.append(f"_EXPECTED: list[Any] = [\n{listed}]" if expected else "_EXPECTED: list[Any] = []")
    body.append(f'if __name__ == "__main__":\n    sys.exit(_self_test({draft.function}, _example, _EXPECTED))')
    return body[0] + "\n\n" + "\n\n\n".join(body[1:]) + "\n"


def _docstring(frozen: Frozen, draft: _Draft) -> str:
    scipy = any("scipy" in line for line in draft.code.imports)
    lines = [
        f"{harmless_text(frozen.title)}, frozen as {draft.function}.",
        "",
        _paragraph(draft.face.takes, draft.face.gives),
        "",
        "It takes these shapes, types and containers. Others raise an error that names them.",
    ]
    if frozen.read or frozen.constants:
        lines += ["", "State that the function read was frozen when it was exported:"]
        lines += [f"    {word}" for word in (*frozen.read, *_told_constants(frozen, draft))]
    if draft.code.calls and "miss" in draft.code.calls:
        lines += ["", "The function decides by its arguments. It raises OtherWayError if other decisions follow."]
    if draft.parts.arrays:
        lines += ["", f"{draft.parts.stem}.npz beside this file belongs to it."]
    if draft.code.beside:
        lines += ["", f"Parts of it run as C where {draft.parts.stem}.c was compiled: its first line is the command."]
    needs = "NumPy and SciPy" if scipy else "NumPy alone"
    lines += ["", f"Made by retrograd {VERSION}; runs on {needs}. `python {draft.parts.stem}.py` tests it."]
    return "\n".join(lines)


def _told_constants(frozen: Frozen, draft: _Draft) -> Iterator[str]:
    for name, x in zip(draft.constants, frozen.constants, strict=True):
        array = np.asarray(x)
        yield f"{name}: array of dtype {array.dtype} and shape {array.shape}"


def _paragraph(takes: Sequence[str], gives: Sequence[str]) -> str:
    lines = ["Takes:", *(f"    {x}" for x in takes or ["nothing"])]
    return "\n".join([*lines, "Returns:", *(f"    {x}" for x in gives or ["nothing"])])


def _imports(draft: _Draft) -> str:
    used = closed(draft.parts)
    standard = ["ast"] if "throw" in used else []
    standard += ["hashlib"] if "digest_of_arrays" in used else []
    if "use_built" in used:
        standard += ["ctypes", "importlib.machinery", "importlib.util", "sysconfig", "warnings"]
    lines = ["from __future__ import annotations", "", *(f"import {name}" for name in sorted([*standard, "sys"]))]
    if any(form.kind == "dataclass" for form in draft.parts.classes.values()):
        lines.append("from dataclasses import dataclass")
    lines.append("from pathlib import Path")
    named = any(form.kind == "namedtuple" for form in draft.parts.classes.values())
    lines.append("from typing import Any, NamedTuple" if named else "from typing import Any")
    lines += ["", "import numpy as np"]
    lines += [line for line in draft.code.imports if line != "import numpy as np"]
    annotations = " ".join([*draft.face.parameters, draft.face.returns])
    lines += ["from numpy.typing import NDArray"] if "NDArray" in annotations else []
    return "\n".join(lines)


def _record(record: dict[str, Any]) -> str:
    """The record as source: texts in it are filtered."""

    def source(x: Any) -> str:
        if isinstance(x, str):
            return quoted(x)
        if isinstance(x, dict):
            return f"{{{', '.join(f'{quoted(k)}: {source(v)}' for k, v in x.items())}}}"
        return f"[{', '.join(map(source, x))}]" if isinstance(x, (list, tuple)) else literal(x)

    rows = "".join(f"    {quoted(k)}: {source(v)},\n" for k, v in record.items())
    return f"{{\n{rows}}}"
