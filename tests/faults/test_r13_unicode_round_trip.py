"""R13: any text survives the tokenizer; invalid Unicode is rejected with its line."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_injection import count
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.config import UNK
from heedful.engines.load import load
from heedful.errors import InputError
from heedful.text import tokenizer as tokenizer_module
from heedful.text.text_files import decode_lines
from heedful.text.tokenizer import Tokenizer

pytestmark = pytest.mark.faults

TRIPS = count(200, 2_000)
ODD = [
    "\u2581",
    "\ufdd0",
    "\0",
    "\u2028",
    "\u2029",
    "\u200d",
    "\u202e",
    "\u200f",
    "\ufeff",
    "\ufffd",
    "\r",
    "\t",
    " ",
    "  ",
]
WORDS = ["<s>", "</s>", "<unk>", "<pad>", "<0xE2>", "⁇", "👩‍👩‍👧", "שלום", "مرحبا", "e\u0301", "ﬁ", "\U0010ffff"]
PLANES = st.integers(0, 16).flatmap(
    lambda plane: st.characters(
        min_codepoint=plane << 16, max_codepoint=(plane << 16) + 0xFFFF, exclude_categories=["Cs"]
    )
)
TEXT = st.lists(st.one_of(PLANES, st.sampled_from(ODD), st.sampled_from(WORDS)), max_size=25).map("".join)


def comes_back(tokenizer: Tokenizer, text: str) -> bool:
    ids = tokenizer.encode(text)
    return tokenizer.decode(ids) == text and UNK not in ids


def test_round_trips(tokenizer: Tokenizer, counted: Callable[[int, str], None]) -> None:
    tried = []

    @settings(max_examples=TRIPS)
    @given(TEXT)
    @example("\u2581")
    @example(" \u2581\ufdd0 ")
    def trip(text: str) -> None:
        tried.append(text)
        assert comes_back(tokenizer, text)

    trip()
    assert len(tried) >= TRIPS
    assert any("\u2581" in text for text in tried)
    assert {ord(character) >> 16 for text in tried for character in text} == set(range(17))
    counted(len(tried), "round trips")


def test_a_file_of_any_lines_comes_back(tokenizer: Tokenizer) -> None:
    """Through bytes, lines and tokens: neither U+2028 nor NUL nor a lone \\r ends a line."""

    @settings(max_examples=TRIPS // 10)
    @given(st.lists(TEXT, min_size=1, max_size=5))
    def trip(lines: list[str]) -> None:
        raw = b"".join(line.encode() + b"\r\n" for line in lines)
        read = list(decode_lines(io.BytesIO(b"\xef\xbb\xbf" + raw), "text"))
        assert [tokenizer.decode(tokenizer.encode(line)) for line in read] == lines

    trip()


@pytest.mark.parametrize("point", [0xD800, 0xDFFF, 0xDC80])
def test_a_lone_surrogate_is_refused_by_its_line(reference: Path, point: int) -> None:
    translator = load(reference)
    with pytest.raises(InputError, match=r"line 3: character 2 is a lone surrogate \(U\+D"):
        translator.translate(["a", "b", f"c{chr(point)}", "d"])


def test_control_without_the_stand_in(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_module, "SPACE_MARK", "\0 never \0")
    assert not comes_back(tokenizer, "a\u2581b")


def test_control_with_splitlines() -> None:
    text = "a\u2028b\x85c\x0bd"
    assert text.splitlines() != [text]
    assert list(decode_lines(io.BytesIO(text.encode()), "text")) == [text]
