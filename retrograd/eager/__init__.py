"""Records and tensors, which run eagerly and hold no derivative rule; networks and optimisers on them and on arrays."""

from .functions import Function
from .parameters import ParameterStore
from .records import Record
from .tensors import Tensor

__all__ = ["Function", "ParameterStore", "Record", "Tensor"]


def __dir__() -> list[str]:
    return __all__
