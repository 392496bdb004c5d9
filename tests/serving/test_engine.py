"""Both engines translate as the model does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from heedful.config import DecodingConfig
from heedful.decoding.translator import Translator
from heedful.serving.engine import ServedModel
from heedful.storage.model_directory import Model

SENTENCES = ["ba", "bo ka lu", "mi ta ra ne", "fi"]


def test_our_own(translator: Translator) -> None:
    expected = [
        [one.text, *(other.text for other in one.alternatives)] for one in translator.translate(SENTENCES, n_best=3)
    ]
    assert ServedModel(translator).engine.search(SENTENCES, 3) == expected


def test_more_alternatives_than_the_beam_is_wide(translator: Translator) -> None:
    assert len(ServedModel(translator).engine.search(["ba"], 6)[0]) == 6


def test_ctranslate2(random_model: Callable[..., Model]) -> None:
    """Greedy, and one by one: its beam has another length penalty, its batches one limit for all."""
    pytest.importorskip("ctranslate2")
    translator = Translator(replace(random_model(), decoding=DecodingConfig(beam=1, max_extra=8)))
    engine = ServedModel(translator, "ctranslate2").engine
    assert [engine.search([one], 1)[0] for one in SENTENCES] == [[translator.translate(one).text] for one in SENTENCES]
    assert [len(found) for found in engine.search(SENTENCES, 3)] == [3] * len(SENTENCES)


def test_what_is_too_long_is_cut_before_it_waits(translator: Translator) -> None:
    served, longest = ServedModel(translator), translator.model.text.max_length
    long = "ba bo ka lu " * 40
    parts = served.cut(long)
    assert len(parts) > 1
    assert all(served.tokens(part) <= longest for part in parts)
    assert " ".join(parts) == long.strip()
    assert served.cut("  ") == []


def test_languages_that_are_not_known_have_a_name(random_model: Callable[..., Model]) -> None:
    model = random_model()
    served = ServedModel(Translator(replace(model, text=replace(model.text, source_language="", target_language=""))))
    assert (served.source, served.target) == ("source", "target")
