"""Inline elements in a translation: `his <b>red</b> hat` is translated as one text, then <b> goes where "red" went.

Words of the translation are aligned with words of the source. An element wraps the contiguous words that best match its
own; an empty element, such as an image, stands where the fewest words change sides.
"""

from __future__ import annotations

import html
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Span = tuple[int, int]
FAINT = 0.01  # a word that attends no more than this to a source word does not come from it


@dataclass
class Node:
    """An inline element, or markup that is kept whole, at `start` to `end` of its run's text."""

    open: str
    close: str
    start: int
    end: int = 0
    children: list[Node] = field(default_factory=list)
    untouched: bool = False  # `open` is all of it, and stands for the words between `start` and `end`


@dataclass
class Run:
    """Text between block elements, and the inline nodes in it."""

    text: str
    nodes: list[Node]

    def borders(self) -> list[int]:
        """Offsets at which an element starts or ends, sorted."""
        stack, found = list(self.nodes), set[int]()
        while stack:
            node = stack.pop()
            found |= {node.start, node.end}
            stack += node.children
        return sorted(found)


class Word(NamedTuple):
    """A word of the translation: its offsets, and how much it attends to each word of its segment's source."""

    start: int
    end: int
    weights: Sequence[float]
    first: int  # the number of the source word that weights[0] is for

    @property
    def aligned(self) -> int:
        return self.first + max(range(len(self.weights)), key=self.weights.__getitem__)


class AlignedText(NamedTuple):
    """A translation with its words, and the words of its source."""

    text: str
    words: list[Word]
    source_words: list[Span]  # offsets in the run's text


def restore(run: Run, translation: AlignedText) -> str:
    """HTML of the translation with the run's inline nodes."""
    return _Restorer(translation).render(run.nodes, 0, len(run.text), (0, len(translation.words)), True)


class _Restorer:
    def __init__(self, translation: AlignedText) -> None:
        self.text, self.words, self.source_words = translation
        self.aligned = [word.aligned for word in self.words]
        self.middles = [(start + end) / 2 for start, end in self.source_words]

    def render(self, nodes: list[Node], start: int, end: int, span: Span, is_run: bool = False) -> str:
        """The words of `span` with these nodes, which are all in start to end of the source, in their places."""
        placed = self._placed(nodes, self._source(start, end), span)
        position = 0 if is_run else self._offset(span[0], span)
        last = len(self.text) if is_run else self._end(span)
        written = []
        for (low, high), node in placed:
            at_edge = self._at_edge(node, low) if is_run and low == high else None
            before = max(position, self._offset(low, span) if at_edge is None else at_edge)
            written.append(escape(self.text[position:before]))
            written.append(self._rendered(node, (low, high), span))
            position = max(before, self._end((low, high))) if high > low else before
        return "".join(written) + escape(self.text[position:last])

    def _rendered(self, node: Node, own: Span, span: Span) -> str:
        if not node.untouched:
            return node.open + self.render(node.children, node.start, node.end, own) + node.close
        if own[0] == own[1] and node.end > node.start and span[1] > span[0]:  # it is a word more
            return f"{node.open} " if own[0] < span[1] else f" {node.open}"
        return node.open

    def _placed(self, nodes: list[Node], source: Span, span: Span) -> list[tuple[Span, Node]]:
        """Disjoint spans of words for nodes with text, then places between them for the others; sorted."""
        owner: list[int | None] = [None] * (span[1] - span[0])  # of every word
        places: list[Span | None] = [None] * len(nodes)
        own = [self._source(node.start, node.end) for node in nodes]
        for number, node in enumerate(nodes):
            if place := self._span(own[number], source, span, owner, not node.untouched):
                owner[place[0] - span[0] : place[1] - span[0]] = [number] * (place[1] - place[0])
                places[number] = place
        found = [
            (place or self._gap(source_words[0], span, owner), number, node)
            for number, (place, source_words, node) in enumerate(zip(places, own, nodes, strict=True))
        ]
        return [(place, node) for place, _, node in sorted(found, key=lambda one: one[:2])]

    def _source(self, start: int, end: int) -> Span:
        """Source words in a stretch of the source text: those whose middle is in it, else the one it is part of."""
        low, high = bisect_left(self.middles, start), bisect_left(self.middles, end)
        if low == high and end > start:
            for at in (low - 1, low):
                if 0 <= at < len(self.source_words) and self._overlaps(self.source_words[at], (start, end)):
                    return at, at + 1
        return low, high

    @staticmethod
    def _overlaps(one: Span, other: Span) -> bool:
        return one[0] < other[1] and other[0] < one[1]

    def _span(self, own: Span, source: Span, span: Span, owner: list[int | None], always: bool) -> Span | None:
        """The contiguous free words of `span` that best match the source words `own`, if there are any."""
        if own[0] == own[1]:
            return None
        if own == source and span[0] < span[1] and not any(one is not None for one in owner):
            return span
        low, high = self._window(own, span)
        best, found, total, start = 0.0, None, 0.0, low
        for at in range(low, high):
            if owner[at - span[0]] is not None:
                total, start = 0.0, at + 1
                continue
            # The attention decides between two that match equally well: "has" and "bought", of "hat … gekauft".
            mass = self._mass(own, at)
            total += 1 + 0.1 * mass if own[0] <= self.aligned[at] < own[1] and mass > FAINT else -1
            if total > best:
                best, found = total, (start, at + 1)
            if total < 0:
                total, start = 0.0, at + 1
        if found is None and always:
            return self._most_alike(own, [at for at in range(low, high) if owner[at - span[0]] is None])
        return found

    def _most_alike(self, own: Span, candidates: list[int]) -> Span | None:
        """The word that attends most to the source words, though it attends more to others."""
        best = max(candidates, key=lambda at: self._mass(own, at), default=None)
        return None if best is None or self._mass(own, best) <= 0 else (best, best + 1)

    def _mass(self, own: Span, at: int) -> float:
        word = self.words[at]
        return sum(word.weights[max(0, own[0] - word.first) : max(0, own[1] - word.first)])

    def _window(self, own: Span, span: Span) -> Span:
        """Words of `span` from segments that have a source word in `own`: a long text takes no longer per element."""
        low = bisect_left(self.words, own[0], *span, key=lambda word: word.first + len(word.weights) - 1)
        high = bisect_left(self.words, own[1], *span, key=lambda word: word.first)
        return low, max(low, high)

    def _gap(self, source: int, span: Span, owner: list[int | None]) -> Span:
        """Where the fewest words change sides of an empty element that stands before a source word."""
        low, high = self._window((source - 1, source + 1), span)
        changed = sum(self.aligned[at] < source for at in range(low, high))
        best, gap = changed, low
        for at in range(low, high):
            changed += 1 if self.aligned[at] >= source else -1
            if changed < best:
                best, gap = changed, at + 1
        owners = [-1, *owner, -2]  # no element is there
        while owners[gap - span[0]] is not None and owners[gap - span[0]] == owners[gap - span[0] + 1]:
            gap += 1  # out of an element that it is not in
        return gap, gap

    def _at_edge(self, node: Node, gap: int) -> int | None:
        """The exact place of a node in the white space around the run, which the translation keeps."""
        if not self.source_words or not self.words:
            return None
        if gap == 0 and node.start <= self.source_words[0][0]:
            return min(node.start, self.words[0].start)
        if gap == len(self.words) and node.start >= self.source_words[-1][1]:
            return min(self.words[-1].end + node.start - self.source_words[-1][1], len(self.text))
        return None

    def _offset(self, at: int, span: Span) -> int:
        """Where the text of word `at` starts; behind the last of the span, where that ends."""
        if at < span[1]:
            return self.words[at].start
        return self.words[at - 1].end if at else 0

    def _end(self, span: Span) -> int:
        return self.words[span[1] - 1].end if span[1] > span[0] else self._offset(span[0], span)


def escape(text: str) -> str:
    return html.escape(text, quote=False).replace("\u00a0", "&nbsp;")
