"""Random programs of loops in loops, choices, regions and host calls, as source; and what they mean in plain Python."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

import retrograd as rg

STEPS = 40  # rows of the stacked inputs
KINDS = "vsfzib"  # a vector, a number, a vector of float32, one of complex128, an int, a bool
SMOOTH = {
    "v": (
        "np.sin({v}) * {v}",
        "{v} + 0.5 * {v}",
        "np.tanh({v} * {s}) - {v}",
        "{v}[::-1] * 0.7 + {v}",
        "np.tanh({v})",
        "(M @ {v}.reshape(3, -1)).reshape(-1)",
        "np.roll({v}, 1) - 0.2 * {v}",
        "np.cumsum({v}) / len({v})",
        "{v} + 0.0",
        "{v} * K + {v}",
        "np.exp(-{v} * {v})",
        "{v} * (1 + {i} % 3)",
        "{z}.real * 0.5 + {v}",
        "np.zeros(len({v})) + {s}",
        "np.concatenate([{v}[1:], {v}[:1]])",
        "np.where({b}, {v}, -{v})",
        "{v} / (1.0 + {v} * {v})",
        "rg.name(np.sin({v}), 'a') * {v}",
    ),
    "s": (
        "np.sum(np.sin({v})) / len({v})",
        "np.sin({s})",
        "{v}[0] + {s}",
        "{s} * 0.3 * ({i} % 3)",
        "{s}",
        "0.25",
        "np.tanh({s} * {s})",
        "np.where({b}, {s}, 0.5)",
        "np.mean(np.tanh({v}) * {v})",
    ),
    "f": ("np.tanh({f}) + {f}", "{f} * np.float32(0.3)", "{f}"),
    "z": ("np.exp(1j * {v})", "{z} * (0.5 + 0.1j)", "np.conj({z}) + {v}", "{z}", "{z} * {s} * 0.1"),
    "i": ("{i} + 1", "({i} * 3) % 7", "{i}", "3"),
    "b": ("np.logical_not({b})", "{b}", "np.logical_xor({b}, {b})", "{i} % 2 == 0"),
}
ROUGH = {
    "v": (
        "np.where({v} > {v}, {v}, 0.3 * {v})",
        "np.sort({v})",
        "{f}.astype(float) * 0.5 + {v}",
        "np.maximum({v}, {v})",
        "np.abs({z}) * 0.1 + {v}",
        "own({v})",
    ),
    "s": ("np.max({v})", "np.where({v}[0] > {s}, {s}, {v}[1])", "np.float64(np.sum({f}))"),
    "f": ("{v}.astype(np.float32) * np.float32(0.5)", "np.maximum({f}, {f}[::-1])"),
    "z": ("np.fft.fft({z}) / len({z})",),
    "i": ("np.argmax({v}) % 4",),
    "b": ("np.sum({v}) > 0.1", "{v}[0] < {v}[-1]"),
}
WRITES = (
    "{a}[1:] = {v}[:-1]",
    "{a}[0] += {v}[-1]",
    "{a} *= 0.9",
    "{a}[::2] -= 0.1 * {v}[::2]",
    "{a}[0] = {s}",
    "{a}[{i} % 3] = {s}",
    "{a}[:] = {v}",
    "{a} += {v}",
)
CONDITIONS = ("{b}", "{s} > 0.1", "{v}[0] < {v}[-1]", "{i} % 2 == 0")
TYPED = {"s": "np.float64({})", "i": "np.int64({})", "b": "np.bool_({})"}
SUMS = {
    "v": "np.sum({0} * {0}) / len({0})",
    "s": "np.sin({0})",
    "f": "np.float64(np.sum({0}))",
    "i": "{0} * 0.1",
    "z": "np.sum(np.real({0} * np.conj({0}))) / len({0})",
    "b": "np.where({0}, 1.0, 0.0)",
}
ROWS = {"v": "xv", "s": "xs", "f": "xf", "z": "xz", "i": "xi", "b": "xb"}  # stacked inputs
Env = dict[str, list[str]]  # names in scope, by kind


@rg.custom_vjp
def own(x: Any) -> Any:
    """A function with a derivative of its own."""
    return np.sin(x) * x


own.defvjp(lambda x: (np.sin(x) * x, x), lambda x, ct: (ct * (np.sin(x) + x * np.cos(x)),))


@dataclass
class Program:
    """A drawn program and its inputs.

    ``of(ops, plans, regions)`` is the function of ``args``: its loops are ``ops.scan`` and so on, with a plan each, and
    each of its parts is decorated by one of the regions.
    """

    source: str
    known: list[bool]  # of each loop: whether the number of steps is known before it runs
    regions: int
    hosts: bool
    args: tuple[Any, ...]
    scope: dict[str, Any]

    def of(self, ops: Any, plans: Sequence[Any], regions: Sequence[Any]) -> Any:
        self.scope["own"] = own if ops is not PLAIN else lambda x: np.sin(x) * x
        return self.scope["make"](ops, plans, regions)


def program(seed: int, n: int, smooth: bool = False, regions: bool = False, host: Any = None) -> Program:
    """The program of a seed on vectors of n elements, a multiple of 3; with calls of ``host``, if there is one."""
    maker = _Maker(Random(seed), smooth, regions, host is not None)
    source = maker.program()
    random = np.random.default_rng(seed)
    x, w = random.standard_normal((2, n))
    z = (random.standard_normal(n) + 1j * random.standard_normal(n)) * 0.5
    f = random.standard_normal(n).astype(np.float32)
    args = (x, w, f, z, random.standard_normal((STEPS, n)) * 0.5, random.standard_normal(STEPS))
    scope: dict[str, Any] = {
        "np": np,
        "__name__": "fuzzed",
        "H": host,
        "G": np.random.default_rng(seed),
        "K": np.cos(np.arange(n) * 1.0),
        "M": np.array([[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.1, 0.2, 0.7]]),
        "xi": np.arange(STEPS) % 3,
        "xb": np.arange(STEPS) % 2 == 0,
        "xf": random.standard_normal((STEPS, n)).astype(np.float32),
        "xz": random.standard_normal((STEPS, n)) * (0.5 + 0.2j),
    }
    name = f"<planned {seed}>"
    exec(compile(source, name, "exec"), scope)
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    return Program(source, maker.known, maker.regions, maker.hosts, args, scope)


class _Maker:
    """Draws the source of a program; blocks bind new names and write into those only."""

    def __init__(self, random: Random, smooth: bool, regions: bool, hosts: bool) -> None:
        self.random, self.smooth = random, smooth
        self.inner = ["scan", "fori", "while_", "cond", *["region"] * regions, *["host"] * hosts]
        self.known: list[bool] = []
        self.regions = self.names = 0
        self.hosts = False
        self.writable: set[str] | None = None  # in a part: its arguments, for it may write into nothing else

    def program(self) -> str:
        env: Env = {"v": ["x", "w"], "s": ["s0"], "f": ["f"], "z": ["z"], "i": ["i0"], "b": ["b0"]}
        lines = ["s0 = np.sum(x * w) / len(x)", "i0 = 2", "b0 = s0 > 0.0"]
        if self.random.random() < 0.2:
            lines += ["s0 = s0 + 0.1 * G.standard_normal()", "x = x + 0.1 * G.standard_normal(len(x))"]
        own: set[str] = set()
        lines += self.scan(env, own, 3)
        for _ in range(self.random.randint(0, 4)):
            lines += self.statement(["set", "set", "write", "unrolled", "filled", "scan", *self.inner])(env, own, 3)
        lines.append("return " + " + ".join(SUMS[kind].format(a) for kind in KINDS for a in env[kind]))
        body = ["def make(rg, P, R):", "    def program(x, w, f, z, xv, xs):", *_in(_in(lines)), "    return program"]
        return "\n".join(body) + "\n"

    def statement(self, kinds: list[str]) -> Any:
        return getattr(self, self.random.choice(kinds))

    def block(self, env: Env, own: set[str], depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.random.randint(0, 3)):
            lines += self.statement(["set", "set", "write", *(self.inner if depth > 0 else [])])(env, own, depth)
        return lines

    def fresh(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def fill(self, text: str, env: Env, a: str = "") -> str:
        while "{" in text:
            start = text.index("{")
            kind = text[start + 1]
            text = text[:start] + (a if kind == "a" else self.random.choice(env[kind])) + text[start + 3 :]
        return text

    def expression(self, kind: str, env: Env) -> str:
        return self.fill(self.random.choice(SMOOTH[kind] + (() if self.smooth else ROUGH[kind])), env)

    def bound(self, env: Env, own: set[str], kind: str) -> str:
        """A name for a new value."""
        mine = [a for a in env[kind] if a in own and a not in (self.writable or ())]
        if mine and self.random.random() < 0.6:
            return self.random.choice(mine)
        name = self.fresh(kind)
        own.add(name)
        env[kind] = [*env[kind], name]
        return name

    def set(self, env: Env, own: set[str], _: int) -> list[str]:
        kind = self.random.choice("vvvsfzib")
        text = self.expression(kind, env)
        return [f"{self.bound(env, own, kind)} = {text}"]

    def write(self, env: Env, own: set[str], depth: int) -> list[str]:
        mine = [a for a in env["v"] if a in own and a in (own if self.writable is None else self.writable)]
        text = self.random.choice(WRITES)
        if self.writable is not None and not mine:
            return self.set(env, own, depth)
        if mine and (self.writable is not None or self.random.random() < 0.5):
            return [self.fill(text, env, self.random.choice(mine))]
        start = self.fill(self.random.choice(["{v}.copy()", "np.zeros(len({v}))", "{v} * 1.0"]), env)
        name = self.fresh("v")
        text = self.fill(text, env, name)
        own.add(name)
        env["v"] = [*env["v"], name]
        return [f"{name} = {start}", text]

    def host(self, env: Env, own: set[str], _: int) -> list[str]:
        self.hosts = True
        kind = self.random.choice("vs")
        text = self.fill(f"H({{{kind}}})", env)
        return [f"{self.bound(env, own, kind)} = {text}"]

    def unrolled(self, env: Env, own: set[str], _: int) -> list[str]:
        """A loop of Python over a state."""
        start = self.fill("{v} * 0.5", env)
        a = self.fresh("v")
        texts = [self.expression("v", {**env, "v": [*env["v"], a, a, a]}) for _ in range(self.random.randint(1, 2))]
        own.add(a)
        env["v"] = [*env["v"], a]
        steps = [*(f"{a} = ({text}) * 0.5" for text in texts), f"{a} = np.sin({a} * 0.9) + 0.1 * k"]
        return [f"{a} = {start}", f"for k in range({self.random.choice([2, 20])}):", *_in(steps)]

    def filled(self, env: Env, own: set[str], _: int) -> list[str]:
        """A loop of Python that fills an array row by row."""
        h, steps, a = self.fresh("h"), self.random.choice([9, 30]), self.fresh("v")
        text = self.fill(self.random.choice(SMOOTH["v"]), {**env, "v": [*env["v"], f"{h}[k]", f"{h}[k]"]})
        start = self.fill(f"{h}[0] = {{v}}", env)
        own.add(a)
        env["v"] = [*env["v"], a]
        last = self.random.choice([f"{a} = np.sum({h}, axis=0)", f"{a} = {h}[-1].copy()"])
        rows = [f"for k in range({steps}):", f"    {h}[k + 1] = np.sin({text})"]
        return [f"{h} = np.zeros(({steps + 1}, len(x)))", start, *rows, last]

    def carry(self, env: Env) -> tuple[list[str], list[str], list[str]]:
        """Kinds, initial values and names of a carry."""
        kinds = [self.random.choice("vvvsfzib") for _ in range(self.random.randint(1, 3))]
        new = {"v": "np.zeros(len({v}))", "s": "0.5", "f": "{f} * np.float32(2)", "z": "{z} * 2", "i": "1", "b": "True"}
        inits = [self.fill(f"{{{k}}}" if self.random.random() < 0.9 else new[k], env) for k in kinds]
        return kinds, inits, [self.fresh(k) for k in kinds]

    def step(self, env: Env, depth: int, kinds: list[str], names: list[str]) -> tuple[Env, list[str], list[str]]:
        """The body of a loop: its names, its lines, the next carry."""
        inner = {k: [*v, *[a for t, a in zip(kinds, names, strict=True) if t == k] * 3] for k, v in env.items()}
        lines = self.block(inner, set(names), depth - 1)
        after = []
        for kind, a in zip(kinds, names, strict=True):
            text = self.expression(kind, inner)
            if kind == "v":
                text = self.random.choice(["({}) * 0.8", "np.sin({})", "{}"]).format(text)
            after.append(a if self.random.random() < 0.15 else TYPED.get(kind, "{}").format(text))
        return inner, lines, after

    def steps(self, depth: int) -> int:
        """A number of steps: few in loops inside loops."""
        return self.random.choice([0, 1, 2, 3, 5, 7] + [9, 16, 27, STEPS] * (depth == 3))

    def memory(self, known: bool) -> str:
        self.known.append(known)
        return f"memory=P[{len(self.known) - 1}]"

    def form(self, names: list[str]) -> str:
        return self.random.choice(["tuple", "dict", *["bare"] * (len(names) == 1)])

    def results(self, env: Env, own: set[str], kinds: list[str], form: str, source: str) -> list[str]:
        names = [self.fresh(k) for k in kinds]
        for k, a in zip(kinds, names, strict=True):
            env[k] = [*env[k], a]
            own.add(a)
        return _taken(names, form, source)

    def scan(self, env: Env, own: set[str], depth: int) -> list[str]:
        kinds, inits, names = self.carry(env)
        form, memory, n = self.form(names), self.memory(True), self.steps(depth)
        body, x, result, trail = (self.fresh(name) for name in ("body", "x", "c", "ys"))
        scoped, rows = {k: list(v) for k, v in env.items()}, [k for k in KINDS if self.random.random() < 0.3]
        items = [self.fresh(k) for k in rows]
        for k, a in zip(rows, items, strict=True):
            scoped[k].append(a)
        inner, lines, after = self.step(scoped, depth, kinds, names)
        out = [self.random.choice("vvsfzib") for _ in range(self.random.choice([0, 0, 1, 2]))]
        y = _tree([self.expression(k, inner) for k in out], "tuple") if out else "None"
        steps = [*_taken(names, form, "c"), *(_taken(items, "tuple", x) if rows else []), *lines]
        xs = "(" + "".join(f"{ROWS[k]}[:{n}], " for k in rows) + ")" if rows else "None"
        reverse = ", reverse=True" if self.random.random() < 0.25 else ""
        made = [f"def {body}(c, {x}):", *_in([*steps, f"return {_tree(after, form)}, {y}"])]
        made.append(f"{result}, {trail} = rg.scan({body}, {_tree(inits, form)}, {xs}, {n}{reverse}, {memory})")
        made += self.results(env, own, kinds, form, result)
        for k, kind in enumerate(out):
            if self.random.random() < 0.6 and kind in "vsfz":
                made += [f"{self.bound(env, own, kind)} = np.sum({trail}[{k}], axis=0)"]
        return made

    def fori(self, env: Env, own: set[str], depth: int) -> list[str]:
        kinds, inits, names = self.carry(env)
        form, late = self.form(names), self.random.random() < 0.3
        n = self.fill("np.int64({i} % 5 + np.int64({b}))", env) if late else str(self.steps(depth))
        memory = self.memory(not late)
        body, i, result = (self.fresh(name) for name in ("body", "i", "c"))
        _, lines, after = self.step({**env, "i": [*env["i"], i]}, depth, kinds, names)
        steps = [*_taken(names, form, "c"), *lines, f"return {_tree(after, form)}"]
        made = [f"def {body}({i}, c):", *_in(steps)]
        made.append(f"{result} = rg.fori_loop({n}, {body}, {_tree(inits, form)}, {memory})")
        return made + self.results(env, own, kinds, form, result)

    def while_(self, env: Env, own: set[str], depth: int) -> list[str]:
        kinds, inits, names = self.carry(env)
        memory = self.memory(False)
        body, t, result = (self.fresh(name) for name in ("body", "t", "c"))
        _, lines, after = self.step(env, depth, kinds, names)
        limit = self.random.choice([*(str(self.steps(depth)) for _ in range(4)), self.fill("{i} % 5", env)])
        steps = [f"{', '.join([*names, t])} = c", *lines, f"return {_tree([*after, f'{t} + 1'], 'tuple')}"]
        start = _tree([*inits, "0"], "tuple")
        made = [f"def {body}(c):", *_in(steps)]
        made.append(f"{result} = rg.while_loop(lambda c: c[-1] < {limit}, {body}, {start}, {memory})")
        return made + self.results(env, own, [*kinds, "i"], "tuple", result)

    def cond(self, env: Env, own: set[str], depth: int) -> list[str]:
        kinds, inits, names = self.carry(env)
        made, branches = [], [self.fresh("branch"), self.fresh("branch")]
        for branch in branches:
            _, lines, after = self.step(env, depth, kinds, names)
            made += [f"def {branch}({', '.join(names)}):", *_in([*lines, f"return {_tree(after, 'tuple')}"])]
        result, condition = self.fresh("c"), self.fill(self.random.choice(CONDITIONS), env)
        made.append(f"{result} = rg.cond({condition}, {', '.join(branches)}, {', '.join(inits)})")
        return made + self.results(env, own, kinds, "tuple", result)

    def region(self, env: Env, own: set[str], depth: int) -> list[str]:
        kinds, inits, names = self.carry(env)
        outer, self.writable = self.writable, set(names)
        _, lines, after = self.step(env, depth, kinds, names)
        self.writable = outer
        part, result = self.fresh("part"), self.fresh("c")
        self.regions += 1
        starts = {line.lstrip().partition("[")[0].partition(" ")[0] for line in lines}  # of writes the name
        written = [kind in "vfz" and name in starts for kind, name in zip(kinds, names, strict=True)]
        inits = [f"({x}).copy()" if w else x for x, w in zip(inits, written, strict=True)]  # none is given twice
        made = [f"def {part}({', '.join(names)}):", *_in([*lines, f"return {_tree(after, 'tuple')}"])]
        made.append(f"{result} = R[{self.regions - 1}]({part})({', '.join(inits)})")
        return made + self.results(env, own, kinds, "tuple", result)


def _in(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _tree(texts: list[str], form: str) -> str:
    """Source of a container."""
    if form == "dict":
        return "{" + ", ".join(f"'k{k}': {text}" for k, text in enumerate(texts)) + "}"
    return texts[0] if form == "bare" else f"({', '.join(texts)},)"


def _taken(names: list[str], form: str, source: str) -> list[str]:
    """Lines that take a container apart."""
    if form == "dict":
        return [f"{a} = {source}['k{k}']" for k, a in enumerate(names)]
    return [f"{names[0]} = {source}"] if form == "bare" else [f"{', '.join(names)}, = {source}"]


def _copied(tree: Any) -> Any:
    """Values of their own, as bodies get them."""
    if isinstance(tree, tuple):
        return tuple(map(_copied, tree))
    if isinstance(tree, dict):
        return {k: _copied(v) for k, v in tree.items()}
    return np.array(tree)[()] if np.ndim(tree) == 0 else np.array(tree)


def _scan(body: Any, init: Any, xs: Any, length: int, reverse: bool = False, **_: Any) -> Any:
    carry, ys = _copied(init), []
    for t in range(length)[:: -1 if reverse else 1]:
        carry, y = body(_copied(carry), None if xs is None else tuple(_copied(x[t]) for x in xs))
        ys.append(y)
    if not ys:
        first = None if xs is None else tuple(np.zeros(x.shape[1:], x.dtype)[()] for x in xs)
        y = body(_copied(carry), first)[1]
        return carry, y and [np.zeros((0, *np.shape(a)), np.asarray(a).dtype) for a in y]
    return carry, ys[0] and [np.array(y) for y in zip(*ys[:: -1 if reverse else 1], strict=True)]


def _fori(n: int, body: Any, init: Any, **_: Any) -> Any:
    carry = _copied(init)
    for i in range(n):
        carry = _copied(body(i, carry))
    return carry


def _while(cond: Any, body: Any, init: Any, **_: Any) -> Any:
    carry = _copied(init)
    while cond(carry):
        carry = _copied(body(carry))
    return carry


PLAIN = SimpleNamespace(
    scan=_scan,
    fori_loop=_fori,
    while_loop=_while,
    name=lambda x, _: x,
    cond=lambda p, yes, no, *args: (yes if p else no)(*map(_copied, args)),
)


def plain_region(part: Any) -> Any:
    """A part that gets values of its own, as a region does."""
    return lambda *args: part(*map(_copied, args))
