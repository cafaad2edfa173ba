"""A program that takes its force from another module."""

from physics import force


def energy(x):
    return force(x)
