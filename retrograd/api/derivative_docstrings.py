"""The documentation of derivatives: what several of them take and raise is written once."""

from __future__ import annotations

from .adjoints import hvp, jacobian
from .along_tangents import jvp, linearize
from .at_a_point import vjp
from .core_docstrings import BACKEND
from .jacobians import hessian, jacfwd, jacrev

AT_POINT = """\
Raises
------
NonDifferentiableError
    If a primal holds no floating-point numbers.
"""
OF_ARGUMENTS = """\
Raises
------
ArgnumsError
    If there is no such argument.
OptionError
    If an option is wrong.
NonDifferentiableError
    If the argument holds no floating-point numbers.
"""
CHOSEN = """\
function : callable, optional
    The function to differentiate. Without it, the result is a decorator.
argnums : int, str or tuple of them
    The differentiated arguments, by position or name.
"""
FUNCTION = """\
function : callable
    The function to differentiate.
"""
HAS_AUX = """\
has_aux : bool
    Whether the function returns ``(output, aux)``; the result is then ``(jacobian, aux)``.
"""
TANGENTS = f"""\
{AT_POINT}ShapeError, TreeError
    If tangents do not fit the primals.
"""

jvp.__doc__ = f"""\
The value at a point, and the derivative along tangents.

The tangent of a function is a function g: the derivative is that of f + ε g in ε. For ``rg.functions.fn(f)`` it may
also be another such function value, whose captures are the tangents of those of f.

Parameters
----------
{FUNCTION}primals, tangents : tuple or list
    One entry for each argument, with equal structures and shapes.
has_aux : bool
    Whether the function returns ``(output, aux)``.
{BACKEND}
Returns
-------
tuple
    ``(out, out_tangent)``, with ``has_aux`` ``(out, out_tangent, aux)``.

{TANGENTS}OptionError
    If the function does not return a pair although ``has_aux`` is set.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> [float(v) for v in rg.jvp(lambda x: x**2, (3.0,), (1.0,))]
[9.0, 6.0]
"""

linearize.__doc__ = f"""\
The value at a point, and the derivative there as a linear function of tangents.

Parameters
----------
{FUNCTION}*primals : tree
    The point.
{BACKEND}
Returns
-------
tuple
    ``(out, linear)``; ``linear(*tangents)`` may be called any number of times.

{TANGENTS}
Examples
--------
>>> import numpy as np, retrograd as rg
>>> out, linear = rg.linearize(np.sin, 0.0)
>>> float(linear(2.0))
2.0
"""

vjp.__doc__ = f"""\
The value at a point, and the pullback there.

A callable among the primals is a differentiable function value. If a result is a function, its cotangent is a
``FunctionCotangent`` or a list of pairs; ``function`` then runs again for each pullback.

Parameters
----------
{FUNCTION}*primals : tree
    The point.
has_aux : bool
    Whether the function returns ``(out, aux)``.
fns : "captures" or "pairs"
    What the cotangent of a function value is: a dict from the names of its captures to their cotangents, or a
    ``FunctionCotangent``, the pairs of input and cotangent of all its calls.
memory : plan, int or str, optional
    A plan for the loops that have none, or a budget: bytes, a text such as ``"64 MiB"``, or ``"available"``. The
    budget covers all that this call and one call of the pullback allocate: results, the values kept in between, and
    copies of the primals. Values that do not fit are computed again.
{BACKEND}
Returns
-------
tuple
    ``(out, pullback)``, with ``has_aux`` ``(out, pullback, aux)``. ``pullback(ct)`` takes a cotangent with the
    structure and shapes of ``out`` and returns a tuple, one cotangent for each primal. It may be called any number
    of times.

{AT_POINT}ShapeError, TreeError
    If a cotangent does not fit the output.
OptionError
    If an option is wrong.
MemoryBudgetError
    If the budget is too small for any plan.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> out, pullback = rg.vjp(lambda x, y: x * y, 3.0, 4.0)
>>> [float(ct) for ct in pullback(1.0)]
[4.0, 3.0]
>>> x = np.linspace(0.0, 1.0, 1000)
>>> out, pullback = rg.vjp(lambda x: np.sin(np.exp(np.tanh(x))), x, memory="64 kB")
>>> bool(np.all(pullback(x)[0] == rg.vjp(lambda x: np.sin(np.exp(np.tanh(x))), x)[1](x)[0]))
True
>>> out, pullback = rg.vjp(lambda f, x: f(f(x)), np.square, 3.0, fns="pairs")
>>> [(float(x), float(ct)) for x, ct in pullback(1.0)[0].pairs]
[(3.0, 18.0), (9.0, 1.0)]
"""

jacfwd.__doc__ = f"""\
The Jacobian, column by column in forward mode. This suits few inputs.

Parameters
----------
{CHOSEN}{HAS_AUX}{BACKEND}
Returns
-------
Compiled
    A function of the same arguments. For an output of shape ``s`` and an argument of shape ``t`` it returns an
    array of shape ``s + t`` and the output's dtype; that is the argument's for an output of integers or bools. Trees
    give trees of the output's structure, whose leaves have the structure of the argument.

    For a complex argument z = a + ib and a real output it is ∂/∂a − i ∂/∂b, as for ``rg.grad``. For a complex output
    of a complex argument it is half of that, which is f' where f is holomorphic; elsewhere it is the Wirtinger
    derivative ∂f/∂z alone.

{OF_ARGUMENTS}
Examples
--------
>>> import numpy as np, retrograd as rg
>>> rg.jacfwd(lambda x: x**2)(np.array([1.0, 2.0]))
array([[2., 0.],
       [0., 4.]])
"""

jacrev.__doc__ = f"""\
The Jacobian, row by row in reverse mode. This suits few outputs.

Parameters
----------
{CHOSEN}{HAS_AUX}{BACKEND}
Returns
-------
Compiled
    A function of the same arguments. Shapes and complex numbers are as for ``jacfwd``, and the dtype is that of the
    argument; complex outputs make it complex.

{OF_ARGUMENTS}
Examples
--------
>>> import numpy as np, retrograd as rg
>>> rg.jacrev(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
array([2., 4.])
"""

hessian.__doc__ = f"""\
The matrix of second derivatives of a function with one output element, in forward over reverse mode.

Parameters
----------
{CHOSEN}has_aux : bool
    Whether the function returns ``(output, aux)``; the result is then ``(hessian, aux)``.
sparse : bool
    Whether to return a ``scipy.sparse.csr_array``, as ``rg.jacobian`` does.
{BACKEND}
Returns
-------
Compiled
    A function of the same arguments. For an argument of shape ``t`` it returns an array of shape ``t + t``.

Raises
------
NonScalarOutputError
    If the output has several elements.
ArgnumsError
    If there is no such argument.
NonDifferentiableError
    If the argument holds no floating-point numbers, or complex ones.
OptionError
    If an option is wrong.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> rg.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
array([[4., 2.],
       [2., 0.]])
"""

hvp.__doc__ = f"""\
The product of the Hessian with a vector, without the matrix: ``hvp(f)(x, v)``.

Parameters
----------
function : callable
    A function of one argument with one output element.
{BACKEND}
Returns
-------
callable
    It takes ``x`` and ``v``, trees of one structure with equal shapes and dtypes, and returns such a tree.

Raises
------
NonScalarOutputError
    If the output has several elements.
TreeError, ShapeError
    If ``v`` does not fit ``x``.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> rg.hvp(lambda x: np.sum(x**3))(np.array([1.0, 2.0]), np.array([1.0, 1.0]))
array([ 6., 12.])
"""

jacobian.__doc__ = f"""\
The Jacobian by ``jacfwd`` or ``jacrev``, whichever is cheaper, or as a sparse matrix.

With ``sparse``, the graph gives the pattern of the entries, and one product computes all columns (or rows) that
have no entry in common. Loops by ``rg.scan`` and linear algebra count as full.

Parameters
----------
{CHOSEN}{HAS_AUX}mode : "auto", "fwd" or "rev"
    Columns in forward mode, rows in reverse mode, or the cheaper of both.
sparse : bool
    Whether to return a ``scipy.sparse.csr_array`` with one row for each element of the result and one column for
    each element of the argument. The function must then take and return one array.
{BACKEND}
Returns
-------
Compiled
    A function of the same arguments that returns the Jacobian, of the shapes, and for complex numbers, that
    ``jacfwd`` describes.

Raises
------
OptionError
    If an option is wrong, or if SciPy is needed and not installed.
ArgnumsError
    If there is no such argument.
NonDifferentiableError
    If the argument holds no floating-point numbers.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> rg.jacobian(lambda x: x[:1] * x[1:])(np.array([2.0, 3.0, 4.0]))
array([[3., 2., 0.],
       [4., 0., 2.]])
"""
