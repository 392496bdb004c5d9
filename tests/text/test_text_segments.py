"""Segmentation and reassembly: nothing is lost, and untranslated text is unchanged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.text_segments import SegmentedText, by_rank, segment_text


def encode(text: str) -> list[int]:
    """A token per character, and the end symbol."""
    return [*map(ord, text.strip()), 3]


def segmented(text: str, longest: int = 10**6, sentence_per_line: bool = True) -> SegmentedText:
    return segment_text(text, encode, longest, sentence_per_line)


def texts(found: SegmentedText) -> list[str]:
    return [segment.text for segment in found.segments]


TEXT = st.text(st.sampled_from(list("ab. !?\n\r\t\u00a0中。\u2028")), max_size=60)


@given(TEXT, st.booleans())
def test_a_text_of_its_own_segments_is_the_text(text: str, sentence_per_line: bool) -> None:
    found = segmented(text, sentence_per_line=sentence_per_line)
    assert found.join(texts(found)) == text
    assert all(one == one.strip() != "" for one in texts(found))
    assert len(found.separators) == len(found.segments) + 1


@given(TEXT, st.integers(2, 12), st.booleans())
def test_every_segment_fits_and_has_its_place_and_its_tokens(text: str, longest: int, sentence_per_line: bool) -> None:
    found = segmented(text, longest, sentence_per_line)
    for segment in found.segments:
        assert len(segment.ids) <= longest
        assert segment.ids == encode(segment.text)
        assert text[segment.start : segment.start + len(segment.text)] == segment.text
    assert "".join("".join(texts(found)).split()) == "".join(text.split())


def test_sentences_lines_and_spaces() -> None:
    found = segmented("  One here. Two!\r\n\r\n\tThree \n")
    assert texts(found) == ["One here.", "Two!", "Three"]
    assert found.join(["1.", "2!", "3"]) == "  1. 2!\r\n\r\n\t3 \n"
    assert found.parts == 0


def test_lines_of_several_sentences_stay_whole_where_the_model_was_trained_on_them() -> None:
    assert texts(segmented("One.  Two.\nThree. Four.", sentence_per_line=False)) == ["One.  Two.", "Three. Four."]


@pytest.mark.parametrize("sentence_per_line", [True, False])
def test_cells_between_tabs_are_segments_of_their_own(sentence_per_line: bool) -> None:
    found = segmented("\tred \t\t a dog\tB\t", sentence_per_line=sentence_per_line)
    assert texts(found) == ["red", "a dog", "B"]
    assert found.join(["1", "2", "3"]) == "\t1 \t\t 2\t3\t"


@pytest.mark.parametrize("line_break", ["\v", "\f", "\x85", "\u2028", "\u2029"])
def test_unusual_line_breaks_end_a_sentence(line_break: str) -> None:
    """Without one, the model would translate one of the two sentences."""
    found = segmented(f"One here{line_break}Two here")
    assert texts(found) == ["One here", "Two here"]
    assert found.join(["1", "2"]) == f"1{line_break}2"


def test_a_sentence_that_is_too_long_is_cut_and_counted() -> None:
    found = segmented("aa bb  cc. Dd.", longest=6)
    assert texts(found) == ["aa bb", "cc.", "Dd."]
    assert found.parts == 2
    assert found.join(["1", "2", "3"]) == "1  2 3"


def test_a_word_that_is_too_long_is_cut_and_put_together_with_a_space() -> None:
    found = segmented("abcdef", longest=4)
    assert texts(found) == ["abc", "def"]
    assert found.join(["x", "y"]) == "x y"


@pytest.mark.parametrize("text", ["", " \n "])
def test_empty_text_has_no_segments(text: str) -> None:
    assert segmented(text).segments == []
    assert segmented(text).join([]) == text


def test_where_the_source_needs_no_space_the_translation_has_one() -> None:
    found = segmented("你好。今天很好。")
    assert found.join(["Hello.", "Today is fine."]) == "Hello. Today is fine."
    assert found.join(["こんにちは。", "今日はいい。"]) == "こんにちは。今日はいい。"


def test_ranks() -> None:
    assert by_rank([["a", "b", "c"], ["x"], ["p", "q"]]) == [["a", "x", "p"], ["b", "x", "q"], ["c", "x", "q"]]
    assert by_rank([]) == []
