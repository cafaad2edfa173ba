"""Public names, and the sections of their docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from itertools import zip_longest
from types import ModuleType
from typing import Any

import retrograd as rg

SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Examples")
PACKAGES = ("distributed", "eager", "functions", "ir", "nn", "optim", "progress", "tree")
SOLVERS = ("brentq", "fixed_point", "least_squares", "minimize", "root")  # all else of SciPy keeps SciPy's names
RAISE_NOTHING = {"no_grad", "stop_gradient", "debug_counters", "pull", "push", "cache_info", "evaluate", "to_text"}
RAISE_NOTHING |= {"leaky_relu", "linear", "log_softmax", "relu"}
RETURNED = {"Minimum", "Report", "ShardProgress", "Progress", "Graph", "Node", "Value", "Aval", "Fn"}  # users make none


def public() -> dict[str, Any]:
    """Every public name below ``rg``, without exceptions: the flat face, packages, members of compiled functions."""
    found = {name: getattr(rg, name) for name in dir(rg) if not name.startswith("_")}
    found = {name: thing for name, thing in found.items() if not isinstance(thing, ModuleType)}
    for package in PACKAGES:
        module = getattr(rg, package)
        names = getattr(module, "__all__", None) or [name for name in dir(module) if not name.startswith("_")]
        for name in names:
            thing = getattr(module, name)
            if getattr(thing, "__module__", "").startswith((module.__name__, "retrograd.compiler.phases")):
                found.setdefault(f"{package}.{name}", thing)
    found |= {f"scipy.{name}": getattr(rg.scipy, name) for name in SOLVERS}
    return {name: thing for name, thing in found.items() if not _is_exception(thing)}


def exceptions() -> set[str]:
    """The names of all exceptions and warnings, with their package."""
    spaces = {"errors": rg.errors, "distributed": rg.distributed}
    return {
        f"{space}.{name}"
        for space, module in spaces.items()
        for name, thing in vars(module).items()
        if _is_exception(thing) and thing.__module__.startswith(module.__name__)
    }


def members() -> dict[str, Any]:
    """The members of compiled functions."""
    return {f"Compiled.{name}": getattr(rg.Compiled, name) for name in dir(rg.jit(abs)) if not name.startswith("_")}


def _is_exception(thing: Any) -> bool:
    return inspect.isclass(thing) and issubclass(thing, BaseException)


def sections(text: str) -> dict[str, list[str]]:
    """The sections of a docstring by title; what is before the first one has the title ``""``."""
    lines, found, title = inspect.cleandoc(text).splitlines(), {"": []}, ""
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if re.fullmatch(r"-{3,}", following) and len(following) == len(line):
            title = line
            found[title] = []
        elif not re.fullmatch(r"-{3,}", line):
            found[title].append(line)
    return found


def entries(lines: list[str]) -> Iterator[tuple[list[str], bool]]:
    """The names of each entry of a section, and whether something is said of them."""
    for line, following in zip_longest(lines, lines[1:], fillvalue=""):
        if line and not line.startswith(" "):
            names = line.split(" : ")[0]
            yield [name.strip(" *") for name in names.split(",")], following.startswith("    ")


def method_faults(thing: Any) -> list[str]:
    """The same of a method, whose class has an example; a property needs a sentence."""
    text = inspect.getdoc(thing) or ""
    found = sections(text)
    said = [] if found[""] and found[""][0].endswith((".", ":")) else ["no first sentence"]
    if not inspect.isroutine(thing):
        return said
    wanted = _parameters(thing)
    documented = [one for names, _ in entries(found.get("Parameters", [])) for one in names]
    said += [] if sorted(wanted) == sorted(documented) else [f"parameters {documented}, not {wanted}"]
    return said if not wanted or "Returns" in found or _returns_nothing(thing) else [*said, "no result"]


def faults(name: str, thing: Any) -> list[str]:
    """What is missing in the docstring of a public name, or does not fit its signature."""
    text = inspect.getdoc(thing) or ""
    found = sections(text)
    last = name.rpartition(".")[2]
    said = [f"an unknown section {title}" for title in found if title and title not in SECTIONS]
    if not found[""] or not found[""][0].endswith((".", ":")):
        said.append("no first sentence")
    if last in RETURNED:
        return said
    if ">>>" not in "\n".join(found.get("Examples", [])):
        said.append("no example")
    if not callable(thing) or last in ("config", "policies"):
        return said
    wanted = _parameters(thing)
    documented = [one for names, _ in entries(found.get("Parameters", [])) for one in names]
    said += [f"no parameter {one} is documented" for one in wanted if one not in documented]
    said += [f"there is no parameter {one}" for one in documented if one not in wanted]
    said += [
        f"nothing is said of {', '.join(names)}"
        for title in ("Parameters", "Returns", "Raises")
        for names, explained in entries(found.get(title, []))
        if not explained and not (title == "Parameters" and "of a call" in text)
    ]
    if inspect.isclass(thing):
        return said
    if "Returns" not in found and not _returns_nothing(thing):
        said.append("no result")
    if "Raises" not in found and last not in RAISE_NOTHING:
        said.append("no errors")
    known = {one.rpartition(".")[2] for one in exceptions()} | {"ImportError", "OSError", "ValueError"}
    return said + [
        f"no error {one}" for names, _ in entries(found.get("Raises", [])) for one in names if one not in known
    ]


def _parameters(thing: Any) -> list[str]:
    names = list(inspect.signature(thing).parameters)
    return [name for name in names if name != "self" and not name.startswith("_")]


def _returns_nothing(thing: Any) -> bool:
    return inspect.signature(thing).return_annotation in ("None", None)
