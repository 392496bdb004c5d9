"""Translation engines: heedful's own search, or CTranslate2 with the same weights."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Protocol

import torch

from heedful.config import EOS
from heedful.decoding.translator import Translator
from heedful.interop.ctranslate2 import write_ctranslate2

# CTranslate2 divides by n^alpha, we by ((5 + n) / 6)^alpha. With this factor both change alike at 15 tokens.
_ALPHA = 0.75


class Engine(Protocol):
    """Finds translations. Only one thread calls `search`, one batch at a time."""

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        """Return the best translations of every source, best first, all as token ids with the end symbol."""


class HeedfulEngine:
    def __init__(self, translator: Translator) -> None:
        self.translator = translator

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        beam = max(n_best, self.translator.model.decoding.beam)
        found = self.translator.search(sources, beam=beam, n_best=n_best)
        return [[list(hypothesis.ids) for hypothesis in one] for one in found]


class CTranslate2Engine:
    """The same weights; its search differs from ours a little (docs/how-to/deployment.md)."""

    def __init__(self, translator: Translator) -> None:
        self.model = translator.model
        with tempfile.TemporaryDirectory() as directory:
            write_ctranslate2(self.model, Path(directory) / "model")  # raises an error that names the missing package
            import ctranslate2

            self.engine: Any = ctranslate2.Translator(
                str(Path(directory) / "model"), device="cpu", intra_threads=torch.get_num_threads()
            )
        tokens = self.model.tokenizer.tokens(range(self.model.tokenizer.vocab_size))
        self.token_ids = {token: number for number, token in enumerate(tokens)}

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        decoding, tokens = self.model.decoding, self.model.tokenizer.tokens
        found = self.engine.translate_batch(
            [tokens(source[:-1]) for source in sources],  # it adds the end symbol
            beam_size=max(n_best, decoding.beam),
            num_hypotheses=n_best,
            length_penalty=_ALPHA * decoding.alpha,
            max_input_length=0,  # otherwise it truncates longer input silently
            max_decoding_length=max(map(len, sources)) - 1 + decoding.max_extra,
        )
        return [[[*map(self.token_ids.__getitem__, tokens), EOS] for tokens in one.hypotheses] for one in found]


class ServedModel:
    """A model with its engine and the languages it translates between."""

    def __init__(self, translator: Translator, engine: str = "heedful") -> None:
        text = translator.model.text
        self.translator = translator
        self.source, self.target = text.source_language or "source", text.target_language or "target"
        self.engine: Engine = HeedfulEngine(translator) if engine == "heedful" else CTranslate2Engine(translator)
