"""Splitting files into parts and reassembling them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.serving.file_formats import EXTENSIONS, read_document
from heedful.serving.html_chunking import split_html
from heedful.serving.html_tokens import tokenize_html
from heedful.serving.requests import RequestError


def shouted(text: str, extension: str, most: int = 1_000) -> str:
    """Translate to capitals; tags and entities stay."""
    document = read_document(text, extension, most)
    return document.filled([one.upper() if "<" not in one and "&" not in one else one for one in document.texts()])


def test_plain_text_keeps_its_lines_and_spaces() -> None:
    assert shouted("  a b. \r\n\r\n\tc\n", ".txt") == "  A B. \r\n\r\n\tC\n"
    assert read_document("one\ntwo\n", ".txt", 1_000).texts() == ["one", "two"]


def test_long_line_is_split_between_sentences() -> None:
    line = "One is here. Two is there. Three is gone."
    assert read_document(line, ".txt", 20).texts() == ["One is here.", "Two is there.", "Three is gone."]
    assert read_document(line, ".txt", 100).texts() == [line]


SRT = """1
00:00:01,000 --> 00:00:02,500 X1:1
the old man is
looking for his red hat

2
00:00:03.000 --> 00:00:04.000
- why?
- because 3 < 4 & so on.

3
00:00:05,000 --> 00:00:06,000
{\\an8}<i>far</i> away

4
00:00:07,000 --> 00:00:08,000

5
00:00:09,000 --> 00:00:10,000
no blank line at the end"""


def test_subtitles_keep_numbers_timings_and_blank_lines() -> None:
    document = read_document(SRT, ".srt", 1_000)
    assert document.texts() == [
        "the old man is looking for his red hat",
        "why?",
        "because 3 &lt; 4 &amp; so on.",
        "<i>far</i> away",
        "no blank line at the end",
    ]
    found = document.filled(
        ["DER ALTE MANN SUCHT HUT", "WARUM?", "WEIL 3 &lt; 4 &amp; SO.", "<i>WEIT</i> WEG", "KEINE LEERE ZEILE"]
    )
    assert found == (
        SRT.replace("the old man is\nlooking for his red hat", "DER ALTE MANN\nSUCHT HUT")
        .replace("why?", "WARUM?")
        .replace("because 3 < 4 & so on.", "WEIL 3 < 4 & SO.")
        .replace("<i>far</i> away", "<i>WEIT</i> WEG")
        .replace("no blank line at the end", "KEINE LEERE ZEILE")
    )


def test_subtitles_with_windows_line_ends() -> None:
    text = "1\r\n00:00:01,000 --> 00:00:02,000\r\na b\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\nc\r\n"
    assert shouted(text, ".srt") == text.replace("a b", "A B").replace("c\r", "C\r")


def test_cues_without_a_blank_line_between_them() -> None:
    """A line of digits directly before a timing is a number, not text."""
    text = "1\n00:00:01,000 --> 00:00:02,000\na\n2\n00:00:03,000 --> 00:00:04,000\nb\n7 c\n00:05 --> 00:06\nd"
    document = read_document(text, ".srt", 1_000)
    assert document.texts() == ["a", "b 7 c", "d"]
    assert shouted("1\n00:01 --> 00:02\na\n2\n00:03 --> 00:04\nb", ".srt") == (
        "1\n00:01 --> 00:02\nA\n2\n00:03 --> 00:04\nB"
    )


def test_a_blank_line_inside_a_cue() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\na\n\nb\nc\n\n\n2\n00:00:03,000 --> 00:00:04,000\nd\n"
    document = read_document(text, ".srt", 1_000)
    assert document.texts() == ["a", "b c", "d"]
    assert document.filled(["A", "B C", "D"]) == text.replace("a", "A").replace("b\nc", "B\nC").replace("d", "D")


@pytest.mark.parametrize("timing", ["00:00:01 --> 00:00:02", "00:01.500 --> 00:02.500", "0:01 --> 1:00:02,5"])
def test_short_timings(timing: str) -> None:
    assert shouted(f"1\n{timing}\na\n", ".srt") == f"1\n{timing}\nA\n"


@pytest.mark.parametrize("text", ["", "no timing\n", "1\n\nText\n", "1\n00:00:01 -> 00:00:02\na\n"])
def test_a_file_without_timings_is_refused(text: str) -> None:
    with pytest.raises(RequestError, match="Invalid request: the file has no subtitles") as caught:
        read_document(text, ".srt", 1_000)
    assert caught.value.status == 400


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_are_kept(end: str) -> None:
    text = end.join(["1", "00:01 --> 00:02", "a", "b", "", "2", "00:03 --> 00:04", "c\u2028d", ""])
    assert shouted(text, ".srt") == text.replace("a", "A").replace("b", "B").replace("c\u2028d", "C D")


@pytest.mark.parametrize("translation", ["", "x", "one-very-long-word-that-cannot-be-broken and more of it"])
def test_cue_keeps_its_number_of_lines(translation: str) -> None:
    document = read_document("00:00:01,000 --> 00:00:02,000\na\nb\n", ".srt", 1_000)
    timing, *lines = document.filled([translation]).split("\n")
    assert timing == "00:00:01,000 --> 00:00:02,000"
    assert len(lines) <= 3
    assert " ".join(lines).split() == translation.split()


PAGE = """<!DOCTYPE html>
<html><head><title>A &amp; b</title><style>p > b {}</style>
<script>if (a < b) { "</p>" }</script></head>
<body class="x > y"><!-- not <p>text</p> --><h1>Head</h1>
<p>One <b>two</b> three.<br>Four</p><pre>as is</pre><ul><li>five<li>6</ul><b><p>seven</p></b></body></html>
"""


def test_html_is_split_between_blocks() -> None:
    assert [text.strip() for text, is_text in split_html(PAGE) if is_text] == [
        *("A &amp; b", "Head", "One <b>two</b> three.<br>Four", "five", "seven"),
    ]
    assert read_document(PAGE, ".html", 1_000).is_html


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("<p>a <i>b <b>c</i> d</b> e", ["a <i>b ", "c</i> d", " e"]),  # the tags that overlap are between the texts
        ("<p>a <!-- b", ["a <!-- b"]),  # an unclosed comment or tag is text
        ("<p>a<script>b", ["a<script>b"]),
        ("<p>a<p b", ["a<p b"]),
        ("a < b <p>c", ["a < b ", "c"]),
        ("<p title='x > y'>a", ["a"]),
        ("<p x=it's>a</p>it's", ["a", "it's"]),
        ("<P>a<BR>b</P><SCRIPT>c</ScRiPt >d", ["a<BR>b", "<SCRIPT>c</ScRiPt >d"]),
        ("<p>see <img src=x> here</p>", ["see <img src=x> here"]),
        ("<p>&nbsp;</p><p>&eacute;</p><p>12</p>", ["&eacute;"]),
    ],
)
def test_html_is_read_like_a_browser(page: str, texts: list[str]) -> None:
    assert [text for text, is_text in split_html(page) if is_text] == texts


_TAGS = ("<p>", "</p>", "<b>", "</b>", "<", ">", "</", "<!--", "-->", "<!x", "<script>", "</script>", '="', "'")
_OTHERS = ("a", " ", "&amp;", "\n", "\r\n", "1\n00:00:01,000 --> 00:00:02,000\n", "- a", "{\\an8}", "\u2028", ". B")
_MARKUP = st.lists(st.sampled_from(_TAGS + _OTHERS))


def _has_unclosed_quote(page: str) -> bool:
    return any(token.repaired for token in tokenize_html(page))


@given(_MARKUP.map("".join), st.sampled_from(EXTENSIONS))
def test_whatever_is_not_text_stays(text: str, extension: str) -> None:
    if extension == ".srt":
        text = f"1\n00:01 --> 00:02\n{text}"
    document = read_document(text, extension, 20)
    if extension == ".html" and _has_unclosed_quote(text):
        return
    assert "".join(document.parts) == text
    if extension != ".srt":
        assert document.filled(document.texts()) == text


def test_a_file_with_too_many_tags_is_rejected_before_it_is_parsed() -> None:
    with pytest.raises(RequestError, match="has 300,000 tags; the limit is 100,000"):
        read_document("<b>" * 300_000, ".html", 1_000)


@pytest.mark.parametrize("part", ["<!--", "<a b='", '<a b="', "<script>", "<b>", "</", "<!", "<pre></pre", "<p =", "&"])
def test_html_splitting_takes_linear_time(part: str) -> None:
    """A quadratic scanner would need minutes for a megabyte."""
    began = time.process_time()
    for _ in split_html(part * (1_000_000 // len(part))):
        pass
    assert time.process_time() - began < 20


def test_subtitles_take_linear_time() -> None:
    """A cue that cannot be balanced, and a cue of very many lines: each took seconds once.

    The bound is generous.
    """
    timing = "1\n00:00:01,000 --> 00:00:02,000\n"
    unbalanced = timing + "a " * 1_600 + "b" * 3_300 + " \n" + "a " * 1_600 + "\n\n"
    many_lines = timing + "a\n" * 400_000
    began = time.process_time()
    for text in (unbalanced * 3, many_lines):
        document = read_document(text, ".srt", 10_000)
        document.filled(document.texts())
    assert time.process_time() - began < 5


def test_subtitles_are_wrapped_to_the_narrowest_width() -> None:
    text = "1\n00:00:01,000 --> 00:00:02,000\none two three\nfour\n"
    document = read_document(text, ".srt", 100)
    assert document.filled(["aa bb cc dd"]).endswith("\naa bb\ncc dd\n")
    assert document.filled(["a" * 50]).endswith("\n" + "a" * 50 + "\n")
    assert document.filled([""]).endswith("00:00:02,000\n\n")
