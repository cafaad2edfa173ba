"""What is read of the state outside while a function is recorded, and how that is seen: the surroundings of a trace."""

from . import follow as follow
