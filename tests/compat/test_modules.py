"""Names of modules: the real ones under autograd's names, and the package under the name autograd."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
import retrograd.compat.autograd.numpy as ag_np
import retrograd.compat.autograd.numpy.fft as ag_fft
import retrograd.compat.autograd.numpy.linalg as ag_linalg
import retrograd.compat.autograd.numpy.random as ag_random
import retrograd.compat.autograd.scipy.integrate as ag_integrate
import retrograd.compat.autograd.scipy.linalg as ag_scipy_linalg
import retrograd.compat.autograd.scipy.special as ag_special
import retrograd.compat.autograd.scipy.stats as ag_stats
import retrograd.compat.autograd.scipy.stats.multivariate_normal as ag_mvn
import retrograd.compat.autograd.scipy.stats.norm as ag_norm
import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.special
import scipy.stats
from retrograd.compat.autograd.numpy.linalg import solve
from retrograd.compat.autograd.numpy.numpy_boxes import ArrayBox
from retrograd.compat.autograd.scipy.stats import t
from retrograd.compat.autograd.scipy.stats.norm import logpdf

import retrograd.compat.autograd as ag
import retrograd.compat.autograd.scipy.signal as ag_signal
from retrograd.compat.autograd.builtins import DictBox
from retrograd.compat.autograd.builtins import isinstance as ag_isinstance
from retrograd.compat.autograd.tracer import getval, isbox
from retrograd.errors import OptionError


def test_the_modules_are_the_real_ones():
    assert ag.numpy is ag_np is np
    assert (ag_fft, ag_linalg, ag_random) == (np.fft, np.linalg, np.random)
    assert (ag_integrate, ag_scipy_linalg) == (scipy.integrate, scipy.linalg)
    assert (ag_special, ag_stats) == (scipy.special, scipy.stats)
    assert ag.scipy.stats is scipy.stats
    assert ag_norm is scipy.stats.norm
    assert ag_mvn is scipy.stats.multivariate_normal
    assert t is scipy.stats.t
    assert solve is np.linalg.solve
    assert ag.scipy.signal is ag_signal
    assert ag_signal.fftconvolve is scipy.signal.fftconvolve
    assert not {"numpy_boxes", "numpy_vjps"} & set(dir(np))


def test_names_at_the_top():
    assert (ag.tuple, ag.list, ag.dict, ag.isinstance, ag.type) == (tuple, list, dict, isinstance, type)
    assert ag.builtins.tuple is tuple
    assert ag.util.subvals is ag.wrap_util.subvals is ag.tracer.subvals
    assert ag.core.getval is getval
    assert ag.core.toposort is ag.tracer.toposort is ag.util.toposort


def test_a_module_that_is_not_there_is_named():
    with pytest.raises(ModuleNotFoundError, match=r"autograd\.numpy\.no_such"):
        __import__("retrograd.compat.autograd.numpy.no_such")
    with pytest.raises(AttributeError):
        _ = ag.scipy._private


def test_bound_functions_of_distributions():
    np.testing.assert_allclose(ag.grad(lambda x: np.sum(logpdf(x)))(np.array([0.5, 1.0])), [-0.5, -1.0])


def test_there_are_no_boxes():
    seen = []

    def f(x):
        seen.extend((isbox(x), ag_isinstance(x, (ArrayBox, DictBox))))
        return getval(x) * x

    assert float(ag.grad(f)(3.0)) == 3.0  # a value is a constant
    assert seen == [False, False]
    assert getval([1.0]) == [1.0]


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_install_and_nothing_before_it():
    out = run("""
        import sys, retrograd
        assert not [name for name in sys.modules if name.startswith("retrograd.compat")]
        from retrograd.compat import autograd as ours
        assert "autograd" not in sys.modules
        before = set(dir(__import__("numpy")))
        ours.install()
        ours.install()
        import autograd, autograd.numpy as np, autograd.numpy.random as npr, autograd.scipy.stats.norm as norm
        import autograd.scipy.signal, autograd.misc.optimizers, autograd.misc, autograd.test_util
        from autograd import grad, jacobian
        from autograd.builtins import isinstance, tuple
        from autograd.differential_operators import make_jvp
        from autograd.extend import primitive, defvjp, vspace
        from autograd.misc.flatten import flatten
        from autograd.misc.fixed_points import fixed_point
        from autograd.numpy.numpy_boxes import ArrayBox
        from autograd.numpy.numpy_vjps import unbroadcast_f
        from autograd.wrap_util import unary_to_nary
        from autograd.util import subvals, toposort
        from autograd.test_util import scalar_close, make_numerical_jvp
        import numpy, scipy.stats
        assert autograd is ours and np is numpy and norm is scipy.stats.norm and npr is numpy.random
        assert sys.modules["autograd.misc.flatten"] is sys.modules["retrograd.compat.autograd.misc.flatten"]
        assert not {"numpy_boxes", "numpy_vjps"} & (set(dir(numpy)) - before)
        print(grad(lambda x: np.sum(np.tanh(x)))(np.zeros(2)))
        ours.uninstall()
        assert not [name for name in sys.modules if name == "autograd" or name.startswith("autograd.")]
        ours.uninstall()
    """)
    assert out == "[1. 1.]\n"


def test_install_after_the_package_itself_is_refused(monkeypatch):
    other = types.ModuleType("autograd")
    monkeypatch.setitem(sys.modules, "autograd", other)
    with pytest.raises(OptionError, match="before the first import"):
        ag.install()
    ag.uninstall()
    assert sys.modules["autograd"] is other
