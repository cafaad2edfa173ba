"""What ``rg.<TAB>`` shows is what a user may use, each name in one spelling."""

from __future__ import annotations

import ast
import builtins
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import retrograd as rg

NAMES = """
grad value_and_grad vjp jvp linearize linear_transpose adjoint cotangent_space
jacobian jacfwd jacrev hessian hvp check_grads
jit trace subgraph eval_shape
vmap scan fori_loop while_loop map associative_scan
cond switch try_catch throw_if require callcc
checkpoint name policies Everything Snapshots Log Periodic Tiered
custom_vjp custom_jvp implicit primitive pull push stop_gradient no_grad lens check_lens
config debug_nans debug_counters register_container load native_info
distributed eager errors functions ir nn optim progress scipy to_jax to_torch tree
RetrogradError Compiled
"""
FACE = set(NAMES.split())
EAGER = {"Function", "ParameterStore", "Record", "Tensor"}
FUNCTIONS = {"Fn", "FunctionCotangent", "closure_convert", "fit_pairs", "fn"}
NOT_FLAT = sorted(
    EAGER | FUNCTIONS | {name for name in vars(rg.errors) if name.endswith(("Error", "Warning"))} - {"RetrogradError"}
)


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def in_a_new_process(program: str) -> object:
    """What the program prints, as JSON."""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_the_face_and_nothing_else_is_shown():
    assert public(rg) == FACE
    assert len(dir(rg)) == len(FACE) + 1  # the version


def test_a_prompt_completes_to_the_face():
    program = "import json, rlcompleter, retrograd as rg; complete = rlcompleter.Completer({'rg': rg}).attr_matches"
    shown = in_a_new_process(f"{program}; print(json.dumps([name.rstrip('()') for name in complete('rg.')]))")
    assert {name.removeprefix("rg.") for name in shown} == FACE


@pytest.mark.parametrize("name", sorted(FACE))
def test_what_is_shown_is_there(name):
    assert getattr(rg, name) is getattr(rg, name)


@pytest.mark.parametrize("name", [*NOT_FLAT, "Thrown", "nonsense"])
def test_what_is_not_shown_flat_is_not_there(name):
    with pytest.raises(AttributeError, match=f"'retrograd' has no attribute '{name}'"):
        getattr(rg, name)


def test_rooms_show_their_own_names_and_no_others():
    assert rg.nn.relu
    assert public(rg.eager) == EAGER  # and neither nn nor optim, which are `rg.nn` and `rg.optim`
    assert public(rg.functions) == FUNCTIONS
    for room in (rg.eager, rg.functions):
        assert all(getattr(room, name).__module__.startswith(room.__name__) for name in public(room))
    with pytest.raises(AttributeError, match=r"'retrograd\.api\.functions' has no attribute 'nonsense'"):
        rg.functions.nonsense  # noqa: B018 - the lookup is what fails


def test_rooms_that_not_every_program_needs_are_loaded_on_first_use():
    program = """
import json, sys
import numpy as np, retrograd as rg
rooms = "scipy", "matplotlib", "networkx", "retrograd.eager", "retrograd.api.functions.learners", "retrograd.compat"
rooms += "retrograd.distributed", "dask", "distributed", "threadpoolctl"
rg.jit(np.sin)(1.0)
before = [room for room in rooms if room in sys.modules]
rg.nn, rg.functions.fit_pairs
print(json.dumps([before, [room for room in rooms if room in sys.modules]]))
"""
    assert in_a_new_process(program) == [[], ["retrograd.eager", "retrograd.api.functions.learners"]]


def test_the_room_of_numpy_is_loaded_though_the_face_has_no_such_name():
    program = """
import json
import numpy as np, retrograd as rg
import retrograd.numpy.shapes
print(json.dumps([hasattr(rg, "numpy"), rg.grad(lambda x: np.sum(np.tile(x, 3)))(1.0)]))
"""
    assert in_a_new_process(program) == [False, 3.0]


def test_a_star_shadows_nothing():
    scope: dict[str, object] = {}
    exec("from retrograd import *", scope)
    names = set(scope) - {"__builtins__"}
    assert names < FACE
    assert {"grad", "jit", "vmap", "scan"} < names
    taken = {*dir(builtins), *dir(np), *sys.stdlib_module_names, "scipy"}
    words = {"config", "errors", "functions", "name", "nn", "optim", "pull", "push"}
    assert names & (taken | words) == set()


def test_type_checkers_see_the_face():
    """They take as public what ``__all__`` lists, what is imported under its own name, and what is defined."""
    tree = ast.parse(Path(rg.__file__).read_text(encoding="utf-8"))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname == alias.name
    }
    assert imported | set(rg.__all__) == FACE


def test_config_shows_its_settings_and_their_values():
    settings = ["backend", "cache_size", "counters", "debug_nans", "exact", "fast"]
    settings += ["max_nodes", "max_traces", "nan_safe", "verify"]
    assert dir(rg.config) == sorted([*settings, "keep_pages", "threads", "traceback", "workspace"])
    with rg.config(exact=True, max_traces=7):
        shown = repr(rg.config)
        assert shown.startswith("rg.config(")
        assert {"exact=True", "fast=False", "max_traces=7"} <= set(shown[len("rg.config(") : -1].split(", "))
        assert all(f"{name}={getattr(rg.config, name)!r}" in shown for name in settings)
    assert "exact=False" in repr(rg.config)


def test_a_compiled_function_shows_how_to_look_at_it():
    names = {"at", "source", "graph", "dot", "plan", "tradeoff", "executable", "explain_retrace", "cache_info"}
    names |= {"export", "save", "explain", "profile", "report", "buffered"}
    for transform in (rg.grad, rg.value_and_grad, rg.jit, rg.vmap, rg.jacrev, rg.hessian):
        compiled = transform(np.sin)
        assert callable(compiled)
        assert public(compiled) == names
        assert all(callable(getattr(compiled, name)) for name in names)
