"""Random programs whose state changes between calls, as source text: two modules, objects, containers, closures.

A program has a module ``helpers``, a module that imports it and defines ``f(x, y)``, and statements that run between
the calls of ``f``. Every world is made from the same text, so that each side of a comparison has its own.
"""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CALLS = 6
LAYOUTS = ("C", "F", "strided", "reversed")
SMOOTH = ["np.sin({})", "np.tanh({})", "0.5 * {}", "{0} / (1.0 + {0} * {0})", "np.cos({})", "np.arctan({})", "-{}"]
KINKED = ["np.abs({})", "np.maximum({}, 0.1)", "np.where({0} > 0.2, {0}, 0.5 * {0})"]

HELPERS = """
import numpy as np
from types import SimpleNamespace

def soft(v):
    return v / (1.0 + np.sum(v * v))

def doubled(g, v):
    return g(g(v))

class Base:
    rate = {rate}

    def scaled(self, v):
        return v * self.rate

    @property
    def twice(self):
        return 2.0 * self.rate

    @classmethod
    def shifted(cls, v):
        return v + cls.rate

class Layer:
    def __init__(self, w, b, act):
        self.w = w
        self.b = b
        self.act = act

    def __call__(self, v):
        v = self.w * v + self.b
        return np.tanh(v) if self.act == "tanh" else np.sin(v)

class Slotted:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k
"""

MAIN = """
import collections, functools
import numpy as np
import helpers
from types import SimpleNamespace
from helpers import Base, Layer, Slotted, doubled, soft

class Net(Base):
    def __init__(self):
        self.layers = []
        self.hyper = {}
        self.sub = SimpleNamespace()
        self.n = 0

    def run(self, v):
        for layer in self.layers:
            v = layer(v)
        return v

    def penalty(self):
        return sum(np.sum(layer.w ** 2) for layer in self.layers)

net = Net()
table = {}
memo = {}
calls = []
Point = collections.namedtuple("Point", "k b")
"""


@dataclass
class Program:
    """A program under construction: what each module holds, what ``f`` does, and what happens between the calls."""

    rng: np.random.Generator
    helpers: list[str] = field(default_factory=list)
    main: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    changes: list[Callable[[], str]] = field(default_factory=list)
    count: int = 0

    def one(self, options: list[Any]) -> Any:
        """One of the options."""
        return options[self.rng.integers(len(options))]

    def number(self) -> str:
        """A number as text; now and then a zero of either sign, or an int."""
        return self.one([f"{self.rng.uniform(-1.5, 1.5):.3f}"] * 8 + ["0.0", "-0.0", "1", "2"])

    def array(self) -> str:
        """An array of three as text."""
        return f"np.array([{', '.join(f'{v:.3f}' for v in self.rng.uniform(-1.2, 1.2, 3))}])"

    def fresh(self, stem: str = "a") -> str:
        """A new name."""
        self.count += 1
        return f"{stem}{self.count}"

    def smooth(self, v: str) -> str:
        """A function of a variable."""
        return str(self.one(SMOOTH * 3 + KINKED)).format(v)


def place(p: Program, value: str, function: bool = False) -> tuple[list[str], Callable[[str], str]]:
    """A place that holds the value: expressions that read it, and the statement that binds it to another.

    A function is not held by another module, which has other names, nor by a class, which makes methods of functions.
    """
    a = p.fresh()
    kind = p.one([i for i in range(14) if i not in {1, 3, 4} or not function])
    if kind == 0:
        p.main.append(f"{a} = {value}")
        return [a], lambda new: f"{a} = {new}"
    if kind == 1:
        p.helpers.append(f"{a} = {value}\ndef read_{a}():\n    return {a}")
        return [f"helpers.{a}", f"helpers.read_{a}()"], lambda new: f"helpers.{a} = {new}"
    if kind == 2:
        p.main.append(f"net.{a} = {value}")
        return [f"net.{a}", f"getattr(net, '{a}')", f"vars(net)['{a}']"], lambda new: f"net.{a} = {new}"
    if kind == 3:
        p.main.append(f"Net.{a} = {value}\nNet.p{a} = property(lambda self: self.{a})")
        return [f"net.{a}", f"Net.{a}", f"net.p{a}", f"type(net).{a}"], lambda new: f"Net.{a} = {new}"
    if kind == 4:
        p.main.append(f"Base.{a} = {value}")
        return [f"net.{a}", f"super(Net, net).{a}"], lambda new: f"{p.one(['Base', 'helpers.Base'])}.{a} = {new}"
    if kind == 5:
        p.main.append(f"net.sub.{a} = {value}")
        return [f"net.sub.{a}"], lambda new: p.one(
            [f"net.sub.{a} = {new}", f"net.sub = SimpleNamespace(**{{**vars(net.sub), '{a}': {new}}})"]
        )
    if kind == 6:
        p.main.append(f"net.hyper['{a}'] = {value}")
        return [f"net.hyper['{a}']", f"net.hyper.get('{a}', 0.0)"], lambda new: p.one(
            [f"net.hyper['{a}'] = {new}", f"net.hyper = {{**net.hyper, '{a}': {new}}}"]
        )
    if kind == 7:
        p.main.append(f"table['{a}'] = {{'k': {value}}}")
        return [f"table['{a}']['k']", f"[*table['{a}'].values()][0]"], lambda new: p.one(
            [f"table['{a}']['k'] = {new}", f"table['{a}'] = {{'k': {new}}}"]
        )
    if kind == 8:
        p.main.append(f"{a} = [{value}, 0.3]")
        return [f"{a}[0]", f"next(iter({a}))", f"{a}[-2]"], lambda new: f"{a}[0] = {new}"
    if kind == 9:
        p.main.append(
            f"def make_{a}(k):\n    def get():\n        return k\n"
            f"    def put(new):\n        nonlocal k\n        k = new\n"
            f"    return get, put\nget_{a}, put_{a} = make_{a}({value})"
        )
        return [f"get_{a}()"], lambda new: f"put_{a}({new})"
    if kind == 10:
        p.main.append(f"def get_{a}(k={value}):\n    return k")
        return [f"get_{a}()"], lambda new: f"get_{a}.__defaults__ = ({new},)"
    if kind == 11:
        p.main.append(f"{a} = Slotted({value})")
        return [f"{a}.k"], lambda new: p.one([f"{a}.k = {new}", f"{a} = Slotted({new})"])
    if kind == 12:
        p.main.append(f"{a} = Point({value}, 0.5)")
        return [f"{a}.k", f"{a}[0]", f"(lambda k, b: k)(*{a})"], lambda new: f"{a} = {a}._replace(k={new})"
    p.main.append(f"{a} = functools.partial(lambda k: k, k={value})")
    return [f"{a}()"], lambda new: p.one(
        [f"{a}.keywords['k'] = {new}", f"{a} = functools.partial(lambda k: k, k={new})"]
    )


def with_number(p: Program, v: str) -> str:
    """Reads a number, which changes."""
    reads, bind = place(p, p.number())
    p.changes.append(lambda: bind(p.number()))
    k = p.one(reads)
    return p.one(
        [
            f"{v} * {k}",
            f"{v} + {k}",
            f"{p.smooth(v)} * (1.0 + {k})",
            f"{v} * np.copysign(1.0, {k})",
            f"({v} if {k} > 0.3 else {p.smooth(v)})",
            f"{v} * np.exp(-abs({k}))",
            f"{v} / (1.0 + {p.one(reads)} ** 2)",
            f"sum([{k} * i * {v} for i in range(3)])",
        ]
    )


def with_array(p: Program, v: str) -> str:
    """Reads an array, which is bound anew or written in place."""
    reads, bind = place(p, p.array())
    read = reads[0]
    p.changes.append(
        lambda: p.one(
            [
                bind(p.array()),
                f"{read}[{p.rng.integers(3)}] = {p.number()}",
                f"{read}[:] = {p.array()}",
                f"np.multiply({read}, -0.7, out={read})",
                f"{read}.fill({p.number()})",
            ]
        )
    )
    k = p.one(reads)
    return p.one(
        [
            f"{v} * {k}",
            f"{v} + np.sin({k})",
            f"{v} * np.sum({k} ** 2)",
            f"{v} * {k}[1]",
            f"{v}[np.argsort({k})] * 0.9",
            f"np.where({k} > 0.2, {v}, 0.3 * {v})",
            f"({v} if {k}[0] > 0 else {p.smooth(v)})",
            f"({k} @ {v}) * {v}",
        ]
    )


def with_text(p: Program, v: str) -> str:
    """Reads a text, which chooses."""
    words = ["'sin'", "'tanh'", "'none'"]
    reads, bind = place(p, p.one(words))
    p.changes.append(lambda: bind(p.one(words)))
    k = p.one(reads)
    return p.one(
        [
            f"(np.sin({v}) if {k} == 'sin' else 0.5 * {v})",
            f"{{'sin': np.sin, 'tanh': np.tanh, 'none': soft}}[{k}]({v})",
            f"({v} * 0.7 if {k} in ('sin', 'tanh') else soft({v}))",
            f"{v} * (0.2 * len({k}))",
        ]
    )


def with_function(p: Program, v: str) -> str:
    """Calls a function that is held as state, and reads state itself."""
    reads, bind = place(p, p.number())
    k = p.one(reads)
    p.changes.append(lambda: bind(p.number()))
    a = p.fresh("g")
    p.main.append(f"def {a}(v):\n    return v * {k} + 0.1")
    hold, rebind = place(p, a, function=True)
    p.changes.append(lambda: rebind(p.one([a, "soft", "np.tanh", f"lambda v: {p.number()} * v"])))
    h = p.one(hold)
    return p.one([f"{h}({v})", f"doubled({h}, {v})", f"[*map({h}, [{v}])][0]", f"functools.partial({h}, {v})()"])


def with_layers(p: Program, v: str) -> str:
    """Runs the layers of the net."""

    def layer() -> str:
        return f"Layer({p.array()}, {p.number()}, {p.one(words)})"

    words = ["'tanh'", "'sin'"]
    p.main.extend(f"net.layers.append({layer()})" for _ in range(p.rng.integers(1, 4)))
    p.changes.extend(
        [
            lambda: f"net.layers.append({layer()})",
            lambda: "net.layers[1:] = net.layers[2:]",
            lambda: f"net.layers[0].b = {p.number()}",
            lambda: f"net.layers[-1].w = {p.array()}",
            lambda: f"net.layers[-1].w[1] = {p.number()}",
            lambda: "net.layers[0].w -= 0.25",
            lambda: f"net.layers[0].act = {p.one(words)}",
            lambda: "net.layers.reverse()",
            lambda: f"net.layers[0] = {layer()}",
        ]
    )
    return p.one([f"net.run({v})", f"net.run({v}) * (1.0 + 0.1 * net.penalty())", f"{v} * len(net.layers)"])


def with_inheritance(p: Program, v: str) -> str:
    """Calls methods and properties of the net that read attributes of the class and its base."""
    p.changes.extend(
        [
            lambda: f"net.rate = {p.number()}",
            lambda: f"Base.rate = {p.number()}",
            lambda: f"Net.rate = {p.number()}",
            lambda: f"Net.scaled = lambda self, v: v * {p.number()}",
            lambda: f"net.scaled = lambda v: v * {p.number()}",
        ]
    )
    return p.one([f"net.scaled({v})", f"{v} * net.twice", f"net.shifted({v})", f"Net.shifted({v})"])


def with_mapping(p: Program, v: str) -> str:
    """Goes through a dict whose keys come, go and change places."""
    a = p.fresh("d")
    p.main.append(f"{a} = {{'a': {p.number()}, 'b': {p.number()}}}")
    p.changes.extend(
        [
            lambda: f"{a}['{p.one(['a', 'b', 'c'])}'] = {p.number()}",
            lambda: f"{a} = dict(reversed({a}.items()))",
            lambda: f"{a}.pop('c', None)",
        ]
    )
    p.body.append(f"{(out := p.fresh('m'))} = {v}")
    p.body.append(f"for name, k in {p.one([f'{a}.items()', f'sorted({a}.items())'])}:")
    step = p.one([f"{out} * 0.8 + k", f"np.tanh({out}) * k", f"{out} + (k if name in 'ab' else 1.0)"])
    p.body.append(f"    {out} = {step}")
    return out


def with_count(p: Program, v: str) -> str:
    """Repeats as often as a number says."""
    reads, bind = place(p, str(p.rng.integers(4)))
    p.changes.append(lambda: bind(str(p.rng.integers(4))))
    p.body.append(f"{(out := p.fresh('c'))} = {v}")
    p.body.append(f"for i in range({p.one(reads)}):")
    p.body.append(f"    {out} = {p.smooth(out)} + 0.1 * i")
    return out


def with_effect(p: Program, v: str) -> str:
    """Changes what the next call reads."""
    kind = p.rng.integers(4)
    if kind == 0:
        p.body.append("net.n += 1")
        p.changes.append(lambda: f"net.n = {p.rng.integers(5)}")
        return f"{v} * (0.1 * net.n)"
    if kind == 1:
        p.body.append("calls.append(1)")
        p.changes.append(lambda: "calls.clear()")
        return f"{v} / len(calls)"
    reads, bind = place(p, p.number())
    p.changes.append(lambda: bind(p.number()))
    p.changes.append(lambda: "memo.clear()")
    a = p.fresh("key")
    p.body.append(f"if '{a}' not in memo:\n    memo['{a}'] = {p.one(reads)} * 2.0")
    return f"{v} * memo['{a}']"


READS = [with_number] * 4 + [with_array] * 4 + [with_text, with_function, with_function, with_layers, with_inheritance]
READS += [with_mapping, with_count]


@dataclass
class Source:
    """A drawn program: the text of two modules, and of what happens before the second call and the later ones."""

    seed: int
    helpers: str
    main: str
    changes: list[str]

    def __str__(self) -> str:
        between = "\n".join(f"# before call {i + 1}:\n{text}" for i, text in enumerate(self.changes))
        return f"# seed {self.seed}, helpers:\n{self.helpers}\n# main:\n{self.main}\n{between}\n"


def draw(seed: int) -> Source:
    """The program of a seed."""
    p = Program(np.random.default_rng(seed))
    variables = ["x", "y[0]", "y[:, 1]", "(y @ x)"]
    effects = p.rng.uniform() < 0.2
    for _ in range(p.rng.integers(2, 7)):
        read = with_effect if effects and p.rng.uniform() < 0.4 else p.one(READS)
        expression = read(p, p.one(variables))
        p.body.append(f"{(v := p.fresh('v'))} = {p.smooth(f'({expression})')}")
        variables.append(v)
    terms = " + ".join(f"np.sum({v} * {p.one([*variables[:2], v])})" for v in variables[4:])
    body = "\n".join([*p.body, f"return {terms}"]).replace("\n", "\n    ")
    main = "\n".join([MAIN, *p.main, f"def f(x, y):\n    {body}\n"])
    changes = []
    for _ in range(CALLS - 1):
        some = p.rng.integers(len(p.changes), size=p.one([0, 1, 1, 1, 2]))
        changes.append("\n".join(p.changes[i]() for i in some))
    return Source(seed, HELPERS.format(rate=p.number()) + "\n".join(p.helpers), main, changes)


class World:
    """A program that runs: ``f``, and ``change(call)``, which does what happens before a call."""

    def __init__(self, source: Source) -> None:
        self.source = source
        helpers = types.ModuleType("helpers")
        sys.modules["helpers"] = helpers
        exec(code(source.helpers, f"<helpers {source.seed}>"), vars(helpers))
        self.scope: dict[str, Any] = {"__name__": "stateful"}
        exec(code(source.main, f"<main {source.seed}>"), self.scope)
        del sys.modules["helpers"]
        self.f = self.scope["f"]

    def change(self, call: int) -> None:
        """The statements before the call; none before the first."""
        if call:
            exec(self.source.changes[call - 1], self.scope)


def code(text: str, name: str) -> types.CodeType:
    """The code, whose text tracebacks can show."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    return compile(text, name, "exec")


def inputs(seed: int, call: int) -> tuple[Any, Any]:
    """The arguments of a call, each in a drawn layout of its memory."""
    rng = np.random.default_rng([seed, call])
    layouts = rng.choice(LAYOUTS, 2)
    return laid(rng.uniform(-1.2, 1.2, 3), layouts[0]), laid(rng.uniform(-1.2, 1.2, (3, 3)), layouts[1])


def laid(a: Any, layout: str) -> Any:
    """Equal numbers, at other places of memory."""
    if layout == "F":
        return np.asfortranarray(a)
    if layout == "strided":
        wide = np.zeros(tuple(2 * n for n in a.shape))
        view = wide[(slice(None, None, 2),) * a.ndim]
        view[...] = a
        return view
    return a[::-1].copy()[::-1] if layout == "reversed" else a
