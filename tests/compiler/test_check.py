"""The generated check of what was read: what passes, what it hands over, and what its source looks like."""

from __future__ import annotations

import functools
import gc
import math
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import retrograd as rg
from retrograd.tracer.state.checks import Check
from retrograd.tracer.state.reads import KINDS, MISSING, SCOPE, Read, same_elements

X = np.array([1.0, 2.0, 3.0])
W = np.array([4.0, 5.0, 6.0])


def checked(*reads, captures=(), function=None, statics=()):
    check = Check()
    check.rely_on(reads, function, statics, tuple(captures))
    return check


def test_a_check_compares_identities_and_equal_numbers():
    names = {"n": 1000.0, "z": 0.0, "o": X}
    check = checked(*(Read(names, "get", key, value) for key, value in names.items()))
    assert check.run(None, ()) == ()
    names["n"] = float("1000")
    assert check.run(None, ()) == ()
    names["n"] = 1000
    assert check.run(None, ()) is None
    names["n"], names["z"] = 1000.0, -0.0
    assert check.run(None, ()) is None
    del names["z"]
    assert check.run(None, ()) is None
    names["z"] = 0.0
    assert check.run(None, ()) == ()


def test_arrays_are_handed_over_if_they_are_alike():
    names = {"w": W}
    check = checked(Read(names, "get", "w", W), captures=[W])
    other = names["w"] = W + 1.0
    assert check.run(None, ())[0] is other
    names["w"] = W.astype(np.float32)
    assert check.run(None, ()) is None
    names["w"] = W[:2]
    assert check.run(None, ()) is None
    names["w"] = W.tolist()
    assert check.run(None, ()) is None


def test_an_array_that_is_changed_in_place_is_another_one():
    names = {"w": np.ones(2)}
    check = checked(Read(names, "get", "w", names["w"]), captures=[names["w"]])
    assert check.run(None, ())[0] is names["w"]
    names["w"].resize(3, refcheck=False)
    assert check.run(None, ()) is None


def test_an_array_in_two_places_stays_one_array():
    names = {"a": W, "b": W}
    check = checked(*(Read(names, "get", key, W) for key in names), captures=[W])
    other = names["a"] = names["b"] = W + 1.0
    assert check.run(None, ())[0] is other
    names["b"] = W + 1.0
    assert check.run(None, ()) is None


def test_paths_start_at_static_arguments():
    first, second = (SimpleNamespace(sub=SimpleNamespace(k=2.0)) for _ in range(2))
    check = checked(Read(first, "attr", "sub", first.sub), Read(first.sub, "attr", "k", 2.0), statics=[first])
    assert check.run(None, [second]) == ()
    second.sub.k = 3.0
    assert check.run(None, [second]) is None
    assert "which" not in check.changed(None, [second])
    assert "'k'" in check.changed(None, [second])


def test_no_check_keeps_an_argument_or_the_function_alive():
    class Model:
        k = 2.0

        def energy(self, x):
            return self.k * np.sum(x**2)

    f = rg.jit(lambda m, x: m.energy(x))
    model = Model()
    gone = weakref.ref(model)
    f(model, X)
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_reads_the_same_by_its_source_and_by_now(kind):
    class Place:
        name = 1.0
        _sub = weakref.ref(X)

        def method(self):
            return None

    cell = (lambda: cell).__closure__[0]
    places = {
        "cell": (cell, None),
        "closure": ((lambda: cell), 0),
        "code": (Place.method, None),
        "globals": (Place.method, None),
        "method": (Place(), "method"),
        "item": ([1.0, 2.0], 0),
        "asked": (functools.cache(math.sqrt), ((4.0,), ())),
        "get": ({"name": 1.0}, "name"),
        "global": ({"name": 1.0}, "name"),
        "static": (Place, "name"),
        "context": (SimpleNamespace(get=lambda default: default), None),
        "target": (weakref.ref(X), None),
        "bytes": (X, None),
        "buffer": (bytearray(b"ab"), None),
        "elements": (np.array([None, "a"]), None),
        "in": ([1, 2], 1),
        "data": ([1, 2.0, "a"], None),
    }
    place, key = places.get(
        kind, ([1.0, 2.0], "name") if kind in ("len", "keys", "set", "truth", "types") else (Place(), "name")
    )
    read = Read(place, kind, key, None)
    text = KINDS[kind].text.format(p="p", k="k", n=key)
    assert (
        same_elements(read.now, eval(text, {**SCOPE, "p": place, "k": key})) or read.now is MISSING or kind == "closure"
    )


def test_what_changed_is_named():
    holder = SimpleNamespace(rate=0.1)
    compiled = rg.jit(lambda x: x * holder.rate)

    def call(rate):
        holder.rate = rate
        return compiled(X)

    for k in range(8):
        call(float(k))
    with pytest.warns(rg.errors.RetraceWarning, match=r"the attribute 'rate' of an object of the class Simple"):
        call(8.0)


def test_what_changes_itself_is_recorded_each_time_and_says_so():
    calls = SimpleNamespace(n=0)

    def counting(x):
        calls.n += 1
        return x * calls.n

    compiled = rg.jit(counting)
    for k in (1, 2):
        np.testing.assert_array_equal(compiled(X), X * k)
    with pytest.warns(rg.errors.UnwatchedWarning, match=r"the attribute 'n'.*test_check\.py:\d+"):
        third = compiled(X)
    np.testing.assert_array_equal(third, X * 3)
    np.testing.assert_array_equal(compiled(X), X * 4)
    assert calls.n == 4


def test_caches_are_bounded():
    f = rg.jit(lambda x: x + 1.0)
    with rg.config(cache_size=4):
        for n in range(1, 10):
            f(np.ones(n))
    assert f.cache_info().size <= 4
    np.testing.assert_array_equal(f(np.ones(1)), [2.0])
