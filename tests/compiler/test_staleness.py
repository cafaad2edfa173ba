"""rg.config.check_captures: what other routes bake is reported, and recorded again."""

from __future__ import annotations

import numpy as np
import pytest

import retrograd as rg

X = np.array([1.0, 2.0, 3.0])


class Model:
    def __init__(self):
        self.w = np.array([1.0, 2.0, 3.0])
        self.table = {"rate": 2.0, "bias": np.ones(40) * 0.5}

    def computed(self, x):
        return np.exp(self.w) * x

    def of_a_table(self, x):
        return x * self.table["rate"]

    def of_an_array_in_a_table(self, x):
        return x * np.sum(self.table["bias"] * 2.0)

    def by_reference(self, x):
        return x * self.w

    def decided(self, x):
        return x * 2.0 if self.table["rate"] > 1.0 else -x


CHANGES = {
    "computed": lambda m: m.w.__setitem__(0, 5.0),
    "of_a_table": lambda m: m.table.update(rate=7.0),
    "of_an_array_in_a_table": lambda m: m.table["bias"].fill(4.0),
    "decided": lambda m: m.table.update(rate=0.0),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("transform", [rg.jit, lambda f: rg.grad(lambda x: np.sum(f(x) ** 2))], ids=["jit", "grad"])
def test_what_is_baked_is_reported_once_it_has_changed_and_is_then_right(name, transform):
    model = Model()
    f = getattr(model, name)
    with rg.config(check_captures=True):
        compiled = transform(f)
        compiled(X)
        compiled(X)
        CHANGES[name](model)
        with pytest.warns(rg.errors.StaleCaptureWarning, match="pass it as an argument"):
            found = compiled(X)
        np.testing.assert_allclose(found, transform(f)(X))
        compiled(X)


def test_without_it_what_is_baked_stays_as_documented():
    model = Model()
    compiled = rg.jit(model.computed)
    before = compiled(X)
    model.w[0] = 5.0
    np.testing.assert_array_equal(compiled(X), before)


def test_what_is_followed_is_no_finding():
    model = Model()
    rng = np.random.default_rng(0)
    rate = 1.0

    def f(x):
        y = model.by_reference(x) * rate + rng.normal()
        return y if y[0] > 0 else -y

    with rg.config(check_captures=True):
        compiled = rg.jit(f)
        for k in range(4):
            model.w[k % 3] += 1.0
            rate += 1.0
            compiled(X * (-1) ** k)


def test_the_message_names_the_line():
    model = Model()
    with rg.config(check_captures=True):
        compiled = rg.jit(model.computed)
        compiled(X)
        model.w[0] = 5.0
        with pytest.warns(rg.errors.StaleCaptureWarning, match=r"test_staleness\.py:\d+"):
            compiled(X)


def test_an_array_that_changes_while_it_is_traced_is_refused():
    model = Model()

    def f(x):
        first = model.w * x
        model.w[:] = 0.0
        return first + model.w * x

    with pytest.raises(rg.errors.CapturedWriteError, match="changed while the function was traced"):
        rg.jit(f)(X)
