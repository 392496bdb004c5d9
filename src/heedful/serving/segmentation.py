"""A text as its sentences and what stands between them: a translation keeps the lines and the tags of its source."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from typing import NamedTuple

from heedful.text.sentences import CLOSES, ENDS_AT_ONCE, split_sentences

_LINE = re.compile(r"[^\r\n]+|[\r\n]+")
_LINE_END = re.compile(r"[ \t]*[\r\n]\s*")  # in HTML a space like others
_RAW = ("script", "style")  # elements whose text is written without entities
_NOT_TRANSLATED = (*_RAW, "code", "pre", "textarea")  # elements whose text is no language
Cut = Callable[[str], list[str]]  # a sentence into parts that the model takes


class Layout(NamedTuple):
    parts: list[str | int | None]  # what stays as it is; the number of a sentence; None: a border without a space
    sentences: list[str]

    def filled(self, translations: Sequence[str]) -> str:
        text: list[str] = []
        for part in self.parts:
            if part is None:  # where the source needs no space after 。, the translation may
                text.append("" if text and text[-1].endswith(tuple(ENDS_AT_ONCE + CLOSES)) else " ")
            else:
                text.append(part if isinstance(part, str) else translations[part])
        return "".join(text)


def text_layout(text: str, cut: Cut) -> Layout:
    layout = Layout([], [])
    _add_text(layout, text, cut)
    return layout


def html_layout(text: str, cut: Cut) -> Layout:
    """Text between tags, each by itself: a sentence with a word in bold is three texts."""
    reader = _Reader(cut)
    reader.feed(text)
    reader.close()
    return reader.layout


def _add_text(layout: Layout, text: str, cut: Cut) -> None:
    """Spaces at both ends of a sentence, and line ends, stay as they are."""
    for line in _LINE.findall(text):
        for number, sentence in enumerate(split_sentences(line)):
            body = sentence.strip()
            if number and body and isinstance(layout.parts[-1], str) and not layout.parts[-1]:
                layout.parts[-1] = None
            before, _, after = sentence.partition(body) if body else (sentence, "", "")
            layout.parts.append(before)
            for place, part in enumerate(cut(body) if body else []):
                layout.parts.append(" " if place else "")
                layout.parts.append(len(layout.sentences))
                layout.sentences.append(part)
            layout.parts.append(after)


class _Reader(HTMLParser):
    """Tags, comments and the like stay (end tags in small letters); text becomes sentences."""

    def __init__(self, cut: Cut) -> None:
        super().__init__(convert_charrefs=True)
        self.layout, self.cut = Layout([], []), cut
        self.text: list[str] = []  # since the last tag; it comes in parts
        self.verbatim: list[str] = []  # open elements that are not translated

    def close(self) -> None:
        super().close()
        self._markup("")

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._markup(self.get_starttag_text() or "")
        if tag in _NOT_TRANSLATED:
            self.verbatim.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._markup(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self._markup(f"</{tag}>")
        if tag in self.verbatim:
            self.verbatim.remove(tag)

    def handle_comment(self, data: str) -> None:
        self._markup(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self._markup(f"<!{decl}>")

    def handle_pi(self, data: str) -> None:
        self._markup(f"<?{data}>")

    def unknown_decl(self, data: str) -> None:
        self._markup(f"<![{data}]]>" if data.startswith("CDATA[") else f"<![{data}]>")

    def _markup(self, markup: str) -> None:
        text, self.text = "".join(self.text), []
        if self.verbatim:
            self.layout.parts.append(text if self.verbatim[-1] in _RAW else html.escape(text, quote=False))
        else:
            _add_text(self.layout, _LINE_END.sub(" ", text), self.cut)
        self.layout.parts.append(markup)
