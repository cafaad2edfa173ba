"""The documentation of what users call in the core: kept here, since the core itself is to be read in an afternoon."""

from __future__ import annotations

from typing import Any

from ..compiler.compiled import Compiled
from ..compiler.settings import Config
from ..ir.evaluate import evaluate
from ..ir.primitive import pull, push
from ..ir.printer import to_text
from ..ir.verify import verify
from .gradients import grad, value_and_grad

BACKEND = """\
backend : "numpy" or "native", optional
    Where the compiled code runs, in place of ``rg.config.backend``. In the trace of another function, that function
    decides.
"""
OPTIONS = f"""\
Parameters
----------
function : callable, optional
    The function to differentiate. Without it, the result is a decorator.
argnums : int, str or tuple of them
    The differentiated arguments, by position or name. For a tuple the gradient is a tuple.
has_aux : bool
    Whether the function returns ``(output, aux)``.
fns : "captures" or "pairs"
    What the gradient of an argument is that is a function: the cotangents of its captures, a dict by name, or a
    ``FunctionCotangent``; see ``rg.vjp``.
nan_safe : bool
    Whether a zero factor makes a product zero even if the other one is infinite. A branch that ``np.where``
    does not take then adds nothing to the gradient.
memory : int or str, optional
    A budget for all that a call allocates, results included: bytes, a text such as ``"64 MiB"``, ``"available"``, or
    ``"50 %"`` of that. Values that do not fit are computed again, also states of loops without plans.
{BACKEND}"""
RAISES = """\
Raises
------
NonScalarOutputError
    If the output has several elements.
NonDifferentiableError
    If the argument holds no floating-point numbers, or the output is none.
ArgnumsError
    If there is no such argument.
OptionError
    If an option is wrong.
MemoryBudgetError
    If the budget is too small for any plan.
"""

grad.__doc__ = f"""\
The gradient of a function with one output element.

{OPTIONS}
Returns
-------
Compiled
    A function of the same arguments that returns the gradient, with ``has_aux`` ``(gradient, aux)``. The gradient has
    the structure, shapes and dtypes of the argument; integer leaves give None.

{RAISES}
Examples
--------
>>> import numpy as np, retrograd as rg
>>> rg.grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
array([2., 4.])
>>> line = lambda a: lambda x: a * x
>>> float(rg.grad(lambda f, x: f(f(x)))(line(3.0), 2.0)["a"])
12.0
"""

value_and_grad.__doc__ = f"""\
The value of a function with one output element, and its gradient.

{OPTIONS}
Returns
-------
Compiled
    A function of the same arguments that returns ``(value, gradient)``, with ``has_aux`` ``((value, aux), gradient)``.

{RAISES}
Examples
--------
>>> import numpy as np, retrograd as rg
>>> value, slope = rg.value_and_grad(np.sin)(0.0)
>>> float(value), float(slope)
(0.0, 1.0)
"""

Compiled.__doc__ = """\
A function under a transform: what ``jit``, ``grad`` and the other transforms return.

Call it like the plain function. It is compiled once for each structure, shapes, dtypes and static values of the
arguments, and again where what it reads besides them has changed. Its methods show what was made of a call.

Parameters
----------
function : callable
    The plain function.
transform : Transform
    What is done with it. Users call a transform, such as ``rg.grad``, instead.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> slope = rg.grad(np.sin)
>>> isinstance(slope, rg.Compiled), float(slope(0.0))
(True, 1.0)
"""

Config.__doc__ = """\
Settings; assign them, or use ``with rg.config(exact=True):`` for a block.

Attributes
----------
exact : bool
    Only rewrites that keep every bit; values then equal plain NumPy's bit for bit.
fast : bool
    Also rewrites that may change overflow and nan, such as ``x / x`` to 1.
verify : int
    0 checks each graph once, 1 after each pass, 2 also its text form, 3 also prints it.
max_traces : int
    The most paths through a function that are compiled for one signature at a time; others are interpreted.
max_nodes : int
    The most operations in one trace; a longer one is an error that names the line.
counters : bool
    Whether generated code counts the steps of checkpointed loops; ``rg.debug_counters`` turns it on.
nan_safe : bool
    Whether zero times infinity is zero in derivatives; also an option of ``grad`` and ``jit``.
debug_nans : bool
    Whether the first nan or infinity is an error; ``rg.debug_nans`` turns it on.
cache_size : int
    The compilations that each function keeps; the least recently used are dropped.
backend : str
    ``"native"`` runs kernels as C, where there is a compiler and ``exact`` is off; else ``"numpy"``.
threads : int
    The threads that work on arrays of one axis from 32,768 elements on. Unless it is set: the cores of the process, or
    ``OMP_NUM_THREADS`` if that is less, and 1 in workers of process pools and forked processes. All give equal bits.
workspace : int
    Bytes of memory for large intermediate results that each thread keeps for its next call; 128 MiB unless it is set.
keep_pages : int
    Bytes of freed memory that the process keeps for the next arrays; 0 unless it is set. For Linux with glibc.
traceback : str
    ``"user"`` leaves frames of retrograd out of tracebacks that are shown, ``"full"`` does not.

Examples
--------
>>> import retrograd as rg
>>> with rg.config(exact=True):
...     rg.config.exact
True
>>> rg.config.exact
False
"""

pull.__doc__ = """\
The derivative of an operand in which a primitive is linear.

Parameters
----------
rule : callable
    ``rule(ct, *operands)`` returns the cotangent of the operand.
into : bool
    Whether the rule takes an accumulator as well, and adds the cotangent to it.

Returns
-------
Pull
    For ``diff`` of ``rg.primitive``.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> twice = rg.primitive("twice", emit="2.0 * {0}", diff=[rg.pull(lambda ct, x: 2.0 * ct)])
>>> float(rg.grad(twice)(3.0))
2.0
"""

push.__doc__ = """\
The derivative of an operand in which a primitive is not linear.

Parameters
----------
rule : callable
    ``rule(t, out, *operands)`` returns the tangent of the result for a tangent ``t`` of the operand. It must be linear
    in ``t``.

Returns
-------
Push
    For ``diff`` of ``rg.primitive``.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> cubed = rg.primitive("cubed", emit="{0} ** 3", diff=[rg.push(lambda t, out, x: 3.0 * x * x * t)])
>>> float(rg.grad(cubed)(2.0))
12.0
"""

evaluate.__doc__ = """\
Run a graph node by node on NumPy values; arguments are never changed.

Parameters
----------
graph : Graph
    The graph.
args : sequence
    One array or number for each input.
watch : callable, optional
    ``watch(node, operands, results)`` is called after each node, also after those of graphs inside nodes.

Returns
-------
tuple
    One value for each output.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> graph = rg.trace(lambda x: np.sin(x) * 2.0)(0.0)
>>> [float(value) for value in rg.ir.evaluate(graph, (0.5,))]
[0.958851077208406]
"""

to_text.__doc__ = """\
The text form of a graph. ``rg.ir.parse`` reads it back, and ``to_text(parse(text)) == text``.

Parameters
----------
graph : Graph
    The graph.

Returns
-------
str
    One line for each node.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> text = rg.ir.to_text(rg.trace(np.sin)(0.0))
>>> rg.ir.to_text(rg.ir.parse(text)) == text
True
"""

verify.__doc__ = """\
Check every rule of the IR: definitions before uses, types as the primitives infer them.

Parameters
----------
graph : Graph
    The graph.

Returns
-------
Graph
    The graph itself, so that a pass ends in ``return verify(...)``.

Raises
------
GraphError
    If a rule is broken; the message has an excerpt of the graph.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> graph = rg.trace(np.sin)(0.0)
>>> rg.ir.verify(graph) is graph
True
"""

_ARGUMENTS = """\
*args, **kwargs
    The arguments of a call.
"""
_FAULTS = """\
Raises
------
RetrogradError
    Whatever a call with these arguments raises.
"""

_MEMBERS: dict[str, str] = {
    "at": f"""\
The compilation for these arguments, made now if their signature is new.

Parameters
----------
{_ARGUMENTS}
Returns
-------
Compilation
    A record of the call, the trace, the graphs by stage, the plan, the source and the code.

{_FAULTS}
Examples
--------
>>> import numpy as np, retrograd as rg
>>> made = rg.grad(np.sin).at(0.5)
>>> sorted(made.graphs)
['adjoint', 'linearized', 'optimised', 'traced']
""",
    "graph": f"""\
The graph for these arguments.

Parameters
----------
{_ARGUMENTS}stage : str
    ``"optimised"``, the graph that runs; ``"traced"``, the one before any pass; for derivatives also
    ``"linearized"`` and ``"adjoint"``.

Returns
-------
Graph
    Print it, or look at it in a notebook.

Raises
------
OptionError
    If there is no such stage.

Examples
--------
>>> import numpy as np, retrograd as rg
>>> [node.prim.name for node in rg.grad(np.sin).graph(0.5).nodes]
['cos']
>>> [node.prim.name for node in rg.grad(np.sin).graph(0.5, stage="traced").nodes]
['sin']
""",
    "executable": f"""\
The compiled code for these arguments.

Parameters
----------
{_ARGUMENTS}
Returns
-------
Executable
    Its ``function`` takes the flat arrays and numbers of the arguments, and after them what the function captures.

{_FAULTS}
Examples
--------
>>> import numpy as np, retrograd as rg
>>> float(rg.grad(np.sin).executable(0.0).function(0.0))
1.0
""",
}


def _describe_members(members: dict[str, str]) -> None:
    for name, text in members.items():
        function: Any = getattr(Compiled, name)
        function.__doc__ = text


_describe_members(_MEMBERS)
