"""Records and tensors, which run eagerly and hold no derivative rule; networks and optimisers for them and arrays."""

from .custom import Function
from .parameters import ParameterStore
from .records import Record
from .tensors import Tensor

__all__ = ["Function", "ParameterStore", "Record", "Tensor"]


def __dir__() -> list[str]:
    return __all__
