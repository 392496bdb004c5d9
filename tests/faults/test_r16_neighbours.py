"""R16: a translation does not depend on what else is in its batch."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from events import count

import tasks
from heedful.decoding.load import load
from heedful.decoding.translator import Translation, Translator
from heedful.model import transformer as transformer_module

pytestmark = pytest.mark.faults

SENTENCES = count(100, 1_000)


@pytest.fixture(scope="module")
def translator(reference: Path) -> Translator:
    """The reference's shape, with weights large enough that it says many different things."""
    model = load(reference).model
    made = Translator(replace(model, decoding=replace(model.decoding, max_extra=10)))
    generator = torch.Generator().manual_seed(16)
    with torch.no_grad():
        for parameter in made.model.transformer.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return made


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


def agreement(translator: Translator, lines: list[str], beam: int) -> float:
    alone = [translator.translate(line, beam=beam) for line in lines]
    together = in_batches(translator, lines, beam)
    distinct = {(one.text, round(one.score, 2)) for one in alone}
    assert len(distinct) > len(lines) / 2, "otherwise nothing is compared"
    same = [a.text == b.text and abs(a.score - b.score) <= 1e-4 for a, b in zip(alone, together, strict=True)]
    return sum(same) / len(same)


@pytest.mark.parametrize("beam", [1, 4])
def test_alone_as_in_company(translator: Translator, beam: int, counted: Callable[[int, str], None]) -> None:
    number = SENTENCES // 2
    assert agreement(translator, sentences(number), beam) >= 0.999
    counted(number, f"sentences, beam {beam}")


def test_control_without_the_padding_mask(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformer_module, "PAD", -1)
    assert agreement(translator, sentences(40), 1) < 0.999
