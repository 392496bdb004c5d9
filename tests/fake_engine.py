"""Fake engines with known translations, for server tests."""

from __future__ import annotations

import re
import time

from heedful.config import EOS
from heedful.text.tokenizer import Tokenizer


class UppercaseEngine:
    """Translates to upper case in constant time, so that each client can check its response.

    The n-th best translation ends with n exclamation marks.
    """

    def __init__(self, tokenizer: Tokenizer, batch_seconds: float = 0.0) -> None:
        self.tokenizer, self.batch_seconds = tokenizer, batch_seconds

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        time.sleep(self.batch_seconds)
        texts = [self.tokenizer.decode(source[:-1]).upper() for source in sources]
        return [[[*self.tokenizer.encode(text + "!" * rank), EOS] for rank in range(n_best)] for text in texts]


class FirstSentenceEngine:
    """Returns only the first sentence, like a model trained on single sentences."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        texts = [self.tokenizer.decode(source[:-1]) for source in sources]
        firsts = [re.match(r"[^.!?]*[.!?]?", text)[0] for text in texts]  # type: ignore[index]
        return [[[*self.tokenizer.encode(text), EOS]] * n_best for text in firsts]
