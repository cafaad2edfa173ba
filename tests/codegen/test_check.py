"""check_source: generated source may hold only what the emitter writes."""

from __future__ import annotations

import pytest

from retrograd.codegen.numpy.check import check_source
from retrograd.codegen.numpy.target import BUILTINS
from retrograd.compiler.executable import Executable
from retrograd.errors import InternalError
from retrograd.ir import parse
from tests.golden.runner import goldens, intermediate

GOOD = '''"""f(x: f64[3]) -> f64[3]

Made by retrograd; runs on NumPy alone.
"""

import numpy as np


def f(x, y=x_1):
    v1 = np.sin(x)  # a.py:1
    v1[1:, 0] += 2.0 * x
    for t in range(3):
        v2 = [a + b for a, b in zip(v1, x)]
        v1 = v2[-1].copy()
    del v2
    while v1[0] < 3:
        v1 = np.add.reduce(v1, axis=None, keepdims=True)
    try:
        v3 = f_numbers(float, math, 1.0 if v1[0] > 2.0 else 2.0)
    except (ArithmeticError, ValueError):
        v3 = f_numbers(np.float64, np, 2.0)
    return (v1, np.float64(1.0))
'''

HOSTILE = [
    "import os",
    "import numpy, os",
    "import numpy as np, sys as np",
    "from os import system",
    "from numpy import *",
    "v1 = x.__class__",
    "v1 = x.__class__.__bases__",
    "v1 = (lambda: 1)()",
    "v1 = exec('1')",
    "v1 = exec",
    "v1 = exec  ('1')",
    "v1 = eval('1')",
    "v1 = open('file')",
    "v1 = getattr(x, 'y')",
    "v1 = __import__('os')",
    "v1 = __builtins__",
    "v1 = [__builtins__]",
    "v1 = np.load('file')",
    "v1 = np.save('file', x)",
    "v1 = np.lib.npyio",
    "v1 = x.tofile('file')",
    "v1 = x.ctypes",
    "v1 = f'{x}'",
    "v1 = f\"{__import__('os')}\"",
    "v1 = {1: 2}",
    "v1 = {1, 2}",
    "v1 = {k: 1 for k in x}",
    "v1 = (k for k in x)",
    "v1 = [1 if x else exec]",
    "try:\n        v1 = 1\n    finally:\n        pass",
    "try:\n        v1 = 1\n    except:\n        pass",
    "try:\n        v1 = 1\n    except (ArithmeticError, ValueError):\n        pass\n    finally:\n        pass",
    "try:\n        v1 = 1\n    except (ArithmeticError, ValueError):\n        pass\n    except:\n        pass",
    "try:\n        v1 = 1\n    except (ArithmeticError, ValueError) as v2:\n        pass",
    "while x or y:\n        pass",
    "v1 = (v2 := 3)",
    "v1 = x and y",
    "v1 = [*x]",
    "v1 = np.sin(*x)",
    "assert x",
    "raise SystemExit",
    "global np",
    "nonlocal np",
    "class A: pass",
    "@np.vectorize\n    def g(x): pass",
    "async def g(): pass",
    "yield x",
    "with x: pass",
    "try:\n        pass\n    except Exception:\n        pass",
    "match x:\n        case 1: pass",
    "v1 = 1; import os",
    "v1 = 'a  # b'; import os",
    "v1 = '''\n  # '''; import os",
    "v1 = (1 +\n    __import__('os'))",
    "v1 = (x.\n    __class__)",
    "v1 = x. __class__",
    "v1 = x.\\\n    __class__",
    "ｅｘｅｃ('1')",
    "v1 = ｅxec ('1')",
    "v1 = ｅｘｅｃ",
    "v1 = x.＿_class__",
    "v1 = _＿import__('os')",
    "v1 = _＿import__ ('os')",
    "v1 = x.__ｃlass__",
    "def g(a=__builtins__):\n        return a",
    "def g(a=eval):\n        return a",
    "v1: int = 3",
    "type A = int",
]


def with_line(line: str) -> str:
    return GOOD.replace("    del v2\n", f"    {line}\n")


def test_what_the_emitter_writes_is_allowed() -> None:
    check_source(GOOD)


@pytest.mark.parametrize("line", HOSTILE, ids=ascii)
def test_hostile_source_is_refused(line: str) -> None:
    with pytest.raises((InternalError, SyntaxError)):
        check_source(with_line(line))


@pytest.mark.parametrize("line", HOSTILE, ids=ascii)
def test_hostile_source_is_refused_outside_of_functions_too(line: str) -> None:
    with pytest.raises((InternalError, SyntaxError)):
        check_source(GOOD + line.replace("\n    ", "\n") + "\n")


@pytest.mark.parametrize("line", ["import os", "v1 = x.__class__", "v1 = exec('1')", "v1 = lambda: 1"])
def test_a_docstring_hides_nothing(line: str) -> None:
    for source in (
        f'"""a"""\n{line}\n',
        f'"""a\\"""\n{line}\n"""\n{line}\n',
        f'""""""\n{line}\n',
        f'"""a"""; {line}\n',
    ):
        with pytest.raises((InternalError, SyntaxError)):
            check_source(source)


def test_a_refusal_names_what_is_refused() -> None:
    for line, name in [("import os", "imports os"), ("v1 = x.__class__", "__class__"), ("v1 = lambda: 1", "Lambda")]:
        with pytest.raises(InternalError, match=name):
            check_source(with_line(line))


def test_comments_may_hold_anything() -> None:
    check_source(with_line("v2 = x + 1  # import os; __class__; lambda: exec('1')"))
    check_source(with_line("v2 = x + 1  # naïve θ"))


@pytest.mark.parametrize("golden", [g for g in goldens() if g.path.parent.name == "source"], ids=str)
def test_the_source_of_every_golden_is_allowed(golden: object) -> None:
    *first, _ = golden.steps
    check_source(Executable(intermediate(golden, first)).module.source)


def test_code_runs_with_no_builtins_but_those_that_the_emitter_uses() -> None:
    executable = Executable(parse("graph f(%x: f64) {\n  %0 = sin %x : f64\n  return %0\n}"))
    scope = executable.function.__globals__
    assert set(scope["__builtins__"]) == {*BUILTINS, "__import__"}
    with pytest.raises(ImportError, match="imports os"):
        scope["__builtins__"]["__import__"]("os")
