"""BPE-dropout (Provilkov et al. 2020): skip merges at random, for varied segmentations.

SentencePiece can sample too, but its seed depends on the process, so a resumed run would see other tokens. Here a
segmentation is a function of text, dropout and seed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Mapping

Rank = int  # merges with a lower rank come first


def segment(word: str, ranks: Mapping[str, Rank], skips: Callable[[], bool]) -> list[str]:
    """Merge a word's characters into tokens, best-ranked pair first, unless `skips()`.

    `ranks` has the rank of every token that a merge produces.
    """
    symbols: list[str] = list(word)
    following = [*range(1, len(symbols)), -1]
    previous = [*range(-1, len(symbols) - 1)]
    # A merge is (rank, left position, resulting token); it is outdated if either symbol has changed since.
    merges: list[tuple[Rank, int, str]] = []

    def propose(left: int) -> None:
        right = following[left] if left >= 0 else -1
        if right >= 0 and (rank := ranks.get(token := symbols[left] + symbols[right])) is not None:
            heapq.heappush(merges, (rank, left, token))

    for position in range(len(symbols)):
        propose(position)
    while merges:
        _, left, token = heapq.heappop(merges)
        right = following[left]
        if not symbols[left] or right < 0 or symbols[left] + symbols[right] != token or skips():
            continue
        symbols[left], symbols[right] = token, ""
        following[left] = following[right]
        if following[left] >= 0:
            previous[following[left]] = left
        propose(previous[left])
        propose(left)
    return [symbol for symbol in symbols if symbol]


def skip_with(dropout: float, seed: int) -> Callable[[], bool]:
    """Return a function that is true with probability `dropout`, reproducible by seed."""
    draw = random.Random(seed).random
    return lambda: draw() < dropout
