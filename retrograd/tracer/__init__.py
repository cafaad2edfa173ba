"""The tracer: plain NumPy programs to graphs; importing it teaches Tracer NumPy's protocols."""

from . import protocol

__all__ = ["protocol"]
