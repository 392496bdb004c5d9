"""BPE-dropout against SentencePiece, and the same segmentation in every process."""

from __future__ import annotations

import functools
import io
import statistics
import subprocess
import sys

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from heedful import grammar
from heedful.errors import TokenizerError
from heedful.text.bpe_dropout import segment, skip_with
from heedful.text.tokenizer import Tokenizer, learn

TEXTS = [text for pair in grammar.pairs("train", 400) for text in (pair.english, pair.german)]


@pytest.fixture
def tokenizer() -> Tokenizer:
    return learned_once()


@functools.cache
def learned_once() -> Tokenizer:
    return learn(TEXTS, 500)


def test_without_dropout_it_is_the_segmentation_of_sentencepiece(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode_at_random(TEXTS, 0.0, seed=1) == tokenizer.encode_many(TEXTS)


@given(text=st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=40))
def test_any_text_is_segmented_as_by_sentencepiece(text: str) -> None:
    tokenizer = learned_once()
    assert tokenizer.encode_at_random([text], 0.0, seed=1) == tokenizer.encode_many([text])
    assert tokenizer.decode(tokenizer.encode_at_random([text], 0.5, seed=1)[0]) == tokenizer.decode(
        tokenizer.encode(text)
    )


@pytest.mark.parametrize("dropout", [0.1, 0.4])
def test_on_average_it_is_as_long_as_that_of_sentencepiece(tokenizer: Tokenizer, dropout: float) -> None:
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)

    def lengths(rounds: list[list[list[int]]]) -> list[int]:
        return [sum(map(len, ids)) for ids in rounds]

    ours = lengths([tokenizer.encode_at_random(TEXTS, dropout, seed) for seed in range(10)])
    theirs = lengths([processor.encode(TEXTS, enable_sampling=True, alpha=dropout, nbest_size=-1) for _ in range(10)])
    assert statistics.mean(ours) == pytest.approx(statistics.mean(theirs), rel=0.01)
    assert statistics.mean(ours) > 1.03 * sum(map(len, tokenizer.encode_many(TEXTS)))


def test_it_is_the_same_in_every_process(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> None:
    """SentencePiece's own sampling would differ after a run resumes in a new process."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    path.write_bytes(tokenizer.model)
    code = (
        "from pathlib import Path; from heedful.text.tokenizer import Tokenizer; "
        f"print(Tokenizer.read(Path({str(path)!r})).encode_at_random({TEXTS[:50]!r}, 0.3, 7))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert found == str(tokenizer.encode_at_random(TEXTS[:50], 0.3, 7))


def test_every_merge_skipped_leaves_characters() -> None:
    ranks = {"a": 10, "b": 11, "ab": 0, "abab": 1}
    assert segment("abab", ranks, lambda: False) == ["abab"]
    assert segment("abab", ranks, lambda: True) == ["a", "b", "a", "b"]
    assert segment("", ranks, lambda: False) == []
    assert segment("a", ranks, lambda: False) == ["a"]


def test_skips_have_the_asked_probability() -> None:
    skips = skip_with(0.3, seed=1)
    assert sum(skips() for _ in range(10_000)) == pytest.approx(3_000, abs=200)


def test_a_unigram_model_is_rejected() -> None:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=written,
        model_type="unigram",
        vocab_size=400,
        byte_fallback=True,
        normalization_rule_name="identity",
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    with pytest.raises(TokenizerError, match="needs a BPE tokenizer"):
        Tokenizer(written.getvalue()).encode_at_random(TEXTS[:2], 0.1, 1)
