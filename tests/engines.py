"""An engine for servers under test: its translations are known."""

from __future__ import annotations

import time


class Shouting:
    """Translates to capitals, so that everyone knows his own answer, in a time that depends on nothing else.

    The n-th best ends with as many exclamation marks.
    """

    def __init__(self, batch_seconds: float = 0.0) -> None:
        self.batch_seconds = batch_seconds

    def search(self, sentences: list[str], n_best: int) -> list[list[str]]:
        time.sleep(self.batch_seconds)
        return [[sentence.upper() + "!" * rank for rank in range(n_best)] for sentence in sentences]
