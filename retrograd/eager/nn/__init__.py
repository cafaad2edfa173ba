"""Small helpers for networks: functions of arrays of every kind, and layers of records."""

from .functional import conv2d, cross_entropy, leaky_relu, linear, log_softmax, relu
from .layers import Conv2d, Linear

__all__ = ["Conv2d", "Linear", "conv2d", "cross_entropy", "leaky_relu", "linear", "log_softmax", "relu"]
