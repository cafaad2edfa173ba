"""Python's own ``isinstance``, ``type`` and containers: traced values need no others. The boxes have no instances."""

from builtins import dict, isinstance, list, tuple, type  # noqa: UP029 - for programs that import them from here

from .extend import Box

__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]


class SequenceBox(Box):
    """The class of autograd's traced lists and tuples, of which there are none here."""


class DictBox(Box):
    """The class of autograd's traced dicts, of which there are none here."""
