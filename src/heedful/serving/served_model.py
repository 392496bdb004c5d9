"""A model that the server translates with."""

from __future__ import annotations

from typing import Protocol

from heedful.decoding.translator import Translator


class Engine(Protocol):
    """Finds translations. Only one thread calls `search`, one batch at a time."""

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        """Return the translations of every source, best first, as token ids with the end token."""


class TranslatorEngine:
    """Search with a translator's engine, and its model's own settings."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator

    def search(self, sources: list[list[int]], n_best: int) -> list[list[list[int]]]:
        beam = max(n_best, self.translator.model.decoding.beam)
        found = self.translator.search(sources, beam=beam, n_best=n_best)
        return [[list(hypothesis.ids) for hypothesis in one] for one in found]


class ServedModel:
    """A model with its engine and the languages it translates between."""

    def __init__(self, translator: Translator) -> None:
        text = translator.model.text
        self.translator = translator
        self.source, self.target = text.source_language or "source", text.target_language or "target"
        self.engine: Engine = TranslatorEngine(translator)
