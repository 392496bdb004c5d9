"""How the grammar chooses.

Every choice of the generator goes through a `Choose`. Drawing (here) answers from a hash of seed and index;
searching (derive.py) answers with each possibility in turn. So the very same code makes sentences and decides
whether a given sentence can be made.
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
        """One of the options; an option that stands there twice is twice as likely."""
        ...

    def check_partial(self, constituent: object) -> None:
        """Show a part to which words will be added; a search may give up here if it cannot belong."""
        ...

    def check_complete(self, constituent: T) -> T:
        """Return a finished part of the sentence; a search may give up here if it cannot belong."""
        ...


class HashChooser:
    """Choices from a hash: a pure function of the key, on every platform and in every process."""

    __slots__ = ("_bits", "_key")

    def __init__(self, seed: int, index: int) -> None:
        self._key = b"%d,%d" % (seed, index)
        self._bits = int.from_bytes(blake2b(self._key).digest(), "little")

    def pick(self, options: Sequence[T]) -> T:
        if self._bits < _WORD:  # too few bits left for an even choice
            self._key = blake2b(self._key).digest()
            self._bits = int.from_bytes(self._key, "little")
        self._bits, index = divmod(self._bits, len(options))
        return options[index]

    def check_partial(self, constituent: object) -> None:
        pass

    def check_complete(self, constituent: T) -> T:
        return constituent
