"""Inline markup transfer: translate `his <b>red</b> hat` as one text, then place <b>.

Here <b> goes around the translation of "red". Words of the translation are aligned with words of the source. An element
wraps the contiguous words that best match its own. An empty element, such as an image, goes where the fewest words
change sides.
"""

from __future__ import annotations

import html
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

Span = tuple[int, int]
FAINT = 0.01  # attention weight below which two words are not aligned


@dataclass
class Node:
    """An inline element or untranslated markup that spans text[start:end] of its run."""

    open: str
    close: str
    start: int
    end: int = 0
    children: list[Node] = field(default_factory=list)
    untouched: bool = False  # `open` is the whole markup, including the words between `start` and `end`
    name: str = ""  # these words, as the model reads them
    is_visible: bool = False  # untouched, and has text


@dataclass
class Run:
    """Text between block elements, and its inline nodes."""

    text: str
    nodes: list[Node]

    def borders(self) -> list[int]:
        """Return the sorted offsets at which an element starts or ends."""
        stack, found = list(self.nodes), set[int]()
        while stack:
            node = stack.pop()
            found |= {node.start, node.end}
            stack += node.children
        return sorted(found)


class Word(NamedTuple):
    """A word of the translation: its offsets and its attention weights to source words."""

    start: int
    end: int
    weights: Sequence[float]
    first: int  # index of the source word of weights[0]

    @property
    def aligned(self) -> int:
        return self.first + max(range(len(self.weights)), key=self.weights.__getitem__)


class AlignedText(NamedTuple):
    """A translation with its words, and the words of its source."""

    text: str
    words: list[Word]
    source_words: list[Span]  # offsets in the run's text


def restore(run: Run, translation: AlignedText) -> str:
    """Return the translation as HTML, with the run's inline nodes."""
    return _Restorer(run.text, translation).render(run.nodes, 0, len(run.text), (0, len(translation.words)), True)


class _Restorer:
    def __init__(self, source: str, translation: AlignedText) -> None:
        self.source = source
        self.text, self.words, self.source_words = translation
        self.aligned = [word.aligned for word in self.words]
        self.middles = [(start + end) / 2 for start, end in self.source_words]

    def render(self, nodes: list[Node], start: int, end: int, span: Span, is_run: bool = False) -> str:
        """Return the words of `span` as HTML, with the nodes of source text[start:end] in place."""
        placed = self._placed(nodes, self._source(start, end), span)
        position = 0 if is_run else self._offset(span[0], span)
        last = len(self.text) if is_run else self._end(span)
        written = []
        for (low, high), node in placed:
            at_edge = self._at_edge(node, low) if is_run and low == high else None
            before = max(position, self._start(node, (low, high), span) if at_edge is None else at_edge)
            written.append(escape(self.text[position:before]))
            is_between = node.is_visible and low == high
            written.append(self._separated(node, before) if is_between else self._rendered(node, (low, high), span))
            position = max(before, self._end((low, high))) if high > low else before
        return "".join(written) + escape(self.text[position:last])

    def _rendered(self, node: Node, own: Span, span: Span) -> str:
        if not node.untouched:
            return node.open + self.render(node.children, node.start, node.end, own) + node.close
        if not node.name or own[0] == own[1]:
            return node.open
        # The rest of the same word, such as a bracket, is kept.
        before, name, after = self.text[self._offset(own[0], span) : self._end(own)].partition(node.name)
        return escape(before) + node.open + escape(after) if name else node.open

    def _separated(self, node: Node, at: int) -> str:
        """Return an untouched element between words, with the space around it."""
        before, after = self.text[max(0, at - 1) : at], self.text[at : at + 1]
        left, right = self.source[max(0, node.start - 1) : node.start], self.source[node.end : node.end + 1]
        return (
            " " * bool(before.strip() and not left.strip())
            + node.open
            + " " * bool(after.strip() and not right.strip())
        )

    def _placed(self, nodes: list[Node], source: Span, span: Span) -> list[tuple[Span, Node]]:
        """Return disjoint word spans for nodes with text and gaps for the others, sorted."""
        owner: list[int | None] = [None] * (span[1] - span[0])  # owning node per word
        places: list[Span | None] = [None] * len(nodes)
        own = [self._source(node.start, node.end) for node in nodes]
        for number, node in enumerate(nodes):
            place = self._copy(node, own[number], span, owner)
            if place is None:
                place = self._span(own[number], source, span, owner, not node.untouched)
                if place and node.untouched and own[number] != source:
                    place = self._narrowed(own[number], place)
            if place:
                owner[place[0] - span[0] : place[1] - span[0]] = [number] * (place[1] - place[0])
                places[number] = place
        found = [
            (place or self._gap(source_words[0], span, owner), number, node)
            for number, (place, source_words, node) in enumerate(zip(places, own, nodes, strict=True))
        ]
        return [(place, node) for place, _, node in sorted(found, key=lambda one: one[:2])]

    def _source(self, start: int, end: int) -> Span:
        """Return the source words whose middle is in text[start:end], or else the word around it."""
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
        """Return the contiguous free words of `span` that best match `own`, or None."""
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
            # Attention breaks ties between equal matches, such as "has" and "bought" for "hat … gekauft".
            mass = self._mass(own, at)
            total += 1 + 0.1 * mass if own[0] <= self.aligned[at] < own[1] and mass > FAINT else -1
            if total > best:
                best, found = total, (start, at + 1)
            if total < 0:
                total, start = 0.0, at + 1
        if found is None and always:
            return self._most_alike(own, [at for at in range(low, high) if owner[at - span[0]] is None])
        return found

    def _copy(self, node: Node, own: Span, span: Span, owner: list[int | None]) -> Span | None:
        """Return the free words in which the model has copied the name of an untouched element."""
        low, high = self._window(own, span)
        if not node.name or low == high:
            return None
        words = self.words
        first, last = words[low].start, words[high - 1].end
        while (found := self.text.find(node.name, first, last)) >= 0:
            end = found + len(node.name)
            place = (
                bisect_right(words, found, low, high, key=lambda word: word.end),
                bisect_left(words, end, low, high, key=lambda word: word.start),
            )
            if place[0] < place[1] and not any(
                one is not None for one in owner[place[0] - span[0] : place[1] - span[0]]
            ):
                return place
            first = found + 1
        return None

    def _narrowed(self, own: Span, place: Span) -> Span:
        """Return the part of `place` that an untouched element replaces.

        It has at most as many words as the element itself. Words beyond that would be lost, for example where attention
        is diffuse.
        """
        count = own[1] - own[0]
        sums = [0.0, *accumulate(self._mass(own, at) for at in range(*place))]
        first = max(range(max(1, len(sums) - count)), key=lambda at: sums[min(at + count, len(sums) - 1)] - sums[at])
        return place[0] + first, min(place[0] + first + count, place[1])

    def _most_alike(self, own: Span, candidates: list[int]) -> Span | None:
        """Return the word that attends most to these words, whatever else it attends to."""
        best = max(candidates, key=lambda at: self._mass(own, at), default=None)
        return None if best is None or self._mass(own, best) <= 0 else (best, best + 1)

    def _mass(self, own: Span, at: int) -> float:
        word = self.words[at]
        return sum(word.weights[max(0, own[0] - word.first) : max(0, own[1] - word.first)])

    def _window(self, own: Span, span: Span) -> Span:
        """Return the words of `span` whose segments overlap `own`, to bound the cost per element."""
        low = bisect_left(self.words, own[0], *span, key=lambda word: word.first + len(word.weights) - 1)
        high = bisect_left(self.words, own[1], *span, key=lambda word: word.first)
        return low, max(low, high)

    def _gap(self, source: int, span: Span, owner: list[int | None]) -> Span:
        """Return the gap before a source word where an empty element moves the fewest words."""
        low, high = self._window((source - 1, source + 1), span)
        changed = sum(self.aligned[at] < source for at in range(low, high))
        best, gap = changed, low
        for at in range(low, high):
            changed += 1 if self.aligned[at] >= source else -1
            if changed < best:
                best, gap = changed, at + 1
        owners = [-1, *owner, -2]  # sentinels
        while owners[gap - span[0]] is not None and owners[gap - span[0]] == owners[gap - span[0] + 1]:
            gap += 1  # move out of an unrelated element
        return gap, gap

    def _at_edge(self, node: Node, gap: int) -> int | None:
        """Return the exact offset of a node in the white space around the run, which is kept."""
        if not self.source_words or not self.words:
            return None
        if gap == 0 and node.start <= self.source_words[0][0]:
            return min(node.start, self.words[0].start)
        if gap == len(self.words) and node.start >= self.source_words[-1][1]:
            return min(self.words[-1].end + node.start - self.source_words[-1][1], len(self.text))
        return None

    def _offset(self, at: int, span: Span) -> int:
        """Return where word `at` starts, or where the last word of the span ends."""
        if at < span[1]:
            return self.words[at].start
        return self.words[at - 1].end if at else 0

    def _start(self, node: Node, own: Span, span: Span) -> int:
        """Return where a node starts; without words, it keeps its side of the white space."""
        offset = self._offset(own[0], span)
        if not (span[0] < own[0] == own[1] and self.source[node.end : node.end + 1].isspace()):
            return offset
        after_word = self.words[own[0] - 1].end
        is_behind_space = self.source[max(0, node.start - 1) : node.start].isspace()
        return min(offset, after_word + is_behind_space) if offset > after_word + 1 else after_word

    def _end(self, span: Span) -> int:
        return self.words[span[1] - 1].end if span[1] > span[0] else self._offset(span[0], span)


def escape(text: str) -> str:
    return html.escape(text, quote=False).replace("\u00a0", "&nbsp;")
