"""State that changes behind equal values, in place, or in the classes of objects: the next call sees it.

Each program is text: what it starts from, with a function ``f`` of a number, linear in it; then changes, one a line.
"""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as rg
from tests.state.oracle import changes_take_effect

pytestmark = [
    pytest.mark.filterwarnings("ignore::retrograd.errors.UnwatchedWarning"),
    pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning"),  # of NumPy 2.5
]

PROGRAMS = {
    # An equal list, or object of a class of numbers, takes the place of the one that was read; then it changes.
    "list replaced by an equal one": """
L = [1.0]
f = lambda x: L[0] * x
--
L = [1.0]
L[0] = 5.0
""",
    "list in a list": """
L = [2.0, [1.0]]
f = lambda x: L[1][0] * x
--
L[1] = list(L[1])
L[1][0] = 3.0
""",
    "copied tuple of lists": """
import copy
L = ([1.0], 2.0)
f = lambda x: L[0][0] * x
--
L = copy.deepcopy(L)
L[0][0] = 3.0
""",
    "list of an object, by its length": """
class Net: pass
net = Net()
net.layers = [1.0, 2.0]
f = lambda x: len(net.layers) * x
--
net.layers = list(net.layers)
net.layers.append(5.0)
""",
    "list of arrays": """
class Net: pass
net = Net()
net.w = [np.ones(2), np.ones(2)]
def f(x):
    return sum(np.sum(w) for w in net.w) * x
--
net.w = list(net.w)
net.w[1] = np.full(2, 3.0)
net.w.append(np.ones(1))
""",
    "default": """
def h(x, l=[1.0]):
    return l[0] * x
f = lambda x: h(x)
--
h.__defaults__ = ([1.0],)
h.__defaults__[0][0] = 4.0
""",
    "subclass of float": """
class F(float): pass
k = F(2.0); k.u = 1.0
f = lambda x: k.u * x
--
k = F(2.0); k.u = 7.0
""",
    "subclass of a number of NumPy": """
class F(np.float64): pass
k = F(2.0); k.u = 1.0
f = lambda x: k.u * x
--
k = F(2.0); k.u = 7.0
""",
    "object that a weak proxy shows": """
import weakref
class P: k = 1.0
class Child:
    def __init__(self, p): self.p = weakref.proxy(p)
p = P(); c = Child(p)
f = lambda x: c.p.k * x
--
P.k = 4.0
p.k = 5.0
p = P(); c.p = weakref.proxy(p)
""",
    # getattr of modules, and of objects made inside.
    "getattr of a module": """
f = lambda x: getattr(m, "k") * x
m.k = 1.0
--
m.k = 2.0
""",
    "array by getattr of a module": """
f = lambda x: np.sum(getattr(m, "W")) * x
m.W = np.ones(2)
--
m.W[0] = 5.0
m.W = np.full(3, 2.0)
""",
    "hasattr of a module": """
f = lambda x: (2.0 if hasattr(m, "k") else 1.0) * x
m.k = 1.0
--
del m.k
m.k = 2.0
""",
    "vars of a module": """
f = lambda x: vars(m)["k"] * m.__dict__["j"] * x
m.k = m.j = 1.0
--
m.k = 2.0
m.j = 3.0
""",
    "names of a module": """
f = lambda x: (2.0 if "q" in dir(m) else 1.0) * x
--
m.q = 2.0
""",
    "reduced getattr": """
import functools
class C: z = 1.0
m.C = C
f = lambda x: functools.reduce(getattr, ["C", "z"], m) * x
--
C.z = 2.0
""",
    "getattr of an object made inside": """
class A:
    p = 1.0
    def q(self): return 1.0
f = lambda x: getattr(A(), "p") * getattr(A(), "q")() * A().__getattribute__("p") * x
--
A.p = 2.0
A.q = lambda self: 3.0
""",
    "property asked for by getattr": """
class A: p = property(lambda self: 1.0)
o = A()
f = lambda x: getattr(o, "p") * object.__getattribute__(A(), "p") * x
--
A.p = property(lambda self: 2.0)
""",
    # The form of an array.
    "resized array": """
W = np.ones(2)
f = lambda x: len(W) * x
--
W.resize(3, refcheck=False)
""",
    "reinterpreted array": """
W = np.ones(2)
f = lambda x: (W.itemsize + W.ndim) * x
--
W = np.ones(2)
W.dtype = np.float32
""",
    # Methods and properties in C.
    "dictionary with attributes": """
class Cfg(dict): __getattr__ = dict.__getitem__
d = Cfg(a=1.0)
f = lambda x: d.a * x
--
d["a"] = 3.0
""",
    "dictionary that is its own attributes": """
class Cfg(dict):
    def __init__(self, **k):
        super().__init__(**k)
        self.__dict__ = self
d = Cfg(a=1.0)
f = lambda x: d.a * x
--
d["a"] = 3.0
d.a = 4.0
""",
    "call in C": """
class Table(dict): __call__ = dict.__getitem__
d = Table(a=1.0)
f = lambda x: d("a") * x
--
d["a"] = 3.0
""",
    "property in C": """
import operator
class A: k = property(operator.attrgetter("_k"))
o = A(); o._k = 1.0
f = lambda x: o.k * x
--
o._k = 2.0
""",
    "property of a library": """
import collections
cm = collections.ChainMap({"a": 1.0}, {"a": 2.0}, {"a": 3.0})
f = lambda x: cm.parents["a"] * x
--
cm.maps.reverse()
cm.maps[1]["a"] = 5.0
""",
    # Members of classes that code in C reads.
    "attrgetter of a class's member": """
import operator
get = operator.attrgetter("k")
class C: k = 1.0
o = C()
f = lambda x: get(o) * get(C) * x
--
C.k = 5.0
""",
    "member of a class that can be called": """
import operator
class C:
    k = 1.0
    def __call__(self, x): return x
o = C(); o.j = 1.0
f = lambda x: operator.attrgetter("k")(C) * operator.attrgetter("j")(o) * len([n for n in dir(C) if n[0] != "_"]) * x
--
C.k = 5.0
o.j = 2.0
C.new = 1.0
""",
    "pattern": """
class C: k = 1.0
o = C()
def f(x):
    match o:
        case C(k=1.0): return x
    return 2.0 * x
--
C.k = 5.0
""",
    "methodcaller": """
import operator
class C:
    def get(self): return 1.0
o = C()
f = lambda x: operator.methodcaller("get")(o) * x
--
C.get = lambda self: 2.0
""",
    "format": """
class C: k = 1.0
o = C()
f = lambda x: float("{0.k}".format(o)) * x
--
C.k = 2.0
""",
    "new member": """
class C: k = 1.0
o = C()
f = lambda x: len([n for n in dir(o) if n[0] != "_"]) * x
--
C.j = 2.0
""",
    # The class of an object.
    "other class": """
class A:
    def __call__(self, x): return x
    def __len__(self): return 2
class B:
    def __call__(self, x): return 3.0 * x
    def __len__(self): return 5
o = A()
f = lambda x: o(x) * len(o)
--
o.__class__ = B
o.__class__ = A
""",
    "attribute that __getattr__ answered for": """
class A:
    def __getattr__(self, name): return 1.0
o = A()
f = lambda x: o.foo * x
--
A.foo = 5.0
""",
    "name that a module answered for": """
m.__getattr__ = lambda name: 1.0
f = lambda x: m.foo * x
--
m.__getattr__ = lambda name: 2.0
m.foo = 9.0
""",
    "class of a library in between": """
from abc import ABC
from typing import Generic, TypeVar
T = TypeVar("T")
class Base: K = 2.0
class Foo(ABC, Generic[T], Base):
    def v(self, x): return super().K * x
o = Foo()
f = lambda x: o.v(x)
--
Base.K = 9.0
""",
    "property of a metaclass": """
class Meta(type): q = property(lambda cls: 1.0)
class A(metaclass=Meta): pass
f = lambda x: A.q * x
--
Meta.q = property(lambda cls: 2.0)
""",
    "two objects made at one address": """
class A: lin = True
class B: lin = True
def term(c, x):
    o = c()
    return x if o.lin else 5 * x
f = lambda x: term(A, x) + term(B, x)
--
B.lin = False
A.lin = False
""",
    # Arrays of objects, and the order and the types of elements.
    "array of objects": """
A = np.array([1.0, 2.0, None], object)
def f(x):
    for v in A:
        x = x if v is None else v * x
    a, b, c = A
    return a * x
--
A[0] = 5.0
""",
    "lists in an array of objects": """
A = np.array([[1.0], None], object)[:1]
A[0] = [1.0]
f = lambda x: sum(A.tolist()[0]) * x
--
A[0] = [2.0]
A[0].append(5.0)
""",
    "order of a set": """
S = {0, 8}
f = lambda x: [*S][0] * x + x
--
S.clear(); S.update([8]); S.add(0)
""",
    "types of keys": """
D = {1: 2.0}
f = lambda x: (1.0 if [type(k) is int for k in D][0] else 2.0) * x
--
D.clear(); D[1.0] = 2.0
D.clear(); D[True] = 2.0
""",
}


def test_getattr_runs_the_users_code_once() -> None:
    asked = []

    class Answers:
        @property
        def p(self) -> float:
            asked.append("p")
            return 2.0

        def __getattr__(self, name: str) -> float:
            asked.append(name)
            return 3.0

    outside: Any = Answers()
    p, q, r = "pqr"
    compiled = rg.jit(lambda x: getattr(outside, p) * getattr(Answers(), q) * getattr(outside, r) * x)
    assert compiled(1.0) == 18.0
    assert asked == ["p", "q", "r"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_change_takes_effect(name: str) -> None:
    changes_take_effect(name, PROGRAMS[name])
