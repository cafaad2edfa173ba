"""Special methods that are replaced: those that make an object, a text or a copy, and those that operators run.

Each program is text, as in ``test_changed_places``.
"""

from __future__ import annotations

import pytest

from tests.state.oracle import changes_take_effect

HEAD = """
import copy, dataclasses, functools, sys
class A:
    def __init__(self, k): self.k = k
    def __str__(self): return "aa"
    def __repr__(self): return "aaa"
    def __dir__(self): return ["a", "b"]
a = A(2.0)
class New:
    def __new__(cls, k):
        new = object.__new__(cls)
        new.k = k
        return new
@dataclasses.dataclass
class Data:
    __annotations__ = {"k": float}
    def __post_init__(self): self.k *= 2.0
class Above:
    def __init__(self, k): self.k = k
class Below(Above): pass
class Plain: pass
plain = Plain()
class Copied:
    k = 2.0
    def __reduce_ex__(self, version): return float, (self.k,)
copied = Copied()
class Sized:
    def __sizeof__(self): return 10
sized = Sized()
class Answers(dict):
    __getattr__ = dict.__getitem__
answers = Answers(k=2.0)
def twice(x): return 2.0
class Wrapped:
    __call__ = staticmethod(twice)
    __getitem__ = functools.partialmethod(lambda self, key: key)
wrapped = Wrapped()
class Point:
    __match_args__ = ("a", "b")
    a, b = 1.0, 20.0
class Lower(Point): pass
point = Lower()
class Hooked:
    def __init_subclass__(cls): cls.k = 2.0
"""
MORE = "lambda self, k: setattr(self, 'k', 5.0 * k)"
PROGRAMS = {
    "__init__": ("A(3.0).k * x", f"A.__init__ = {MORE}"),
    "__init__ in a map": ("sum(e.k for e in map(A, [1.0, 2.0])) * x", f"A.__init__ = {MORE}"),
    "__init__ of a partial call": ("functools.partial(A, 3.0)().k * x", f"A.__init__ = {MORE}"),
    "__init__ of a base": (
        "Below(3.0).k * x",
        f"Above.__init__ = {MORE}\nBelow.__init__ = lambda self, k: None; Below.k = 7.0",
    ),
    "__init__ of a class made inside": ("type('T', (Below,), {})(3.0).k * x", f"Above.__init__ = {MORE}"),
    "__new__": ("New(3.0).k * x", "New.__new__ = lambda cls, k: a"),
    "__init__ of a dataclass": ("Data(3.0).k * x", f"Data.__init__ = {MORE}"),
    "__post_init__": ("Data(3.0).k * x", "Data.__post_init__ = lambda self: None"),
    "__str__ in a text": ("len(f'{a}') * x", "A.__str__ = lambda self: 'aaaaa'\nA.__format__ = lambda self, spec: ''"),
    "__str__ of an object made inside": ("len(f'{A(1.0)}') * x", "A.__str__ = lambda self: 'aaaaa'"),
    "__str__ in a format": ("len('%s' % a) * x", "A.__str__ = lambda self: 'aaaaa'"),
    "__str__ by str": ("len(str(a)) * x", "A.__str__ = lambda self: 'aaaaa'"),
    "__str__ by str.format": ("len('{}'.format(a)) * x", "A.__str__ = lambda self: 'aaaaa'"),
    "no __str__": ("len(f'{plain}') * x", "Plain.__repr__ = lambda self: 'a'\nPlain.__str__ = lambda self: 'aa'"),
    "__repr__ in a list": ("len(f'{[a]}') * x", "A.__repr__ = lambda self: 'aaaaa'"),
    "__repr__": ("len(f'{a!r}') * x", "A.__repr__ = lambda self: 'aaaaa'"),
    "__repr__ by repr": ("len(repr(a)) * x", "A.__repr__ = lambda self: 'aaaaa'"),
    "__dir__": ("len(dir(a)) * x", "A.__dir__ = lambda self: ['a']"),
    "__reduce_ex__": ("copy.copy(copied) * x", "Copied.__reduce_ex__ = lambda self, version: (float, (7.0,))"),
    "__sizeof__": ("sys.getsizeof(sized) * x", "Sized.__sizeof__ = lambda self: 1000"),
    "__getattr__ in C": ("answers.k * x", "Answers.__getattr__ = lambda self, name: 5.0"),
    "__call__ that is static": ("wrapped(1.0) * x", "Wrapped.__call__ = staticmethod(lambda x: 5.0)"),
    "__getitem__ that is partial": ("wrapped[2.0] * x", "Wrapped.__getitem__ = lambda self, key: 5.0"),
    "__init_subclass__": (
        "hooked() * x",
        "Hooked.__init_subclass__ = classmethod(lambda cls: setattr(cls, 'k', 5.0))",
    ),
    "__match_args__": ("matched() * x", "Point.__match_args__ = ('b', 'a')\nLower.__match_args__ = ('a', 'b')"),
}
FUNCTIONS = """
def hooked():
    class T(Hooked): pass
    return T.k
def matched():
    match point:
        case Lower(first): return first
"""


@pytest.mark.whole
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_replaced_method_is_seen(name: str) -> None:
    use, changes = PROGRAMS[name]
    changes_take_effect(name, f"{HEAD}{FUNCTIONS}def f(x): return {use}\n--\n{changes}")
