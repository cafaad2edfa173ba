"""Reads of outside state during tracing, and how they are observed: the surroundings of a trace."""

from . import follow as follow
