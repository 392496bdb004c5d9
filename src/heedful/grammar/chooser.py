"""The interface through which the grammar makes its choices.

`HashChooser` picks pseudo-randomly from a hash of seed and index, for generation. The search in recognizer.py tries
every option in turn, for analysis. The same grammar code therefore generates sentences and recognises them.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Protocol, TypeVar

T = TypeVar("T")

_WORD = 1 << 64


class Chooser(Protocol):
    """Makes the choices of one derivation."""

    def pick(self, options: Sequence[T]) -> T:
        """Return one of the options; repeating an option makes it more likely."""
        ...

    def check_partial(self, constituent: object) -> None:
        """Check an incomplete constituent; a search may abandon the derivation here."""
        ...

    def check_complete(self, constituent: T) -> T:
        """Return a complete constituent; a search may abandon the derivation here."""
        ...


class HashChooser:
    """Picks options from a hash of seed and index, identically on every platform."""

    __slots__ = ("_bits", "_key")

    def __init__(self, seed: int, index: int) -> None:
        self._key = b"%d,%d" % (seed, index)
        self._bits = int.from_bytes(blake2b(self._key).digest(), "little")

    def pick(self, options: Sequence[T]) -> T:
        if self._bits < _WORD:  # too few bits left for a uniform choice
            self._key = blake2b(self._key).digest()
            self._bits = int.from_bytes(self._key, "little")
        self._bits, index = divmod(self._bits, len(options))
        return options[index]

    def check_partial(self, constituent: object) -> None:
        pass

    def check_complete(self, constituent: T) -> T:
        return constituent
