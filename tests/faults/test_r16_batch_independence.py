"""R16: a translation does not depend on the rest of its batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_injection import count

import synthetic_tasks as tasks
from heedful.decoding.projection_kernels import Precision
from heedful.decoding.translator import Translation, Translator
from heedful.engines.load import load
from heedful.errors import MachineError
from heedful.model import transformer as transformer_module
from heedful.training.run import train

pytestmark = pytest.mark.faults

SENTENCES = count(100, 1_000)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model trained just enough to translate each sentence differently."""
    directory = tmp_path_factory.mktemp("copying")
    pairs = tasks.pairs(tasks.copy, range(600), shortest=1, longest=18)
    tasks.write(directory, "train", pairs)
    tasks.write(directory, "valid", pairs[:4])
    learning = {"training.steps": 300, "training.batch_tokens": 400, "training.warmup_steps": 50}
    rare = {"training.save_every": 300, "training.validate_every": 300, "training.log_every": 100}
    width = {"model.d_model": 32, "model.d_ff": 64, "model.dropout": 0.0, "training.learning_rate": 0.5}
    train(out=directory / "run", overrides={**tasks.TINY, **tasks.corpus_in(directory), **learning, **rare, **width})
    return directory / "run"


@pytest.fixture(scope="module")
def translator(run: Path) -> Translator:
    return load(run)


def sentences(number: int) -> list[str]:
    return [tasks.line(seed=16, index=index, shortest=1, longest=18) for index in range(number)]


def in_batches(translator: Translator, lines: list[str], beam: int) -> list[Translation]:
    """In random order and batches of random size."""
    draw, order = random.Random(16), list(range(len(lines)))
    draw.shuffle(order)
    found: dict[int, Translation] = {}
    while order:
        size = draw.randint(2, 40)
        batch, order = order[:size], order[size:]
        found.update(zip(batch, translator.translate([lines[i] for i in batch], beam=beam), strict=True))
    return [found[index] for index in range(len(lines))]


def agreement(translator: Translator, lines: list[str], beam: int, error: float = 1e-4) -> float:
    alone = [translator.translate(line, beam=beam) for line in lines]
    together = in_batches(translator, lines, beam)
    assert len({one.tokens for one in alone}) > len(lines) / 2, "otherwise nothing is compared"
    same = [a.tokens == b.tokens and abs(a.score - b.score) <= error for a, b in zip(alone, together, strict=True)]
    return sum(same) / len(same)


@pytest.mark.parametrize("beam", [1, 4])
def test_translation_is_independent_of_the_batch(
    translator: Translator, beam: int, counted: Callable[[int, str], None]
) -> None:
    number = SENTENCES // 2
    assert agreement(translator, sentences(number), beam) >= 0.999
    counted(number, f"sentences with beam {beam}")


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize(("precision", "error"), [("bf16", 0.05), ("int8", 0.05)])
def test_lower_precisions(
    run: Path, precision: Precision, error: float, beam: int, counted: Callable[[int, str], None]
) -> None:
    """The text is the same.

    Scores are as exact as the precision is: sums of another order may round another way.
    """
    try:
        translator = load(run, precision=precision)
    except MachineError as reason:
        pytest.skip(str(reason))
    number = SENTENCES // 2
    assert agreement(translator, sentences(number), beam, error) >= 0.999
    counted(number, f"sentences with beam {beam} in {precision}")


def test_control_without_the_padding_mask(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer_module, "PAD", -1)
    assert agreement(translator, sentences(40), 1) < 0.999
