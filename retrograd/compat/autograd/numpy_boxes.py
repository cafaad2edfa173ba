"""Classes of autograd's traced values: programs ask ``isinstance(x, ArrayBox)``, and it is False here."""

from .extend import Box


class ArrayBox(Box):
    """The class of autograd's traced arrays, of which there are none here."""
