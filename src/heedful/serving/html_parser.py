"""HTML parsing: runs of text to translate, and the markup around them.

A block element ends a run. Inline elements are part of their run, so that sentences stay whole; inline_markup.py
restores them in the translation.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

from heedful.serving.html_runs import html_runs, is_object, is_visible, pairs, words_of
from heedful.serving.html_tokens import Token
from heedful.serving.inline_markup import Node, Run
from heedful.text.sentence_splitting import CLOSES, ENDS, ENDS_AT_ONCE

# Line ends and tabs are white space like any other. Possessive, and never matched from inside a run: linear time.
_WHITE_SPACE = re.compile(r"(?<! ) *+[\r\n\t]\s*+")
_LONGEST_NAME = 60  # maximum characters of an untranslated span that the model reads as part of its sentence
_SENTENCE_BEFORE = re.compile(rf"[{re.escape(ENDS)}][{re.escape(CLOSES)}]*\Z")
_SENTENCE_END = re.compile(f"[{re.escape(ENDS + ENDS_AT_ONCE)}]")


def parse_html(text: str) -> list[str | Run]:
    """Return markup (str) and runs of text with their inline elements, in order."""
    parts: list[str | Run] = []
    for group in html_runs(text):
        if group.is_run:
            parts.append(_run(group.tokens))
        else:
            parts.append(group.written())
    return parts


def _run(tokens: list[Token]) -> Run:
    builder = _Builder(pairs(tokens))
    for at, token in enumerate(tokens):
        builder.add(at, token)
    return Run("".join(builder.text), builder.nodes)


@dataclass
class _Builder:
    ends: dict[int, int]  # of the elements
    text: list[str] = field(default_factory=list)
    length: int = 0
    nodes: list[Node] = field(default_factory=list)
    open: list[tuple[Node, int]] = field(default_factory=list)
    is_behind_comment: bool = False
    is_behind_object: bool = False  # an image, or untranslated text that the model does not read
    is_behind_name: bool = False  # in the same word

    def add(self, at: int, token: Token) -> None:
        if token.kind in ("text", "raw"):
            self._add(html.unescape(token.text).replace("\0", "\ufffd"))
        elif at in self.ends:
            self.open.append((Node(token.written, "", self.length), self.ends[at]))
        elif self.open and self.open[-1][1] == at:
            node, _ = self.open.pop()
            node.close, node.end = token.written, self.length
            self._nodes().append(node)
        else:
            self._mark(token)

    def _add(self, text: str) -> None:
        """Add a text, after a space where its first word would be joined with the one before."""
        if self.is_behind_comment and text[0].isalpha() and not text[0].islower() and self._is_behind_sentence():
            text = f" {text}"  # otherwise "dog.<!-- -->The" would become one word
        elif self.is_behind_object and not text[0].isspace() and self._last().strip():
            text = f" {text}"
        self.is_behind_comment = self.is_behind_object = False
        self.is_behind_name = self.is_behind_name and not any(map(str.isspace, text))
        self.text.append(_WHITE_SPACE.sub(" ", text))
        self.length += len(self.text[-1])

    def _last(self) -> str:
        return self.text[-1][-1:] if self.text else ""

    def _is_behind_sentence(self) -> bool:
        return _SENTENCE_BEFORE.search("".join(self.text[-2:])[-10:]) is not None

    def _mark(self, token: Token) -> None:
        """Add what stays as it is: a comment, an empty or untranslated element, an unpaired tag."""
        if token.name == "br" and self._last().strip():
            self._add(" ")  # keeps the words before and after it apart
        words = words_of(token)
        is_name = 0 < len(words) <= _LONGEST_NAME
        if is_name and (self.is_behind_name or self.is_behind_object) and self._last().strip():
            self._add(" ")  # no two names in one word: inline_markup.py replaces whole words
        node = Node(token.written, "", self.length, untouched=True, is_visible=is_visible(token))
        if is_name:
            node.name = _SENTENCE_END.sub(",", words)  # a sentence must not end inside it
            self._add(node.name)
        node.end = self.length
        self.is_behind_comment = token.kind == "comment"
        self.is_behind_object = (self.is_behind_object or is_object(token)) and not is_name
        self.is_behind_name = self.is_behind_name or is_name
        self._nodes().append(node)

    def _nodes(self) -> list[Node]:
        return self.open[-1][0].children if self.open else self.nodes
