"""Words in other tokens every time: the same text, a function of the seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import synthetic_tasks as tasks
from heedful.config import EOS, PAD, DataConfig, Recipe, TrainingConfig
from heedful.data.batches import Batches, unpadded
from heedful.data.store import Store, write_store
from heedful.text.corpus import Pair
from heedful.text.tokenizer import SPACE_MARK, Tokenizer, learn
from heedful.training.run import resegmentation

PAIRS = [Pair(*pair) for pair in tasks.pairs(tasks.reverse, range(60))]
TEXTS = [side for pair in PAIRS for side in pair]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TEXTS * 3, 400)


@pytest.fixture
def store(tokenizer: Tokenizer, tmp_path: Path) -> Store:
    return write_store(tmp_path / "store", PAIRS, tokenizer, DataConfig(), {})


def recipe(dropout: float = 0.3, warmup: int = 0, accumulate: int = 1, **data: Any) -> Recipe:
    training = TrainingConfig(dropout_warmup_steps=warmup, accumulate=accumulate)
    return Recipe(data=DataConfig(bpe_dropout=dropout, **data), training=training)


def texts(tokenizer: Tokenizer, ids_BT: torch.Tensor) -> list[str]:
    assert all(row[-1] == EOS for row in unpadded(ids_BT))
    return [tokenizer.decode(row[:-1]) for row in unpadded(ids_BT)]


def test_other_tokens_of_the_same_text(tokenizer: Tokenizer) -> None:
    plain = tokenizer.encode_many(TEXTS)
    drawn = tokenizer.encode_at_random(TEXTS, 0.3, seed=1)
    assert [tokenizer.decode(ids) for ids in drawn] == TEXTS
    assert sum(map(len, drawn)) > 1.05 * sum(map(len, plain))
    assert tokenizer.encode_at_random(TEXTS, 0.3, seed=1) == drawn
    assert tokenizer.encode_at_random(TEXTS, 0.3, seed=2) != drawn
    assert tokenizer.encode_at_random(TEXTS, 0.3, seed=2**32 - 1) == tokenizer.encode_at_random(TEXTS, 0.3, 2**32 - 1)


def test_the_more_merges_are_left_out_the_more_tokens(tokenizer: Tokenizer) -> None:
    lengths = [sum(map(len, tokenizer.encode_at_random(TEXTS, share, 1))) for share in (0.0, 0.1, 0.5, 0.9)]
    assert lengths == sorted(set(lengths))
    assert lengths[0] == sum(map(len, tokenizer.encode_many(TEXTS)))


def test_a_space_mark_stays_one(tokenizer: Tokenizer) -> None:
    text = f"a {SPACE_MARK} b"
    assert tokenizer.decode(tokenizer.encode_at_random([text, "ab"], 0.5, 1)[0]) == text


def test_a_batch_has_its_own_text_in_other_tokens(store: Store, tokenizer: Tokenizer) -> None:
    plain = Batches(store, 128, seed=1)
    one, other = (Batches(store, 128, 1, resegmentation(tokenizer, recipe())) for _ in range(2))
    for number in range(plain.per_epoch):
        before, batch, again = plain[number], one[number], other[number]
        assert batch.lines == before.lines
        for side in ("source_BS", "target_out_BT"):
            assert texts(tokenizer, getattr(batch, side)) == texts(tokenizer, getattr(before, side))
            assert torch.equal(getattr(batch, side), getattr(again, side))
        assert batch.tokens == int((batch.target_out_BT != PAD).sum())
    assert not torch.equal(one[0].target_out_BT, plain[0].target_out_BT)
    first, second = (by_line(one, range(epoch * plain.per_epoch, (epoch + 1) * plain.per_epoch)) for epoch in (0, 1))
    assert first.keys() == second.keys()
    assert sum(first[line] != second[line] for line in first) > len(PAIRS) / 2


def by_line(batches: Batches, numbers: range) -> dict[int, list[int]]:
    """Line of the corpus → its target tokens in these batches."""
    return {
        line: ids
        for batch in (batches[number] for number in numbers)
        for line, ids in zip(batch.lines, unpadded(batch.target_out_BT), strict=True)
    }


def test_a_sentence_that_would_become_too_long_stays_as_it_is(tokenizer: Tokenizer) -> None:
    sentences = [[*tokenizer.encode(text), EOS] for text in TEXTS]
    longest = max(map(len, sentences))
    drawn = resegmentation(tokenizer, recipe(0.9, max_length=longest))(sentences, 1, 0)
    assert max(map(len, drawn)) <= longest
    assert any(before == after for before, after in zip(sentences, drawn, strict=True))
    assert any(before != after for before, after in zip(sentences, drawn, strict=True))


def test_it_rises_with_dropout_over_its_warm_up(tokenizer: Tokenizer) -> None:
    sentences = [[*tokenizer.encode(text), EOS] for text in TEXTS]

    def drawn(number: int, warmup: int, dropout: float = 0.3) -> list[list[int]]:
        """With two batches a step: `number` 38 and 39 are step 20."""
        return resegmentation(tokenizer, recipe(dropout, warmup, accumulate=2))(sentences, 1, number)

    assert drawn(38, warmup=200) == drawn(39, warmup=200) == drawn(0, warmup=0, dropout=0.03)
    assert drawn(398, warmup=200) == drawn(10**9, warmup=200) == drawn(0, warmup=0)
    assert drawn(198, warmup=200) != drawn(398, warmup=200)


def test_memory_is_tried_with_all_of_it(store: Store, tokenizer: Tokenizer) -> None:
    warm, cold = (
        Batches(store, 128, 1, resegmentation(tokenizer, recipe(0.5, warmup))).worst() for warmup in (0, 10**6)
    )
    assert torch.equal(warm.target_out_BT, cold.target_out_BT)
    assert warm.tokens > Batches(store, 128, 1).worst().tokens
