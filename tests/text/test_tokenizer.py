"""Tokenizer round trips for any text, and rejected tokenizers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.config import BOS, EOS, PAD, UNK
from heedful.errors import TokenizerError
from heedful.text.tokenizer import Tokenizer, learn

ODD = [
    "\u2581",
    "\ufdd0",
    "\0",
    "\u2028",
    "\u2029",
    "\u200d",
    "\u202e",
    "\ufeff",
    "\ufffd",
    "\r",
    "\n",
    "\t",
    " ",
    "  ",
]
WORDS = [
    "bada",
    "kilo",
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "<0xE2>",
    "<0xEF><0xB7><0x90>",
    "⁇",
    "👩‍👩‍👧",
    "שלום",
    "مرحبا",
]
ANY = st.characters(exclude_categories=["Cs"])  # every plane; a lone surrogate is no text
PLANES = st.integers(0, 16).flatmap(
    lambda plane: st.characters(
        min_codepoint=plane << 16, max_codepoint=(plane << 16) + 0xFFFF, exclude_categories=["Cs"]
    )
)
MIXED = st.lists(st.one_of(ANY, PLANES, st.sampled_from(ODD), st.sampled_from(WORDS)), max_size=20).map("".join)


@pytest.fixture(scope="module")
def bare() -> Tokenizer:
    """Knows one letter: almost everything goes through the bytes."""
    return learn(["a"], 300)


@settings(max_examples=1_500)
@given(MIXED)
@example("\u2581")
@example("\ufdd0")
@example("\ufdd0\u2581\ufdd0\ufdd0 \u2581\u2581")
@example(" \u2581 ")
@example("\u2581\0\u2028\u2581")
@example("")
@example(" ")
@example("   leading and trailing   ")
@example("\U0010ffff\U0001f468\u200d\U0001f469")
def test_round_trip(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert not {PAD, UNK, BOS, EOS} & set(ids)
    assert all(0 <= i < tokenizer.vocab_size for i in ids)


@settings(max_examples=500)
@given(MIXED)
def test_round_trip_by_bytes_alone(bare, text):
    ids = bare.encode(text)
    assert bare.decode(ids) == text
    assert UNK not in ids


@pytest.mark.parametrize("plane", range(17))
def test_round_trip_of_whole_planes(tokenizer, plane):
    """Every code point but surrogates, 2,048 at a time, separated by space and U+2581."""
    for begin in range(plane << 16, (plane + 1) << 16, 2_048):
        text = "".join(chr(point) for point in range(begin, begin + 2_048) if not 0xD800 <= point < 0xE000)
        text = f"{text} \u2581{text[:8]}"
        ids = tokenizer.encode(text)
        assert UNK not in ids
        assert tokenizer.decode(ids) == text


@settings(max_examples=200)
@given(st.lists(MIXED, max_size=8), st.integers(1, 3))
def test_many_are_encoded_as_one_by_one(tokenizer, texts, threads):
    assert tokenizer.encode_many(texts, threads) == [tokenizer.encode(text) for text in texts]


def test_a_literal_space_mark_is_three_bytes_and_no_space(tokenizer):
    assert tokenizer.tokens(tokenizer.encode("bada\u2581"))[-3:] == ["<0xE2>", "<0x96>", "<0x81>"]
    assert tokenizer.encode("bada\u2581bada") != tokenizer.encode("bada bada")


def test_decoding_takes_numpy_like_ids_and_drops_special_tokens(tokenizer, store):
    ids = store.source(0)
    assert ids[-1] == EOS
    assert tokenizer.decode([BOS, *ids, PAD, PAD]) == tokenizer.decode(ids[:-1])


def test_half_a_character_is_decoded_all_the_same(tokenizer):
    first_byte = tokenizer.encode("\u2581")[-3]
    assert tokenizer.decode([first_byte]) == "\ufffd"


def test_tokens_join_to_the_text(tokenizer):
    text = "bada kilo meto"
    assert "".join(tokenizer.tokens(tokenizer.encode(text))).replace("\u2581", " ") == f" {text}"


def test_learning_is_repeatable_and_survives_its_bytes(tokenizer, make_pairs):
    again = learn([text for pair in make_pairs(1_000) for text in pair], 600)
    assert again.model == tokenizer.model
    assert Tokenizer(tokenizer.model).encode("bada kilo") == tokenizer.encode("bada kilo")


def test_vocabulary_is_what_was_asked_for_where_the_text_supports_it(tokenizer):
    assert tokenizer.vocab_size == 600


def test_vocabulary_is_lowered_where_the_text_supports_less():
    small = learn(["ab ab ab"] * 10, 5_000)
    # 4 special tokens, 256 bytes, and of the text: a, b, the space, and the merges "ab", " a", " ab" at the most.
    assert 4 + 256 + 3 < small.vocab_size <= 4 + 256 + 6
    assert small.decode(small.encode("ab ba c")) == "ab ba c"


def test_frequent_words_become_single_tokens():
    learnt = learn(["Dampfschiff fährt"] * 50, 400)
    assert len(learnt.encode("Dampfschiff")) == 1


def test_special_symbols_have_their_places(tokenizer):
    assert tokenizer.tokens([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]


def test_stand_in_and_space_mark_never_become_tokens():
    learnt = learn(["x\ufdd0x\u2581x\0x"] * 100, 300)
    names = learnt.tokens(range(learnt.vocab_size))
    assert not any("\ufdd0" in name or "\0" in name for name in names)
    for text in ("x\ufdd0x\u2581x\0x", "\u2581x", "x x"):
        assert learnt.decode(learnt.encode(text)) == text


@pytest.mark.parametrize("lines", [[], [""], ["x" * 5_000]], ids=["no lines", "empty lines", "long lines"])
def test_nothing_to_learn_from(lines):
    with pytest.raises(TokenizerError, match="Cannot train a tokenizer: every line of the text is empty or too long"):
        learn(lines, 300)


def test_long_lines_do_not_disturb_the_others():
    assert learn(["ab ab"] * 5 + ["x" * 5_000], 300).model == learn(["ab ab"] * 5, 300).model


def test_vocabulary_smaller_than_the_alphabet():
    with pytest.raises(TokenizerError) as caught:
        learn(["abcdefghij"], 262)
    # 4 special tokens, 256 bytes, ten letters and the space.
    assert str(caught.value) == (
        "data.vocab_size = 262 is too small: characters, special tokens and the 256 byte tokens alone need 271. "
        "Set data.vocab_size to more than 271."
    )
    assert learn(["abcdefghij"], 272).vocab_size >= 271


def trained(**options: Any) -> bytes:
    written = io.BytesIO()
    whole = {
        "model_type": "bpe",
        "vocab_size": 320,
        "hard_vocab_limit": False,
        "byte_fallback": True,
        "pad_id": PAD,
        "unk_id": UNK,
        "bos_id": BOS,
        "eos_id": EOS,
        "minloglevel": 2,
    }
    text = iter(["the cat sat on the mat", "a dog ran in the park"] * 20)
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=text, model_writer=written, **{**whole, **options})
    return written.getvalue()


def test_a_tokenizer_made_elsewhere_is_welcome(tmp_path):
    path = tmp_path / "other.model"
    path.write_bytes(trained())
    assert Tokenizer.read(path).decode(Tokenizer.read(path).encode("the cat\u2581")) == "the cat\u2581"


WRONG: list[tuple[str, Callable[[], bytes], str]] = [
    ("empty", lambda: b"", "is empty, not a SentencePiece model."),
    ("text", lambda: b"this is no model, but a line of text\n" * 20, "is not a SentencePiece model, or it is damaged."),
    (
        "pickle",
        lambda: b"\x80\x04\x95\x0c\x00\x00\x00\x00\x00\x00\x00\x8c\x05hello\x94.",
        "is not a SentencePiece model",
    ),
    ("zeros", lambda: bytes(1_000), "is not a SentencePiece model"),
    ("no bytes", lambda: trained(byte_fallback=False, vocab_size=40), "has no byte fallback."),
    (
        "other ids",
        lambda: trained(pad_id=3, unk_id=0, bos_id=1, eos_id=2),
        "at ids (3, 0, 1, 2); heedful needs (0, 1, 2, 3).",
    ),
    ("no padding", lambda: trained(pad_id=-1, unk_id=0, bos_id=1, eos_id=2), "at ids (-1, 0, 1, 2); heedful needs"),
]


@pytest.mark.parametrize(("make", "message"), [wrong[1:] for wrong in WRONG], ids=[wrong[0] for wrong in WRONG])
def test_wrong_tokenizers_are_refused(tmp_path, make, message):
    path = tmp_path / "tokenizer.model"
    path.write_bytes(make())
    with pytest.raises(TokenizerError, match=re.escape(f"{path} ") + ".*" + re.escape(message)):
        Tokenizer.read(path)


def test_truncated_tokenizer_is_refused(tokenizer):
    model = tokenizer.model
    for length in range(1, len(model), 97):
        with pytest.raises(TokenizerError, match=r"^cut (is not a SentencePiece|has )"):
            Tokenizer(model[:length], "cut")


def test_missing_tokenizer(tmp_path):
    with pytest.raises(TokenizerError, match=re.escape(f"Cannot read the tokenizer {tmp_path / 'none'}: no such file")):
        Tokenizer.read(tmp_path / "none")
    with pytest.raises(TokenizerError, match="is a directory"):
        Tokenizer.read(tmp_path)
