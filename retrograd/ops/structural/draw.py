"""draw: random numbers from the user's generator, in the order of the program, new in each run."""

from __future__ import annotations

from typing import Any

from ...ir.graph import Node
from ...ir.primitive import Primitive, primitive
from ...ir.texts import literal
from ...ir.types import Aval

# Methods of np.random.Generator and np.random.RandomState that return numbers and change only the stream.
DRAWS = frozenset(
    {
        "beta",
        "binomial",
        "chisquare",
        "choice",
        "dirichlet",
        "exponential",
        "f",
        "gamma",
        "geometric",
        "gumbel",
        "hypergeometric",
        "integers",
        "laplace",
        "logistic",
        "lognormal",
        "logseries",
        "multinomial",
        "multivariate_hypergeometric",
        "multivariate_normal",
        "negative_binomial",
        "noncentral_chisquare",
        "noncentral_f",
        "normal",
        "pareto",
        "permutation",
        "permuted",
        "poisson",
        "power",
        "rand",
        "randint",
        "randn",
        "random",
        "random_sample",
        "ranf",
        "rayleigh",
        "sample",
        "standard_cauchy",
        "standard_exponential",
        "standard_gamma",
        "standard_normal",
        "standard_t",
        "triangular",
        "uniform",
        "vonmises",
        "wald",
        "weibull",
        "zipf",
    }
)


def _shape(generator: Aval, *, aval: Aval, method: str, given: tuple[Any, ...], named: tuple[Any, ...]) -> Aval:
    if generator.kind != "generator" or method not in DRAWS:
        raise ValueError(f"{method} of {generator} is not a draw")
    return aval


def _code(node: Node) -> str:
    values = [literal(x) for x in node.attrs["given"]] + [f"{name}={literal(x)}" for name, x in node.attrs["named"]]
    arguments = ", ".join(values).replace("{", "{{").replace("}", "}}")
    return f"{{0}}.{node.attrs['method']}({arguments})"


draw: Primitive = primitive("draw", _shape, _code, names=" ".join(sorted(DRAWS)), typed=True, effect=True, diff=(None,))
