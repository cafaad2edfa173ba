"""Bad uses of choices, loops, throwing and subgraphs, as careless users write them."""

from __future__ import annotations

import numpy as np

import retrograd as rg
from retrograd import errors
from tests.errors.bad_uses import X, add_traced, bad

add_traced("cond_by_an_array", lambda x: rg.cond(x > 0, np.sin, np.cos, x), errors.ShapeError)
add_traced("cond_with_shapes", lambda x: rg.cond(x[0] > 0, lambda: x, lambda: x[:2]), errors.ShapeError)
add_traced("cond_with_dtypes", lambda x: rg.cond(x[0] > 0, lambda: x, lambda: x.astype(np.float32)), errors.ShapeError)
add_traced("cond_with_trees", lambda x: rg.cond(x[0] > 0, lambda: (x, x), lambda: [x, x]), errors.TreeError)
add_traced("cond_with_statics", lambda x: rg.cond(x[0] > 0, lambda: (x, "a"), lambda: (x, "b")), errors.TreeError)
add_traced("cond_without_function", lambda x: rg.cond(x[0] > 0, np.sin, x), errors.OptionError)
add_traced(
    "python_in_a_branch", lambda x: rg.cond(x[0] > 0, lambda: x if x[1] > 0 else -x, lambda: x), errors.ControlFlowError
)
add_traced("switch_by_a_float", lambda x: rg.switch(x[0], [np.sin, np.cos], x), errors.OptionError)
add_traced("switch_of_nothing", lambda x: rg.switch(0, [], x), errors.OptionError)
add_traced("while_shape", lambda x: rg.while_loop(lambda c: c[0] < 5, lambda c: c[:2], x), errors.CarryError)
add_traced("while_dtype", lambda x: rg.while_loop(lambda n: n < 5, lambda n: n + 0.5, np.int64(0)), errors.CarryError)
add_traced("while_tree", lambda x: rg.while_loop(lambda c: c[0] < 5, lambda c: [*c], (0, x)), errors.CarryError)
add_traced("while_by_an_array", lambda x: rg.while_loop(lambda c: c < 5, lambda c: c + 1, x), errors.ShapeError)
add_traced("while_by_a_tree", lambda x: rg.while_loop(lambda c: (c, c), lambda c: c + 1, x[0]), errors.ShapeError)
add_traced("fori_shape", lambda x: rg.fori_loop(3, lambda i, c: c[1:], x), errors.CarryError)
add_traced("fori_by_a_float", lambda x: rg.fori_loop(3.0, lambda i, c: c, x), errors.OptionError)
add_traced("fori_without_body", lambda x: rg.fori_loop(3, x, x), errors.OptionError)
add_traced("map_of_a_number", lambda x: rg.map(np.sin, x[0]), errors.ShapeError)
add_traced("associative_scan_changes", lambda x: rg.associative_scan(lambda a, b: np.sum(a + b), x), errors.CarryError)
add_traced("throw_by_an_array", lambda x: rg.throw_if(x > 0), errors.ShapeError)
add_traced(
    "throw_an_object",
    lambda x: rg.try_catch(lambda: (rg.throw_if(x[0] > 0, {1, 2}), x)[1], np.sin),
    errors.UnsupportedError,
)


@bad(errors.ReadOnlyError)
def a_branch_writes_into_a_view_of_what_is_outside():
    def branch(x):
        part = x[1:]

        def write():
            view = part[:1]
            view += 1.0  # <-
            return np.sum(view)

        return rg.cond(x[0] > 0, write, lambda: 0.0)

    rg.jit(branch)(X)


@bad(errors.CapturedWriteError)
def a_loop_writes_into_what_is_outside():
    def loop(x):
        y = x * 2

        def body(i, c):
            y[i] = c  # <-
            return c

        return rg.fori_loop(3, body, x[0]), y

    rg.jit(loop)(X)


@bad(errors.OptionError)
def subgraph_of_a_negative_size():
    rg.subgraph(np.sin, inline=-1)  # <-


@bad(errors.CarryError)
def scan_carry_changes_its_dtype():
    rg.scan(lambda c, x: (c + 0.5, x), np.int64(0), X)  # <-
