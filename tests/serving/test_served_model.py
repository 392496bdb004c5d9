"""A served model searches with its translator's engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from heedful.decoding.translator import Translator
from heedful.serving.served_model import ServedModel
from heedful.storage.model_directory import Model

SENTENCES = ["ba", "bo ka lu", "mi ta ra ne", "fi"]


def texts(served: ServedModel, sentences: list[str], n_best: int) -> list[list[str]]:
    translator = served.translator
    found = served.engine.search([translator.ids(sentence) for sentence in sentences], n_best)
    return [[translator.text(ids) for ids in one] for one in found]


def test_translations_are_the_translators(translator: Translator) -> None:
    expected = [
        [one.text, *(other.text for other in one.alternatives)] for one in translator.translate(SENTENCES, n_best=3)
    ]
    assert texts(ServedModel(translator), SENTENCES, 3) == expected


def test_more_alternatives_than_beam_width(translator: Translator) -> None:
    assert len(texts(ServedModel(translator), ["ba"], 6)[0]) == 6


def test_unknown_languages_have_placeholder_names(random_model: Callable[..., Model]) -> None:
    model = random_model()
    served = ServedModel(Translator(replace(model, text=replace(model.text, source_language="", target_language=""))))
    assert (served.source, served.target) == ("source", "target")
