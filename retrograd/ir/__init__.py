"""The intermediate representation: types, graphs, primitives, text, checks, interpretation."""

from . import arity as arity
from . import dot as dot
from . import pickling as pickling
from .evaluate import evaluate
from .graph import Graph, Node, Value
from .parser import parse
from .printer import to_text
from .types import Aval
from .verify import verify

__all__ = ["Aval", "Graph", "Node", "Value", "evaluate", "parse", "to_text", "verify"]
