"""No text makes reading it slow: time grows with the length, not with its square."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from heedful.serving.file_formats import read_document
from heedful.serving.html_parser import parse_html
from heedful.text.text_segments import segment_text

PARTS = (
    *(" ", "\t", "\n", " \n", "\r", ".", "。", ")", ". ", ".)", "-", "1", "1:", "00:00:01,0", "{\\", "'", "&", "\0"),
    *(
        "<",
        "<!--",
        "<?",
        "<b ",
        "<b>",
        "</b",
        "<i",
        "<b><i>",
        "</i>",
        "<code>",
        "<code>a</code>",
        "<rt>",
        '<a b="><',
        "<a b='>",
        '<a" c=">',
        "<font ",
        "<p>",
        "</p>",
        "</html>",
        "<!--x-->",
        "<svg>",
        "<b><code></b>",
        "<b>a<i>b</b>c</i>",
        ".<!---->A",
    ),
)


def _segment(text: str) -> None:
    segment_text(text, lambda part: [0] * (1 + len(part)), 100, True)


READERS: dict[str, Callable[[str], object]] = {
    "html": parse_html,
    "document": lambda text: parse_html(f"<html>{text}"),
    "text": _segment,
    "srt": lambda text: read_document(f"1\n00:01 --> 00:02\n{text}", ".srt", 10_000).texts(),
    "html file": lambda text: read_document(text, ".html", 10_000).texts(),
}


def seconds(read: Callable[[str], object], text: str) -> float:
    """Of this process alone, and the best of three: the machine may be busy."""
    found = []
    for _ in range(3):
        began = time.process_time()
        read(text)
        found.append(time.process_time() - began)
    return min(found)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("reader", READERS)
def test_time_grows_with_the_length(reader: str, part: str) -> None:
    """Eight times the text: 8 times the time if it is linear, 64 times if it is quadratic.

    Short times are noise.
    """
    short, long = (f"a{part * (size // len(part))}b" for size in (2_500, 20_000))
    read = READERS[reader]
    assert (taken := seconds(read, long)) < 0.05 or taken < 24 * seconds(read, short)
