"""The functions of kernels are within two units of the C library's long ones, and right where special."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
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
    "exp_below": "expl(x)",
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
LARGEST = {
    "exp": 745.0,
    "exp_below": 800.0,
    "expm1": 709.0,
    "sinh": 710.0,
    "cosh": 710.0,
    "exp2": 1074.0,
    "asin": 1.0,
    "acos": 1.0,
}
LARGEST |= {"sin": 2.0**45, "cos": 2.0**45, "erf": 6.5, "expit": 745.0, "tanh": 30.0}
POSITIVE = ("log", "log2", "log10")
NEVER_POSITIVE = ("exp_below",)
OF_TWO = {
    "pow": "powl(x, y)",
    "atan2": "atan2l(x, y)",
    "hypot": "hypotl(x, y)",
    "log_expit": "copysignl(x < 0 ? x : 0, -1) - log1pl(expl(-fabsl(x)))",  # of the first number
}
SOURCE = """
#include <math.h>
{headers}
/* The distance in units of the last place; 1e9 for a wrong nan, a wrong zero or the wrong sign of one. */
static double away(double found, long double exact, int digits, double most) {{
  const int smallest = digits == 53 ? -1021 : -125;
  if (isnan(exact) || isnan(found)) return isnan(exact) && isnan(found) ? 0 : 1e9;
  if (!signbit(exact) != !signbit(found)) return 1e9;
  if (isinf(exact) || exact == 0) return found == exact ? 0 : 1e9;
  if (isinf(found)) return fabsl(exact) > most ? 0 : 1e9;
  int exponent;
  frexpl(exact, &exponent);
  if (fabsl(exact) > most) return fabs(found) == most ? 0 : 1e9;
  return (double)(fabsl(found - exact) / ldexpl(1, (exponent < smallest ? smallest : exponent) - digits));
}}
{checks}
"""
CHECK = """
double check_{name}{s}(const {kind} *given, const {kind} *second, long n) {{
  double worst = 0;
  for (long k = 0; k < n; k++) {{
    const long double x = given[k], y = second[k];
    (void)y;
    const double units = away(rg_{name}{s}({operands}), {reference}, {digits}, {most});
    worst = units > worst ? units : worst;
  }}
  return worst;
}}
void bits_{name}{s}(const {kind} *restrict given, const {kind} *restrict second, {kind} *restrict out, long n) {{
  #pragma omp simd
  for (long k = 0; k < n; k++) out[k] = rg_{name}{s}({operands});
}}
"""
KINDS = (("", "double", 53, "0x1.fffffffffffffp1023"), ("f", "float", 24, "0x1.fffffep127"))


def check_of(name: str, reference: str, s: str, kind: str, digits: int, most: str) -> str:
    operands = "given[k], second[k]" if name in OF_TWO and name != "log_expit" else "given[k]"
    return CHECK.format(name=name, reference=reference, operands=operands, s=s, kind=kind, digits=digits, most=most)


def source() -> str:
    """A check of each function for doubles and floats, and a loop over it."""
    functions = {**NAMES, **OF_TWO}.items()
    text = "".join(check_of(name, reference, *kind) for name, reference in functions for kind in KINDS)
    return SOURCE.format(headers=_headers(), checks=text)


@pytest.fixture(scope="module")
def checks(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return library(source(), tmp_path_factory.mktemp("functions"))


def library(text: str, folder: Path, flags: Sequence[str] = ()) -> ctypes.CDLL:
    """C, compiled as kernels are, and with further flags."""
    tool = compiler()
    assert tool is not None
    (folder / "checks.c").write_text(text)
    command = [*tool.command, *tool.flags, *flags, "-fvisibility=default", "-o", "checks.so", "checks.c", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "checks.so"))


def _headers() -> str:
    plain = "#include <stdint.h>\n#undef NAN\n#undef INFINITY\n"
    return plain + header("functions.h") + header("further_functions.h")


def worst(checks: ctypes.CDLL, name: str, x: np.ndarray, y: np.ndarray | None = None) -> float:
    """The largest distance of a function, in units in the last place."""
    function = checks[f"check_{name}{'f' * (x.dtype == np.float32)}"]
    function.restype = ctypes.c_double
    return float(function(place(x), place(x if y is None else y), ctypes.c_long(len(x))))


def place(x: np.ndarray) -> ctypes.c_void_p:
    assert x.flags.c_contiguous
    return ctypes.c_void_p(x.ctypes.data)


def samples(name: str, dtype: str, n: int) -> np.ndarray:
    """Numbers of all sizes, dense ones near zero and one, and the ends of pieces of the functions."""
    rng = np.random.default_rng(11)
    most = LARGEST.get(name, 1e300 if dtype == "f8" else 1e38)
    signs = rng.choice([-1.0, 1.0], n)
    sizes = 2.0 ** rng.uniform(-60, np.log2(most), n)
    near = rng.uniform(-min(most, 3.0), min(most, 3.0), n)
    found = [signs * sizes, near, 1 + signs * 2.0 ** rng.uniform(-50, -2, n), rng.uniform(-1, 1, n) * min(most, 50.0)]
    turns = np.floor(2.0 ** rng.uniform(0, np.log2(min(most, 2.0**45)), n)) * (np.pi / 4)
    least = 2.0 ** rng.uniform(-1074, -1000, n) if dtype == "f8" else 2.0 ** rng.uniform(-149, -120, n)
    edges = signs * most * (1 - 2.0 ** rng.uniform(-50, -3, n))
    found += [signs * turns, signs * least, edges]
    ends = np.concatenate([[k * np.log(2) / 2, k * np.pi / 4, k * 1.0, k / 8, 2.0**k] for k in range(-40, 41)])
    ends = np.concatenate([np.nextafter(ends, -9e9), ends, np.nextafter(ends, 9e9)])
    x = np.concatenate([*found, ends])
    if name in POSITIVE:
        x = np.abs(x)
    if name in NEVER_POSITIVE:
        x = -np.abs(x)
    x = x[np.abs(x) <= most]
    return np.ascontiguousarray(x[x > -1] if name == "log1p" else x, dtype)


@pytest.mark.costly
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", NAMES)
def test_functions_are_within_two_units(name: str, dtype: str, checks: ctypes.CDLL) -> None:
    assert worst(checks, name, samples(name, dtype, N)) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", NAMES)
def test_functions_are_within_two_units_of_many(name: str, dtype: str, checks: ctypes.CDLL) -> None:
    assert worst(checks, name, samples(name, dtype, 50 * N)) <= MOST


def pairs(dtype: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of all sizes, powers that are close to one and to the ends of numbers, points close to the axes."""
    rng = np.random.default_rng(12)
    far, top = (1070, 1021) if dtype == "f8" else (148, 126)
    signs = rng.choice([-1.0, 1.0], (2, n))
    wide = signs * 2.0 ** rng.uniform(-far, top, (2, n))
    base = 2.0 ** rng.uniform(-30, 30, n)
    most = top / np.abs(np.log2(base)) * rng.uniform(-1.06, 1.06, n)  # the power ends beyond the largest numbers
    close, steep = 1 + signs[0] * 2.0 ** rng.uniform(-50, -1, n), 2.0 ** rng.uniform(0, 62, n)
    whole = np.where(rng.random(n) < 0.5, np.rint(most), np.rint(2 * most) / 2)
    plain = rng.uniform(-9, 9, (2, n))
    x = np.concatenate([wide[0], base, close, signs[0] * base, plain[0], wide[0], most])
    y = np.concatenate([wide[1], most, signs[1] * steep, whole, plain[1], np.roll(close, 1) * wide[0], most])
    with np.errstate(all="ignore"):
        return x.astype(dtype), y.astype(dtype)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_numbers_are_within_two_units(name: str, dtype: str, checks: ctypes.CDLL) -> None:
    assert worst(checks, name, *pairs(dtype, N)) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_numbers_are_within_two_units_of_many(name: str, dtype: str, checks: ctypes.CDLL) -> None:
    assert worst(checks, name, *pairs(dtype, 25 * N)) <= MOST


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("name", [name for name in (*NAMES, *OF_TWO) if name not in ("sin", "cos", "exp2")])
def test_special_values(name: str, dtype: str, checks: ctypes.CDLL) -> None:
    tiny, largest = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    points = [0.0, np.inf, np.nan, tiny, 0.5, 1.0, 1.5, 2.0, 3.0, largest]
    x = np.array([*([] if name in NEVER_POSITIVE else points), *np.negative(points)], dtype)
    first, second = (np.ascontiguousarray(v.reshape(-1)) for v in np.meshgrid(x, x))
    assert worst(checks, name, first, second) <= MOST


@pytest.mark.parametrize("width", ["-mprefer-vector-width=128", "-fno-tree-vectorize"])
def test_bits_are_the_same_at_every_width_and_position(width: str, checks: ctypes.CDLL, tmp_path: Path) -> None:
    """Vectors of any length, single numbers, and the numbers that are left at the end of a loop."""
    if not _takes(width):
        pytest.skip("this compiler or machine has no such flag")
    others = library(source(), tmp_path, (width, "-fno-openmp-simd") if "tree" in width else (width,))
    for name in (*NAMES, *OF_TWO):
        for dtype in ("f8", "f4"):
            x, y = pairs(dtype, 300) if name in OF_TWO else [samples(name, dtype, 300)] * 2
            whole = bits(checks, name, x, y)
            assert whole == bits(others, name, x, y), (name, dtype)
            parts = [bits(checks, name, x[k : k + n], y[k : k + n]) for k, n in cut(len(x))]
            assert whole == b"".join(parts), (name, dtype)


@pytest.mark.parametrize("flags", [[], ["-march=x86-64"]])
def test_an_exponential_has_the_same_bits_where_the_sign_is_known(flags: list[str], tmp_path: Path) -> None:
    if not all(map(_takes, flags)):
        pytest.skip("this machine is of another kind")
    made = library(source(), tmp_path, flags)
    for dtype in ("f8", "f4"):
        ends = [-0.0, -np.inf, np.nan, -np.finfo(dtype).max, -np.finfo(dtype).smallest_subnormal]
        x = np.concatenate([samples("exp_below", dtype, N), np.array(ends, dtype)])
        assert bits(made, "exp_below", x, x) == bits(made, "exp", x, x), dtype


@pytest.mark.parametrize("name", NAMES)
def test_nan_of_any_payload_stays_nan(name: str, checks: ctypes.CDLL) -> None:
    """R marks missing numbers so; scales are made from the last bits of numbers."""
    for dtype, quiet, top in (("f8", 0x7FF8 << 48, 1 << 51), ("f4", 0x7FC << 20, 1 << 22)):
        payloads = [1954, *(top - 1 >> k for k in range(22)), *(1 << k for k in range(22))]
        x = np.array([sign | quiet | p for p in payloads for sign in (0, 1 << (8 * int(dtype[1]) - 1))], f"u{dtype[1]}")
        assert np.isnan(np.frombuffer(bits(checks, name, x.view(dtype), x.view(dtype)), dtype)).all(), dtype


def cut(n: int) -> list[tuple[int, int]]:
    """Parts of a range, of each length up to 40 in turn."""
    ends = np.minimum(np.cumsum(np.arange(n) % 40 + 1), n)
    starts = np.concatenate([[0], ends[:-1]])
    return [(int(a), int(b - a)) for a, b in zip(starts, ends, strict=True) if a < n]


def bits(checks: ctypes.CDLL, name: str, x: np.ndarray, y: np.ndarray) -> bytes:
    """What a loop over a function makes; all nan are one."""
    out = np.empty_like(x)
    checks[f"bits_{name}{'f' * (x.dtype == np.float32)}"](place(x), place(y), place(out), ctypes.c_long(len(x)))
    return np.where(np.isnan(out), np.asarray(np.nan, out.dtype), out).tobytes()


def _takes(flag: str) -> bool:
    tool = compiler()
    assert tool is not None
    command = [*tool.command, *tool.flags, flag, "-Werror", "-x", "c", "-", "-o", "/dev/null"]
    return subprocess.run(command, input=b"int x;", capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("flags", [["-march=x86-64"], ["-march=x86-64", "-mavx2"], ["-march=x86-64-v3"], ["-O1"]])
def test_functions_of_other_machines_are_within_two_units(flags: list[str], tmp_path: Path) -> None:
    """Without fused multiplications, some are those of the C library, whose cubic root is further off."""
    if not _takes(flags[0]):
        pytest.skip("this machine is of another kind")
    others = library(source(), tmp_path, flags)
    for dtype in ("f8", "f4"):
        for name in NAMES:
            assert worst(others, name, samples(name, dtype, N)) <= (4.0 if name == "cbrt" else MOST), (name, dtype)
        for name in OF_TWO:
            assert worst(others, name, *pairs(dtype, N)) <= MOST, (name, dtype)


def test_a_wrong_digit_is_seen(tmp_path: Path) -> None:
    text = SOURCE.format(headers=_headers(), checks=check_of("exp", "expl(x)", *KINDS[0]))
    assert "4.1666666666666664e-02" in text
    wrong = library(text.replace("4.1666666666666664e-02", "4.16666666667e-02"), tmp_path)
    assert worst(wrong, "exp", samples("exp", "f8", N)) > MOST
