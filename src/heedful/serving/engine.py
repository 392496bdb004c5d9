"""Who translates: heedful's own search, or CTranslate2 with the same weights."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Protocol

import torch

from heedful.decoding.translator import Translator
from heedful.interop.ctranslate2 import write_ctranslate2
from heedful.text.corpus import clean
from heedful.text.lines import one_line
from heedful.text.sentences import split_text

# CTranslate2 divides by n^alpha where we divide by ((5 + n) / 6)^alpha: at 15 tokens both change alike with this.
_ALPHA = 0.75


class Engine(Protocol):
    """`search` is called by one thread, a batch at a time."""

    def search(self, sentences: list[str], n_best: int) -> list[list[str]]:
        """For every sentence its best translations, the best first; none is longer than `ServedModel.cut` leaves."""


class HeedfulEngine:
    def __init__(self, translator: Translator) -> None:
        self.translator = translator

    def search(self, sentences: list[str], n_best: int) -> list[list[str]]:
        beam = max(n_best, self.translator.model.decoding.beam)
        found = self.translator.translate(sentences, beam=beam, n_best=n_best)
        return [[one.text for one in (best, *best.alternatives)] for best in found]


class CTranslate2Engine:
    """The same weights; its search differs from ours a little (docs/how-to/deployment.md)."""

    def __init__(self, translator: Translator) -> None:
        self.translator, self.model = translator, translator.model
        with tempfile.TemporaryDirectory() as directory:
            write_ctranslate2(self.model, Path(directory) / "model")  # says what to install where it is not there
            import ctranslate2

            self.engine: Any = ctranslate2.Translator(
                str(Path(directory) / "model"), device="cpu", intra_threads=torch.get_num_threads()
            )
        names = self.model.tokenizer.tokens(range(self.model.tokenizer.vocab_size))
        self.number_of = {name: number for number, name in enumerate(names)}

    def search(self, sentences: list[str], n_best: int) -> list[list[str]]:
        decoding, tokens = self.model.decoding, self.model.tokenizer.tokens
        sources = [tokens(self.translator.ids(sentence)[:-1]) for sentence in sentences]  # it adds the end symbol
        found = self.engine.translate_batch(
            sources,
            beam_size=max(n_best, decoding.beam),
            num_hypotheses=n_best,
            length_penalty=_ALPHA * decoding.alpha,
            max_input_length=0,  # it would cut what is longer, and say nothing
            max_decoding_length=max(map(len, sources)) + decoding.max_extra,
        )
        return [[self._text(hypothesis) for hypothesis in one.hypotheses] for one in found]

    def _text(self, hypothesis: list[str]) -> str:
        return one_line(self.model.tokenizer.decode([self.number_of[token] for token in hypothesis]))


class ServedModel:
    """A model on its engine, with what a request needs to know of it before it waits for its turn."""

    def __init__(self, translator: Translator, engine: str = "heedful") -> None:
        text = translator.model.text
        self.translator = translator
        self.source, self.target = text.source_language or "source", text.target_language or "target"
        self.engine: Engine = HeedfulEngine(translator) if engine == "heedful" else CTranslate2Engine(translator)

    def cut(self, sentence: str) -> list[str]:
        """A sentence in parts of at most the length that the model was trained on; nothing of an empty one."""
        text = self.translator.model.text
        longest = text.max_length
        sentence = clean(sentence, text.lowercase)
        return split_text(sentence, lambda part: self.tokens(part) <= longest) if sentence else []

    def tokens(self, sentence: str) -> int:
        """With the end symbol."""
        return len(self.translator.ids(sentence))
