"""Constants of a model, and the force that reads them."""

import numpy as np

G = 2.0


def force(x):
    return np.sum(G * x**2 + np.copysign(1.0, G) * x**3 + (2.0 if isinstance(G, int) else 1.0) * x)
