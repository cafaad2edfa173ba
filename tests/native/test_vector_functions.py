"""The functions of kernels are within two units of the C library's long ones, and right where special."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

from retrograd.codegen.native.shared_objects import compiler
from retrograd.codegen.native.shim import header
from tests.support.native import needs_compiler

pytestmark = [
    needs_compiler,
    pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long numbers are not longer here"),
]

MOST = 2.0  # units in the last place
N = 40_000
NAMES = {
    **{name: f"{name}l(x)" for name in ("exp", "log", "sin", "cos", "tanh", "erf", "log1p", "expm1", "atan")},
    "expit": "1 / (1 + expl(-x))",
    "sinh": "sinhl(x)",
    "cosh": "coshl(x)",
    "asin": "asinl(x)",
    "acos": "acosl(x)",
    "cbrt": "cbrtl(x)",
    "exp2": "exp2l(x)",
    "log2": "log2l(x)",
    "log10": "log10l(x)",
}
LARGEST = {"exp": 745.0, "expm1": 709.0, "sinh": 710.0, "cosh": 710.0, "exp2": 1074.0, "asin": 1.0, "acos": 1.0}
LARGEST |= {"sin": 2.0**45, "cos": 2.0**45, "erf": 6.5, "expit": 745.0, "tanh": 30.0}
POSITIVE = ("log", "log2", "log10")
SOURCE = """
#include <math.h>
{headers}
/* The distance in units of the last place, for results that are normal numbers; 1e9 for a wrong nan or zero. */
static double away(double found, long double exact, int digits, double least) {{
  if (isnan(exact)) return isnan(found) ? 0 : 1e9;
  if (isinf(exact)) return found == exact ? 0 : 1e9;
  if (fabsl(exact) > (digits == 53 ? 0x1.fffffffffffffp1023L : 0x1.fffffep127L)) return 0; /* it rounds to infinity */
  if (exact == 0) return found == 0 && !signbit(found) == !signbit(exact) ? 0 : 1e9;
  int exponent;
  frexpl(exact, &exponent);
  const long double unit = ldexpl(1, exponent - digits);
  return fabsl(exact) < least ? 0 : (double)(fabsl(found - exact) / unit);
}}
{checks}
"""
CHECK = """
double check_{name}{s}(const {kind} *given, long n) {{
  double worst = 0;
  for (long k = 0; k < n; k++) {{
    const long double x = given[k];
    const double units = away(rg_{name}{s}(given[k]), {reference}, {digits}, {least});
    worst = units > worst ? units : worst;
  }}
  return worst;
}}
"""


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """A library with a check of each function for doubles and floats."""
    text = "".join(
        CHECK.format(name=name, s=s, kind=kind, reference=reference, digits=digits, least=least)
        for name, reference in NAMES.items()
        for s, kind, digits, least in (("", "double", 53, "0x1p-1022"), ("f", "float", 24, "0x1p-126f"))
    )
    return library(SOURCE.format(headers=_headers(), checks=text), tmp_path_factory.mktemp("functions"))


def library(text: str, folder: Path) -> ctypes.CDLL:
    """C, compiled as kernels are."""
    tool = compiler()
    assert tool is not None
    (folder / "checks.c").write_text(text)
    command = [*tool.command, *tool.flags, "-fvisibility=default", "-o", "checks.so", "checks.c", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "checks.so"))


def _headers() -> str:
    plain = "#include <stdint.h>\n#undef NAN\n#undef INFINITY\n"
    return plain + header("functions.h") + header("further_functions.h")


def worst(checks: ctypes.CDLL, name: str, x: np.ndarray) -> float:
    """The largest distance of a function, in units in the last place."""
    function = checks[f"check_{name}{'f' * (x.dtype == np.float32)}"]
    function.restype = ctypes.c_double
    return float(function(ctypes.c_void_p(x.ctypes.data), ctypes.c_long(len(x))))


def samples(name: str, dtype: str, n: int) -> np.ndarray:
    """Numbers of all sizes, dense ones near zero and one, and the ends of pieces of the functions."""
    rng = np.random.default_rng(11)
    most = LARGEST.get(name, 1e300 if dtype == "f8" else 1e38)
    signs = rng.choice([-1.0, 1.0], n)
    sizes = 2.0 ** rng.uniform(-60, np.log2(most), n)
    near = rng.uniform(-min(most, 3.0), min(most, 3.0), n)
    found = [signs * sizes, near, 1 + signs * 2.0 ** rng.uniform(-50, -2, n), rng.uniform(-1, 1, n) * min(most, 50.0)]
    ends = np.concatenate([[k * np.log(2) / 2, k * np.pi / 4, k * 1.0, k / 8, 2.0**k] for k in range(-40, 41)])
    ends = np.concatenate([np.nextafter(ends, -9e9), ends, np.nextafter(ends, 9e9)])
    x = np.concatenate([*found, ends])
    if name in POSITIVE:
        x = np.abs(x)
    x = x[np.abs(x) <= most]
    return np.ascontiguousarray(x[x > -1] if name == "log1p" else x, dtype)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", NAMES)
def test_functions_are_within_two_units(name: str, dtype: str, checks: ctypes.CDLL) -> None:
    assert worst(checks, name, samples(name, dtype, N)) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", NAMES)
def test_functions_are_within_two_units_of_many(name: str, dtype: str, checks: ctypes.CDLL) -> None:
    assert worst(checks, name, samples(name, dtype, 50 * N)) <= MOST


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("sin", "cos")])
def test_special_values(name: str, dtype: str, checks: ctypes.CDLL) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, tiny, -tiny, 1.0, -1.0], dtype)
    assert worst(checks, name, x[x >= 0] if name == "cbrt" else x) <= MOST


def test_a_wrong_digit_is_seen(tmp_path: Path) -> None:
    check = CHECK.format(name="exp", s="", kind="double", reference="expl(x)", digits=53, least="0x1p-1022")
    text = SOURCE.format(headers=_headers(), checks=check)
    assert "4.1666666666666664e-02" in text
    wrong = library(text.replace("4.1666666666666664e-02", "4.16666666667e-02"), tmp_path)
    assert worst(wrong, "exp", samples("exp", "f8", N)) > MOST
