"""CTranslate2 behind the same interface: equal translations where both search alike.

It has a length penalty of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heedful.config import DecodingConfig
from heedful.decoding import search_engine
from heedful.decoding.translator import Translation, Translator
from heedful.interop.ctranslate2_export import write_ctranslate2
from heedful.storage.model_directory import Model

ctranslate2 = pytest.importorskip("ctranslate2")

from heedful.engines.ctranslate2 import CTranslate2Searcher

SENTENCES = ["ba", "bo ka lu", "mi ta ra ne", "fi"]


@pytest.fixture
def model(random_model: Callable[..., Model]) -> Model:
    return replace(random_model(), decoding=DecodingConfig(beam=1, max_extra=8))


def both(model: Model, monkeypatch: pytest.MonkeyPatch, **search: int) -> tuple[list[Translation], list[Translation]]:
    """Translate with both, one by one: a CTranslate2 batch has one limit for all sentences."""
    found = []
    for translator in (Translator(model), Translator(model, searcher=CTranslate2Searcher(model))):
        monkeypatch.setattr(search_engine, "_engine_of_process", "")  # in one process for once
        found.append([translator.translate(sentence, **search) for sentence in SENTENCES])
    return found[0], found[1]


def test_greedy_translations_match(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = both(model, monkeypatch)
    assert [one.text for one in theirs] == [one.text for one in ours]


@pytest.mark.parametrize("beam", [1, 3])
def test_scores_are_divided_by_a_power_of_the_length(model: Model, beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it finds; at the limit its hypotheses have no end symbol."""
    monkeypatch.setattr(search_engine, "_engine_of_process", "")
    engine, scoring = CTranslate2Searcher(model), Translator(model)
    for sentence in SENTENCES:
        source = scoring.ids(sentence)
        [found] = engine.search([source], beam, 0.6, beam)
        assert len(found) == beam
        for one in found:
            stopped = len(one.ids) == len(source) + 8
            [pair] = scoring._score_batch([(source, list(one.ids[:-1] if stopped else one.ids))])
            assert one.log_probability == pytest.approx(pair.log_probability, abs=0.02)  # its softmax has no <pad>
            assert one.score == pytest.approx(one.log_probability / len(one.ids) ** 0.6, abs=1e-6)


@pytest.mark.parametrize("power_alpha", [0.0, 0.7, 1.5])
def test_the_models_own_alpha_is_that_of_the_exported_model(
    model: Model, power_alpha: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The engine finds what CTranslate2 finds with the exported config.json."""
    monkeypatch.setattr(search_engine, "_engine_of_process", "")
    model = replace(model, decoding=DecodingConfig(beam=3, alpha=2.5, power_alpha=power_alpha, max_extra=8))
    translator = Translator(model, searcher=CTranslate2Searcher(model))
    write_ctranslate2(model, tmp_path / "out")
    settings = json.loads((tmp_path / "out" / "config.json").read_text())["heedful"]
    assert settings == {"beam_size": 3, "length_penalty": power_alpha}
    theirs = ctranslate2.Translator(str(tmp_path / "out"), device="cpu", intra_threads=1)
    for sentence in SENTENCES:
        source = translator.ids(sentence)
        limit = len(source) - 1 + 8
        [expected] = theirs.translate_batch(
            [model.tokenizer.tokens(source[:-1])], **settings, max_decoding_length=limit, min_decoding_length=0
        )
        assert translator.translate(sentence).tokens == tuple(expected.hypotheses[0])


def test_attention_uses_one_thread_alongside_ctranslate2(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of CTranslate2 may be spinning."""
    monkeypatch.setattr(search_engine, "_engine_of_process", "")
    translator, threads = Translator(model, searcher=CTranslate2Searcher(model)), []
    weights = model.transformer.attention_weights

    def watched(*given: torch.Tensor) -> object:
        threads.append(torch.get_num_threads())
        return weights(*given)

    monkeypatch.setattr(model.transformer, "attention_weights", watched)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert translator.translate("ba", attention=True).attention is not None
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert threads == [1]
