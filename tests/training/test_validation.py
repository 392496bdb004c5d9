"""Validation reports its progress, and shows some of the translations that it scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.config import DataConfig
from heedful.data.store import write_store
from heedful.decoding.translator import Translator
from heedful.evaluation.sacrebleu_scores import bleu
from heedful.storage.model_directory import Model
from heedful.text.corpus import Pair
from heedful.training.run import train
from heedful.training.validation import Validation


class Pairs:
    def __init__(self, pairs: list[Pair]) -> None:
        self.content = pairs

    def pairs(self) -> list[Pair]:
        return self.content


@pytest.fixture
def validation(
    tmp_path: Path, random_model: Callable[..., Model], make_pairs: Callable[..., list[Pair]]
) -> Callable[[int], Validation]:
    def make(count: int) -> Validation:
        model, pairs = random_model(), make_pairs(count, seed=9)
        store = write_store(tmp_path / "store", pairs, model.tokenizer, DataConfig(), {})
        return Validation(store, Pairs(pairs), model.tokenizer, model.text, model.decoding)  # type: ignore[arg-type]

    return make


def test_progress_rises_to_the_end(validation: Callable[[int], Validation], random_model: Callable[..., Model]) -> None:
    reports: list[tuple[int, int]] = []
    validation(230).run(random_model().transformer, 500, 0.1, lambda done, total: reports.append((done, total)))
    done = [one for one, _ in reports]
    assert {total for _, total in reports} == {460}
    assert done == sorted(set(done))
    assert done[-1] == 460
    assert sum(one > 230 for one in done) == 3  # translating is reported too, not only the loss


def test_scores_and_samples_are_of_the_text_in_its_order(
    validation: Callable[[int], Validation], random_model: Callable[..., Model]
) -> None:
    """The oracle: the same lines translated at once, in their order."""
    one, model = validation(230), random_model()
    scores, samples = one.run(model.transformer, 500, 0.1, lambda *_: None)
    translations = [found.text for found in Translator(model).translate([pair.source for pair in one.pairs], beam=1)]
    assert scores.bleu == pytest.approx(bleu(translations, [pair.target for pair in one.pairs]).value, abs=1e-6)
    rows = [(pair.source, text, pair.target) for pair, text in zip(one.pairs, translations, strict=True)]
    assert samples == [rows[number] for number in (0, 76, 153)]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_short_text_shows_each_line_once(
    validation: Callable[[int], Validation], random_model: Callable[..., Model], count: int
) -> None:
    one = validation(count)
    _, samples = one.run(random_model().transformer, 500, 0.1, lambda *_: None)
    assert [sample.source for sample in samples] == [pair.source for pair in one.pairs]


def test_a_run_prints_three_samples_after_each_validation(
    tiny_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes: dict[str, Any] = {"training.steps": 4, "training.validate_every": 2, "training.save_every": 4}
    train(tiny_run / "config.toml", out=tmp_path / "run", overrides={**changes, "training.average": 1})
    out, err = capsys.readouterr()
    assert out == ""
    after = err[err.index("step 2: validation") :]
    for name in ("source", "translation", "reference"):
        assert after.count(f"\n  {name:11}  ") == 6
