"""An object that functions read, and that tells nobody when it changes."""

from __future__ import annotations


class Model:
    """An object whose attribute changes, and that equals others."""

    def __init__(self, k: float) -> None:
        self.k = k

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model)

    def __hash__(self) -> int:
        return 1
