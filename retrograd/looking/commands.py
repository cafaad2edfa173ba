"""The commands that look inside: explain, report, source, plan, profile, check, audit, doctor."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..api.check_grads import check_grads
from ..api.gradients import grad, value_and_grad
from ..api.jacobians import hessian
from ..api.jit import jit
from ..compiler.compiled import Compiled
from ..errors import GradientCheckError, OptionError
from .amounts import table
from .audit import Verdict, python_files, read, run
from .doctor import examine
from .named import argnums_of, check_count, given, load, named, plain

TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": grad,
    "hessian": hessian,
    "jit": lambda function, argnums: jit(function),
    "value_and_grad": value_and_grad,
}


class Answer(NamedTuple):
    """What a command prints, and the status that it ends with."""

    text: str
    status: int = 0


def called(options: argparse.Namespace) -> tuple[Any, list[Any], dict[str, Any]]:
    """The compiled function that options name, and its arguments; a compiled function is taken as it is."""
    found = named(options.target)
    args, kwargs = given(options.arg, fixed=False)
    check_count(plain(found), len(args), list(kwargs))
    if isinstance(found, Compiled) and options.transform is None and options.argnums is None:
        return found, args, kwargs
    return TRANSFORMS[options.transform or "grad"](plain(found), argnums_of(args, options.argnums)), args, kwargs


def explain(options: argparse.Namespace) -> Answer:
    """All that is known of a call."""
    function, args, kwargs = called(options)
    return Answer(f"{function.explain(*args, check=not options.no_check, **kwargs)}\n")


def report(options: argparse.Namespace) -> Answer:
    """A page about a call."""
    function, args, kwargs = called(options)
    try:
        path = function.report(options.output, *args, check=not options.no_check, **kwargs)
    except OSError as fault:
        raise OptionError(f"cannot write {options.output!r}: {fault}", where=None) from None
    return Answer(f"{path} is written\n")


def source(options: argparse.Namespace) -> Answer:
    """The generated module."""
    function, args, kwargs = called(options)
    return Answer(function.source(*args, **kwargs))


def plan(options: argparse.Namespace) -> Answer:
    """What a call keeps in memory, and with ``--curve`` what less would cost."""
    function, args, kwargs = called(options)
    found = [str(function.plan(*args, **kwargs))]
    found += [str(function.tradeoff(*args, **kwargs))] if options.curve else []
    return Answer("\n\n".join(found) + "\n")


def profile(options: argparse.Namespace) -> Answer:
    """The time of a call by line."""
    function, args, kwargs = called(options)
    return Answer(f"{function.profile(*args, **kwargs)}\n")


def check(options: argparse.Namespace) -> Answer:
    """Derivatives against central differences; the status is 1 where they differ."""
    function = load(options.target)
    args, kwargs = given(options.arg, fixed=False)
    check_count(function, len(args), list(kwargs))
    chosen = argnums_of(args, options.argnums)
    places = [k for k in chosen if isinstance(k, int)]
    if len(places) < len(chosen) or not all(-len(args) <= k < len(args) for k in places):
        raise OptionError(
            f"--argnums {options.argnums} is not a position", remedy="give positions from 0, separated by commas"
        )
    if not places:
        raise OptionError("no argument is floating-point", remedy="give types such as float and f64[3]: --arg f64[3]")

    def of(*some: Any) -> Any:
        full = list(args)
        for k, x in zip(places, some, strict=True):
            full[k] = x
        return function(*full, **kwargs)

    try:
        check_grads(of, tuple(args[k] for k in places), order=options.order)
    except GradientCheckError as fault:
        return Answer(f"{fault}\n", 1)
    orders = "order 1" if options.order == 1 else f"orders 1 to {options.order}"
    return Answer(f"derivatives of {orders} agree with central differences, forward and reverse\n")


def doctor(options: argparse.Namespace) -> Answer:
    """What is installed; the status is 1 where something does not fit."""
    found = examine()
    rows = [("ok" if x.fine else "fault", x.what, x.found) for x in found]
    return Answer(
        "\n".join(table(("", "", ""), rows, frozenset({0, 1, 2}))[1:]) + "\n", int(not all(x.fine for x in found))
    )


def audit(options: argparse.Namespace) -> Answer:
    """Which functions of a program trace; the status is 1 where a line blocks, or the program failed."""
    path = Path(options.path)
    if not path.exists():
        raise OptionError(f"there is nothing at {options.path!r}", remedy="name a file or a folder")
    ended = ""
    if options.run:
        if not path.is_file():
            raise OptionError("--run needs one file", remedy="python -m retrograd audit main.py --run")
        verdicts, ended = run(path, options.arguments)
    else:
        verdicts = [verdict for file in python_files(path) for verdict in read(file)]
    return Answer(
        _audited(verdicts, ended, options.run), int(bool(ended) or any("block" in v.status for v in verdicts))
    )


def _audited(verdicts: list[Verdict], ended: str, ran: bool) -> str:
    """Verdicts as text: those that block with the line and the remedy, and how many there are of each kind."""
    lines = [f"{ended}; the functions that ran before are listed"] if ended else []
    rows = [(v.status, v.name, v.where, v.why if v.status == "not tried" else "") for v in verdicts]
    lines += table(("", "function", "line", ""), rows, frozenset({0, 1, 2, 3})) if rows else ["no functions were found"]
    for v in verdicts:
        if v.status != "not tried" and v.why:
            lines += ["", f"{v.name}: {v.why}", *([f"  at {v.line}"] if v.line else [])]
            lines += [f"  remedy: {v.remedy}"] if v.remedy else []
    kinds = {status: sum(v.status == status for v in verdicts) for status in dict.fromkeys(v.status for v in verdicts)}
    lines += ["", ", ".join(f"{count} {status}" for status, count in kinds.items())]
    if not ran:
        lines.append("nothing was run; --run traces each function with the arguments of its first call")
    return "\n".join(lines) + "\n"
