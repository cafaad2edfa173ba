"""The command line: what ``python -m retrograd --help`` lists."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import __version__
from .api.gradients import grad
from .api.jit import jit
from .compiler.compiled import Compiled
from .compiler.pass_table import passes
from .errors import ChangedError, InternalError, OptionError, RetrogradError
from .export.committed import check as check_committed
from .export.committed import export_to, origin_of, renew
from .ir.parser import parse
from .ir.verify import verify
from .looking import commands as looks
from .looking.commands import TRANSFORMS, Answer
from .looking.completion import SHELLS, completion
from .looking.named import argnums_of, check_count, given, load, named
from .reports.explain import explain, overview
from .where import Where, user_frame

# What to print of a function and its gradient, for these arguments.
EMITS: dict[str, Callable[[Callable[..., Any], Any, Sequence[Any], dict[str, Any]], str]] = {
    "ir": lambda f, _, args, kwargs: str(jit(f).graph(*args, **kwargs)),
    "grad-ir": lambda _, gradient, args, kwargs: str(gradient.graph(*args, **kwargs)),
    "source": lambda _, gradient, args, kwargs: str(gradient.source(*args, **kwargs)),
    "dot": lambda f, _, args, kwargs: str(jit(f).dot(*args, **kwargs)),
    "grad-dot": lambda _, gradient, args, kwargs: str(gradient.dot(*args, **kwargs)),
}
TARGET = "module:function or path/file.py:function; the file is imported, and its main part does not run"
ARGNUMS = "arguments of the derivative: positions or names, separated by commas; default: all floating-point arguments"
ARG = "an argument: a type (f64[3,2], float), a value (3), or NAME=... for a keyword"

# Of each command: what it does, and examples.
ABOUT: dict[str, tuple[str, tuple[str, ...]]] = {
    "show": (
        "print a graph, generated source or DOT",
        ("show model.py:loss --arg f64[3] --arg float", "show model.py:loss --arg f64[3] --argnums 0 --emit grad-ir"),
    ),
    "explain": (
        "explain a call: inputs, cost by line, memory, decisions, a gradient check",
        ("explain model.py:loss --arg f64[100] --arg n=3", "explain model.py:loss --arg f64[100] --transform jit"),
    ),
    "report": (
        "write an interactive page about a call",
        ("report model.py:loss --arg f64[100] -o report.html",),
    ),
    "source": ("print the generated source", ("source model.py:loss --arg f64[3] --transform hessian",)),
    "plan": (
        "show what a call keeps in memory and recomputes",
        ("plan model.py:loss --arg f64[1000]", "plan model.py:loss --arg f64[1000] --curve"),
    ),
    "profile": ("measure the lines of a function and of its derivative", ("profile model.py:loss --arg f64[1000]",)),
    "check": (
        "compare derivatives with central differences; the status is 1 if they differ",
        ("check model.py:loss --arg f64[3] --arg float --order 1",),
    ),
    "export": (
        "write a derivative as a NumPy module, or check a committed one",
        ("export model.py:loss --arg f64[3] -o loss_grad.py", "export --check loss_grad.py"),
    ),
    "errors": ("explain an error by its code, or list all", ("errors", "errors RG0203")),
    "opt": ("run passes over a graph in text", ("opt graph.ir -p simplify,prune", "opt - -p transpose < graph.ir")),
    "doctor": ("check whether the installed packages fit together", ("doctor",)),
    "audit": (
        "show which functions of a program trace and which lines block; the status is 1 if a line blocks or it fails",
        ("audit src/", "audit main.py --run", "audit main.py --run -- --steps 10"),
    ),
    "completion": (
        "print a script that completes commands and options in a shell",
        ('eval "$(retrograd completion bash)"', "retrograd completion fish | source"),
    ),
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="retrograd", description="Inspect how retrograd compiles a function.")
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    top.add_argument("--traceback", action="store_true", help="show the traceback of an error")
    subparsers = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands = {name: _command(subparsers, name) for name in ABOUT}
    for name in ("show", "explain", "report", "source", "plan", "profile", "check"):
        commands[name].add_argument("target", help=TARGET)
        commands[name].add_argument("--arg", action="append", default=[], metavar="[NAME=]TYPE", help=ARG)
        commands[name].add_argument("--argnums", metavar="NAMES", help=ARGNUMS)
    for name in ("explain", "report", "source", "plan", "profile"):
        what = "the transform for a plain function, by default grad; a compiled function is used unchanged"
        commands[name].add_argument("--transform", choices=sorted(TRANSFORMS), help=what)
    commands["show"].add_argument("--emit", choices=sorted(EMITS), default="source", help="what to print")
    for name in ("explain", "report"):
        commands[name].add_argument("--no-check", action="store_true", help="skip the gradient check")
    commands["report"].add_argument("-o", "--output", metavar="FILE", default="report.html", help="the page to write")
    commands["plan"].add_argument("--curve", action="store_true", help="also show the cost of less memory")
    commands["check"].add_argument("--order", type=int, default=2, help="the highest order of derivatives")
    _of_export(commands["export"])
    commands["opt"].add_argument("file", help="a file with one graph; - for standard input")
    known = f"from {', '.join(passes())}; separated by commas"
    commands["opt"].add_argument("-p", "--passes", default="simplify", metavar="NAMES", help=known)
    commands["errors"].add_argument("code", nargs="?", help="RG0203, or the name of a class")
    commands["audit"].add_argument("path", help="a file or a folder")
    run = "run the file as a program, and trace each of its functions with the arguments of its first call"
    commands["audit"].add_argument("--run", action="store_true", help=run)
    commands["audit"].epilog = f"{commands['audit'].epilog}\n\nArguments after -- are passed to the program."
    commands["completion"].add_argument("shell", choices=SHELLS)
    return top


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """The command line taken apart; ``arguments`` are those behind ``--``, for the program that ``audit`` runs."""
    end = argv.index("--") if "--" in argv and "audit" in argv else len(argv)
    options = parser().parse_args(argv[:end])
    options.arguments = list(argv[end + 1 :])
    return options


def _command(subparsers: Any, name: str) -> argparse.ArgumentParser:
    what, examples = ABOUT[name]
    lines = [x if x.startswith(("eval", "retrograd")) else f"python -m retrograd {x}" for x in examples]
    epilog = "\n".join(["examples:", *(f"  {line}" for line in lines)])
    shape = argparse.RawDescriptionHelpFormatter
    made: argparse.ArgumentParser = subparsers.add_parser(
        name, help=what, description=what, epilog=epilog, formatter_class=shape
    )
    return made


def _of_export(keep: argparse.ArgumentParser) -> None:
    keep.add_argument("target", nargs="?", help="module:function; a compiled function is exported unchanged")
    keep.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="[NAME=]TYPE",
        help="a type (f64[3,2], float) or a fixed value (3, n=3)",
    )
    keep.add_argument("--argnums", metavar="NAMES", help=ARGNUMS)
    keep.add_argument(
        "--transform", choices=sorted(TRANSFORMS), default="grad", help="the transform for a plain function"
    )
    keep.add_argument("-o", "--output", metavar="FILE", help="the module to write")
    keep.add_argument(
        "--check", metavar="FILE", nargs="?", const="", help="exit with 1 if a committed file has changed"
    )
    keep.add_argument("--renew", metavar="FILE", help="write a committed file again, with its own arguments")


def show(options: argparse.Namespace) -> str:
    """The ``show`` command: a function's graph, source or DOT text."""
    args, kwargs = given(options.arg, fixed=False)
    function = load(options.target)
    check_count(function, len(args), list(kwargs))
    return EMITS[options.emit](function, grad(function, argnums_of(args, options.argnums)), args, kwargs)


def keep(options: argparse.Namespace) -> str:
    """The ``export`` command: write a module, or compare a committed one with the current output."""
    if options.renew is not None:
        return renew(options.renew, named, options.target)
    if options.check is not None:
        committed = options.check or options.output
        if not committed:
            raise OptionError("--check names no file", remedy="python -m retrograd export --check FILE")
        try:
            return check_committed(committed, named, options.target)
        except ChangedError as fault:
            raise ChangedError(fault.what, where=None, remedy=fault.remedy) from fault.__cause__
    if not options.target or not options.output:
        raise OptionError("export needs a function and a file", remedy="python -m retrograd export module:f -o FILE")
    found = named(options.target)
    args, kwargs = given(options.arg)
    if not isinstance(found, Compiled):
        argnums = argnums_of(args, options.argnums)
        found = TRANSFORMS[options.transform](found, argnums)
    export_to(options.output, found, args, kwargs, {**origin_of(found), "of": options.target})
    return f"{options.output} is written\n"


def opt(options: argparse.Namespace) -> str:
    """The ``opt`` command: the graph of a file after some passes; ``linearize`` gives the linear half."""
    try:
        text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise OptionError(f"cannot read {options.file!r}: {fault}") from None
    try:
        graph = verify(parse(text))
    except InternalError as fault:  # the text is the user's
        raise OptionError(f"{options.file!r} does not contain a graph: {fault.what}", remedy=fault.remedy) from None
    for name in options.passes.split(","):
        if name not in passes():
            raise OptionError(f"there is no pass {name!r}", remedy=f"choose from {', '.join(passes())}")
        graph = passes()[name](graph)
    return str(graph)


def told(options: argparse.Namespace) -> str:
    """The ``errors`` command: one explanation, or the tree of all errors."""
    from .distributed import faults  # noqa: PLC0415 - no other command needs the package around it

    if options.code:
        return faults.explained(options.code) or explain(options.code)
    return f"{overview()}\nWork on other processes has errors of its own:\n\n{faults.table()}\n"


COMMANDS: dict[str, Callable[[argparse.Namespace], str | Answer]] = {
    "show": show,
    "explain": looks.explain,
    "report": looks.report,
    "source": looks.source,
    "plan": looks.plan,
    "profile": looks.profile,
    "check": looks.check,
    "export": keep,
    "errors": told,
    "opt": opt,
    "doctor": looks.doctor,
    "audit": looks.audit,
    "completion": lambda options: completion(parser(), options.shell),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; 0, 1 if the answer is bad news, such as a changed derivative, or 2, with the error on stderr."""
    options = parsed(sys.argv[1:] if argv is None else argv)
    try:
        found = COMMANDS[options.command](options)
        answer = found if isinstance(found, Answer) else Answer(found)
        print(answer.text, end="", flush=True)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as fault:  # noqa: BLE001 - the user's program may raise anything; it is told in a few words
        print(_told_of(fault, options.traceback), file=sys.stderr)
        return 1 if isinstance(fault, ChangedError) else 2
    return answer.status


def _told_of(fault: Exception, whole: bool) -> str:
    """An error in a few words: its message, and the user's line that it comes from."""
    if whole:
        return "".join(traceback.format_exception(fault)).rstrip()
    if isinstance(fault, RetrogradError):
        inside = isinstance(fault.where, Where) and Path(fault.where.file).is_relative_to(Path(__file__).parent)
        return str(type(fault)(fault.what, where=None, remedy=fault.remedy)) if inside else str(fault)
    lines = [(f, n) for f, n in traceback.walk_tb(fault.__traceback__) if user_frame(f) is f]
    at = [f"  at {lines[-1][0].f_code.co_filename}:{lines[-1][1]}"] if lines else []
    notes = [f"  {note}" for note in getattr(fault, "__notes__", ())]
    more = "  python -m retrograd --traceback ... shows all of it"
    return "\n".join([f"{type(fault).__name__}: {fault}", *at, *notes, more])
