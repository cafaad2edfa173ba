"""A function on the native target is exported with its C, which its module uses where it was compiled."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd.cli import main
from tests.export.alone import module_at
from tests.support import values
from tests.support.native import needs_compiler

RNG = np.random.default_rng(0)


def whole(x: Any) -> Any:
    return np.sum(np.sin(x) * np.exp(x))


def mixed(x: Any, w: Any) -> Any:
    y = np.tanh(x @ w)
    return np.sum(y * y) + np.sum(np.sort(x, axis=0)[0])


def scanned(x: Any) -> Any:
    last, _ = rg.scan(lambda c, _: (np.sin(c) * 1.5, None), x, None, 20)
    return np.sum(last)


def turned(z: Any, x: Any) -> Any:
    return np.sum(np.abs(np.exp(z) * z) ** 2 * x)


def large(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return np.sum((e / np.sum(e, axis=1, keepdims=True)) ** 2)


CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "whole": (whole, (RNG.normal(size=30),)),
    "mixed": (mixed, (RNG.normal(size=(20, 30)), RNG.normal(size=(30, 4)))),
    "scanned": (scanned, (RNG.normal(size=5),)),
    "turned": (turned, (RNG.normal(size=6) + 1j, RNG.normal(size=6))),
    "large": (large, (RNG.normal(size=(300, 400)),)),
}
over_cases = pytest.mark.parametrize("name", CASES)


def build(path: Path) -> None:
    """Run the command in the first line of the C."""
    command = path.with_suffix(".c").read_text().partition("\n")[0]
    assert command.startswith("/* cc ")
    subprocess.run(shlex.split(command[3:-3]), cwd=path.parent, check=True)


def self_tested(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-I", str(path)], capture_output=True, text=True, check=False)


@needs_compiler
@over_cases
def test_the_module_computes_the_same_before_and_after_its_c_is_compiled(name: str, tmp_path: Path) -> None:
    function, args = CASES[name]
    made = rg.grad(function, backend="native")
    path = tmp_path / f"{name}.py"
    made.export(path, *args)
    assert self_tested(path).returncode == 0
    plain = module_at(path)
    kernels = [x for key, x in vars(plain).items() if key.startswith("_computed_")]
    assert kernels
    assert all(type(x).__name__ == "function" for x in kernels)
    values.assert_close([getattr(plain, f"{name}_grad")(*args)], [made(*args)], 1e-12)
    build(path)
    assert self_tested(path).returncode == 0
    fast = module_at(path)
    assert any(type(x).__name__ == "builtin_function_or_method" for x in vars(fast).values())
    values.assert_same_bits([getattr(fast, f"{name}_grad")(*args)], [made(*args)])
    with pytest.raises(fast.ArgumentError, match="has the shape"):
        getattr(fast, f"{name}_grad")(*(x[:2] for x in args))


def read(x: Any, at: Any) -> Any:
    y = np.sin(x)[at]
    return np.sum(y * y), y, np.any(y > 0.5), np.sum(at), np.sum(np.exp(1j * y)), np.sum(y.astype("f4"))


@needs_compiler
def test_what_c_leaves_to_numpy_and_numbers_of_every_type(tmp_path: Path) -> None:
    """Layouts that are copied, kernels that give up, positions out of bounds, and results without axes."""
    x, at = RNG.normal(size=9), np.array([3, -1, 8])
    made = rg.jit(read, backend="native")
    made.export(tmp_path / "reads.py", x, at)
    build(tmp_path / "reads.py")
    module = module_at(tmp_path / "reads.py")
    assert any(type(f).__name__ == "builtin_function_or_method" for f in vars(module).values())
    far = np.where(np.arange(9) == 3, 1e300, x)
    for given in ((x, at), (np.repeat(x, 2)[::2], at[::-1]), (far, at)):
        found = module.read(*given)
        values.assert_same_bits(list(found), list(made(*given)))
        assert [type(a) for a in found] == [type(a) for a in read(*given)]
        values.assert_close(list(found), list(read(*given)), 1e-6)
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 9"):
        module.read(x, at + 1)


def chosen(x: Any, y: Any) -> Any:
    """Functions with decisions in their C."""
    logs = np.log(x) + np.log2(x) + np.log10(x) + np.log1p(x) + np.logaddexp(x, y)
    powers = np.power(x, y) + np.arctan2(x, y) + np.hypot(x, y) + np.cbrt(x) + np.arctanh(y / 2)
    choices = np.maximum(x, y) + np.fmin(x, y) + np.where((x > 0.5) | (y < 0.2), x // y, x % y)
    scipy = rg.scipy.special.xlogy(x, y) + rg.scipy.special.xlog1py(x, y)
    return np.sum(logs + powers + choices + scipy) + np.max(x) + np.min(y)


@needs_compiler
@pytest.mark.parametrize("name", ["gcc", "clang"])
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_the_command_in_the_c_prints_nothing(name: str, dtype: str, tmp_path: Path) -> None:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name}")
    x = np.linspace(0.1, 0.9, 9, dtype=dtype)
    rg.value_and_grad(chosen, backend="native").export(tmp_path / "chosen.py", x, x[::-1].copy())
    text = (tmp_path / "chosen.c").read_text().partition("\n")[0]
    _, *words = shlex.split(text[3:-3])
    warned = [w for w in words if w != "-w"]
    for command in (words, [*warned, "-Wno-pass-failed"]):  # clang tells which loops it leaves scalar
        told = subprocess.run([found, *command], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert told.stdout + told.stderr == ""


@needs_compiler
def test_a_setup_of_other_objects_is_refused(tmp_path: Path) -> None:
    rg.grad(whole, backend="native").export(tmp_path / "wave.py", np.ones(3))
    build(tmp_path / "wave.py")
    loader = importlib.machinery.ExtensionFileLoader("rg_native", str(tmp_path / "wave_c.so"))
    spec = importlib.util.spec_from_loader("rg_native", loader)
    assert spec is not None
    module: Any = importlib.util.module_from_spec(spec)
    for few in range(15):
        with pytest.raises(TypeError, match="setup takes"):
            module.setup(*([np.ndarray] * few))


@needs_compiler
def test_what_was_compiled_for_another_export_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "wave.py"
    rg.grad(whole, backend="native").export(path, np.ones(3))
    build(path)
    rg.grad(whole, backend="native").export(path, np.ones(4))
    with pytest.warns(UserWarning, match="of another export: NumPy computes"):
        module = module_at(path)
    np.testing.assert_allclose(module.whole_grad(np.ones(4)), rg.grad(whole)(np.ones(4)), rtol=1e-14)
    (tmp_path / "wave_c.so").write_bytes(b"nothing")
    with pytest.warns(UserWarning, match="of another export: NumPy computes"):
        module_at(path)


def test_the_numpy_target_writes_no_c(tmp_path: Path) -> None:
    rg.grad(whole).export(tmp_path / "plain.py", np.ones(3))
    assert [path.name for path in tmp_path.iterdir()] == ["plain.py"]
    assert "ctypes" not in (tmp_path / "plain.py").read_text()


@needs_compiler
def test_the_c_has_no_more_than_letters_of_the_users_names(tmp_path: Path) -> None:
    lines = "import numpy as np\ndef f(x):\n    return np.sum(np.sin(x) * x)\n"
    scope: dict[str, Any] = {}
    exec(compile(lines, "a*/b\\\n.py", "exec"), scope)
    rg.grad(scope["f"], backend="native").export(tmp_path / "odd.py", np.ones(3))
    build(tmp_path / "odd.py")
    assert self_tested(tmp_path / "odd.py").returncode == 0


PROGRAM = """
import numpy as np, retrograd as rg

def loss(x):
    return np.sum(np.sin(x) * np.exp(x))

slope = rg.grad(loss, backend="native")
"""


@needs_compiler
def test_a_committed_module_is_checked_with_its_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["export", "program:slope", "--arg", "f64[3]", "-o", "frozen.py"]) == 0
    assert (tmp_path / "frozen.c").exists()
    assert main(["export", "--check", "frozen.py"]) == 0
    with rg.config(backend="native"):
        assert main(["export", "--check", "frozen.py"]) == 0
    (tmp_path / "program.py").write_text(PROGRAM.replace("np.exp", "np.tanh"))
    sys.modules.pop("program")
    assert main(["export", "--check", "frozen.py"]) == 1
    sys.modules.pop("program")
