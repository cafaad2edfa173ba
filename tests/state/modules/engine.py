"""A program two modules away from what it reads."""

import rig


def run(x):
    return 0.5 * rig.energy(x) + x[0]
