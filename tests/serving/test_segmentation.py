"""Texts as sentences, and back: what is not translated stays as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.serving.segmentation import html_layout, text_layout


def whole(sentence: str) -> list[str]:
    return [sentence]


def halves(sentence: str) -> list[str]:
    return [sentence[: len(sentence) // 2], sentence[len(sentence) // 2 :]]


@given(st.text(st.sampled_from(list("ab. !?\n\r\t\u00a0中。\u2028")), max_size=60))
def test_a_text_of_its_own_sentences_is_the_text(text: str) -> None:
    layout = text_layout(text, whole)
    assert layout.filled(layout.sentences) == text
    assert all(sentence == sentence.strip() != "" for sentence in layout.sentences)


def test_sentences_lines_and_spaces() -> None:
    layout = text_layout("  One here. Two!\r\n\r\n\tThree \n", whole)
    assert layout.sentences == ["One here.", "Two!", "Three"]
    assert layout.filled(["1.", "2!", "3"]) == "  1. 2!\r\n\r\n\t3 \n"


def test_a_sentence_that_is_cut_is_put_together_with_spaces() -> None:
    layout = text_layout("abcd. ", halves)
    assert layout.sentences == ["ab", "cd."]
    assert layout.filled(["x", "y"]) == "x y "


def test_nothing_is_no_sentence() -> None:
    assert text_layout("", whole).sentences == []
    assert text_layout(" \n ", whole).filled([]) == " \n "


def test_where_the_source_needs_no_space_the_translation_has_one() -> None:
    layout = text_layout("你好。今天很好。", whole)
    assert layout.filled(["Hello.", "Today is fine."]) == "Hello. Today is fine."
    assert layout.filled(["こんにちは。", "今日はいい。"]) == "こんにちは。今日はいい。"


HTML = [
    ("<p>One\n  two.\n</p>", ["One two."], "<p>1 </p>"),
    ("<![CDATA[x]]>One", ["One"], "<![CDATA[x]]>1"),
    ("<p>One. <b>Two</b></p>", ["One.", "Two"], "<p>1 <b>2</b></p>"),
    ('<a href="x>y">One</a>', ["One"], '<a href="x>y">1</a>'),
    ("a &amp; b &lt; c", ["a & b < c"], "1"),
    ("<!DOCTYPE html><!-- no --><br/>One<br>", ["One"], "<!DOCTYPE html><!-- no --><br/>1<br>"),
    ("<script>if (a<b) x()</script>One", ["One"], "<script>if (a<b) x()</script>1"),
    ("<pre>a &lt; b</pre><code>c</code>One", ["One"], "<pre>a &lt; b</pre><code>c</code>1"),
    ("<style>p > a {}</style>", [], "<style>p > a {}</style>"),
    ("<p>One", ["One"], "<p>1"),
    ("One < two", ["One < two"], "1"),
    ("<?php x ?>One", ["One"], "<?php x ?>1"),
]


@pytest.mark.parametrize(("text", "sentences", "filled"), HTML, ids=[text for text, *_ in HTML])
def test_tags_stay_as_they_are(text: str, sentences: list[str], filled: str) -> None:
    layout = html_layout(text, whole)
    assert layout.sentences == sentences
    assert layout.filled([str(number) for number in range(1, 9)]) == filled


@given(st.text(st.sampled_from(list("<>/!-?&;a\"'= p[]")), max_size=40))
def test_any_html_is_read(text: str) -> None:
    layout = html_layout(text, whole)
    layout.filled(layout.sentences)
