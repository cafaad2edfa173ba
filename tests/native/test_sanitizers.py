"""Kernels touch no memory but their own, and do nothing that C leaves undefined: sanitizers watch the tests."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from retrograd.codegen.native.shared_objects import compiler
from tests.support.native import needs_compiler

ROOT = Path(__file__).parents[2]
WATCHED = "-fsanitize=address,undefined -fno-sanitize-recover=all"
BEYOND = """
import numpy as np
from retrograd.codegen.native import shared_objects
from retrograd.codegen.native.target import extension, kernel_function
from retrograd.ir import parse
from dataclasses import replace

graph = parse("graph f(%x: f64[99]) {\\n  %0 = sin %x : f64[99]\\n  return %0\\n}")
kernel = kernel_function(graph, "kernel0")
wrong = replace(kernel, source=kernel.source.replace("< 99", "< 100"))
(function,) = shared_objects.functions(extension([graph], [wrong]), 1, [print])
function(np.ones(99))
"""

RACE = """
import numpy as np
from dataclasses import replace
from retrograd.codegen.native import shared_objects
from retrograd.codegen.native.target import extension, kernel_function
from retrograd.ir import parse
from tests.native.test_threads import always_helped

shared_objects.THREADS.append(lambda: 2)
graph = parse("graph f(%x: f64[99999]) {\\n  %0 = sin %x : f64[99999]\\n  return %0\\n}")
kernel = kernel_function(graph, "kernel0")
wrong = replace(kernel, source=kernel.source.replace("first = least(3136 * part, 99999)", "first = 0"))
assert wrong != kernel
with always_helped():
    (function,) = shared_objects.functions(extension([graph], [wrong]), 1, [print])
    for _ in range(9):
        function(np.ones(99999))
"""
THREADS = """
from tests.native.test_threads import PROGRAMS, always_helped, gradients

with always_helped("-DAWAKE=1000"):
    gradients(list(PROGRAMS))
"""
SAMPLES = """
from tests.native import test_complex, test_operations
from tests.support.native import in_a_hurry

with in_a_hurry():
    test_operations.test_samples_have_the_values_and_types_of_numpy()
    test_operations.test_special_values_are_those_of_numpy()
    test_complex.test_values_are_those_of_numpy_special_ones_too()
"""
RANDOM = """
from tests.native.test_overwriting import RandomChains
from tests.native.test_random_kernels import RandomComplexKernel, as_numpy_computes
from tests.support.native import in_a_hurry

with in_a_hurry():
    assert as_numpy_computes(range(2 * 10**7, 2 * 10**7 + 60)) >= 30
    assert as_numpy_computes(range(3 * 10**7, 3 * 10**7 + 60), RandomComplexKernel) >= 30
    assert as_numpy_computes(range(4 * 10**7, 4 * 10**7 + 40), RandomChains) >= 20
"""
SERVED = """
from tests.native import test_served_calls as calls
from tests.support.native import in_a_hurry

with in_a_hurry():
    for name in calls.RESULTS:
        calls.test_results_are_those_of_the_first_call(name)
    for name in calls.OTHERS:
        calls.test_other_arguments_are_left_to_the_general_way(name)
    calls.test_containers_that_refuse_placeholders_get_results()
    calls.test_what_was_read_is_checked()
    calls.test_plain_reads_are_checked_in_c()
    calls.test_served_calls_are_counted_and_forgotten()
    calls.test_many_shapes_have_few_servers()
    calls.test_methods_are_served_for_each_instance()
    calls.test_a_call_that_a_kernel_gives_up_is_right()
    calls.test_nothing_is_lost_over_many_calls()
"""
PLACES = """
from tests.native import test_decided_places as places
from tests.support.native import in_a_hurry

with in_a_hurry():
    for function in places.CASES:
        places.test_values_and_slopes(function)
    for function in (places.read, places.added, places.written, places.steps):
        for bad in (16, -17, 2**62, -(2**63)):
            places.test_positions_out_of_bounds_raise_numpys_error_with_the_line(function, bad)
    places.test_what_reads_an_array_before_a_write_sees_what_was_there()
"""
FORMULAS = """
from tests.native import test_decided_formulas as formulas
from tests.support.native import in_a_hurry

with in_a_hurry():
    for name in formulas.CASES:
        formulas.test_writes_at_any_place(name)
    assert formulas.check(range(5000, 5010)) > 20
"""
STRUCTURES = """
from tests.native import test_served_structures as calls
from tests.support.native import in_a_hurry

with in_a_hurry():
    for name in calls.CASES:
        calls.test_results_are_those_of_the_general_way(name)
    for name in sorted({case for case, _ in calls.OTHERS.values()}):
        calls.test_other_arguments_are_left_to_the_general_way(name)
    calls.test_gradients_have_the_structure_of_the_arguments()
    calls.test_keywords_have_an_order()
    calls.test_ints_that_vary_are_operands()
    calls.test_what_is_read_of_static_objects_is_checked()
    calls.test_static_numbers_are_told_apart(0.0, -0.0)
    calls.test_attributes_that_are_code_may_fail()
    calls.test_nothing_is_lost_over_many_calls()
"""


def under_watch(tmp_path: Path, *command: str, watched: str = WATCHED) -> subprocess.CompletedProcess[str]:
    """Run Python where kernels are compiled with the sanitizers."""
    tool = compiler()
    assert tool is not None
    clang = "clang" in tool.version.lower()
    names = (f"libclang_rt.asan-{platform.machine()}.so",) if clang else ("libasan.so", "libubsan.so")
    if "thread" in watched:
        names = ("libtsan.so",)
    found = [
        subprocess.run(
            [*tool.command, f"-print-file-name={n}"], capture_output=True, text=True, check=False
        ).stdout.strip()
        for n in names
    ]
    if not all(map(os.path.isabs, found)):
        pytest.skip("the sanitizers are not installed")
    env = {
        **os.environ,
        "CC": f"{' '.join(tool.command)} {watched}{' -shared-libasan' * clang}",
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": "detect_leaks=0",
        "TSAN_OPTIONS": "halt_on_error=1",
        "OPENBLAS_NUM_THREADS": "1",
        "XDG_CACHE_HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    fixed = ["setarch", "-R"] if "thread" in watched else []  # the sanitizer of threads needs addresses that stay
    if fixed and shutil.which("setarch") is None:
        pytest.skip("addresses cannot be fixed")
    command = (*fixed, sys.executable, *command)
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env, check=False)


@needs_compiler
@pytest.mark.slow
def test_the_sanitizers_see_a_kernel_that_reads_too_far(tmp_path: Path) -> None:
    told = under_watch(tmp_path, "-c", BEYOND)
    assert told.returncode != 0
    assert "AddressSanitizer" in told.stderr


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    "calls",
    [SAMPLES, RANDOM, PLACES, FORMULAS, SERVED, STRUCTURES, THREADS],
    ids=["samples", "random", "places", "formulas", "served", "structures", "threads"],
)
def test_kernels_under_the_sanitizers(calls: str, tmp_path: Path) -> None:
    told = under_watch(tmp_path, "-c", calls)
    assert told.returncode == 0, told.stderr[-3000:]


@needs_compiler
@pytest.mark.slow
def test_the_sanitizer_of_threads_sees_parts_that_overlap(tmp_path: Path) -> None:
    told = under_watch(tmp_path, "-c", RACE, watched="-fsanitize=thread")
    assert told.returncode != 0
    assert "data race" in told.stderr


@needs_compiler
@pytest.mark.slow
def test_threads_do_not_race(tmp_path: Path) -> None:
    told = under_watch(tmp_path, "-c", THREADS, watched="-fsanitize=thread")
    assert told.returncode == 0, told.stderr[-3000:]
