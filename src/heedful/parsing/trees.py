"""Constituency trees, and the bracketed files of a treebank that they are read from.

A tree is kept flat: its words, and its constituents as spans over them, outer before inner. Nothing here calls itself,
so no nest is too deep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from heedful.errors import CorpusError
from heedful.text.lines import read_lines

ROOT = "TOP"  # the label of a root that had to be added
TRACE = "-NONE-"  # the tag of what is not a word: the place that something was moved from, or left out of

_TOKEN = re.compile(r"[()]|[^\s()]+")
_AFTER_LABEL = re.compile(r"[-=|]")


class Bracket(NamedTuple):
    """A constituent: words[start:end]."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Tree:
    """Every bracket has a label and at least one word; the first is the root, and has them all."""

    words: tuple[str, ...]
    tags: tuple[str, ...]  # a part of speech for each word
    brackets: tuple[Bracket, ...]  # in the order in which they open


def read_trees(path: Path) -> Iterator[Tree]:
    """The trees of a bracketed file (plain or .gz), without traces, function tags and indices.

    What is left without words is dropped, and so are brackets without a label, such as the outer one of each tree in
    the Penn Treebank. Errors name file and line.
    """
    reader = _Reader(str(path))
    for number, line in enumerate(read_lines(path), start=1):
        for token in _TOKEN.findall(line):
            tree = reader.take(token, number)
            if tree is not None and tree.words:
                yield tree
    reader.require_end()


def with_root(brackets: Sequence[Bracket], words: int) -> tuple[Bracket, ...]:
    """The brackets themselves where the first has every word; otherwise below a new root."""
    if brackets and (brackets[0].start, brackets[0].end) == (0, words):
        return tuple(brackets)
    return (Bracket(ROOT, 0, words), *brackets)


def bare_label(label: str) -> str:
    """NP-SBJ-1, NP=2 and NP|QP are NP; -LRB- and its like stay."""
    return label if label.startswith("-") else _AFTER_LABEL.split(label, maxsplit=1)[0]


def steps(brackets: Sequence[Bracket], words: int) -> Iterator[tuple[str, str | int]]:
    """A tree from left to right: ("open", label), ("word", its place), ("close", label)."""
    opened: list[Bracket] = []
    coming = 0
    for place in range(words + 1):
        while opened and opened[-1].end == place:
            yield "close", opened.pop().label
        while coming < len(brackets) and brackets[coming].start == place:
            opened.append(brackets[coming])
            coming += 1
            yield "open", opened[-1].label
        if place < words:
            yield "word", place


def bracketed(tree: Tree) -> str:
    """(S (NP (DT the) (NN dog)) (VP (VBZ barks))): one line, as evalb and others read it."""
    parts = []
    for kind, what in steps(tree.brackets, len(tree.words)):
        if isinstance(what, int):
            parts.append(f" ({tree.tags[what]} {tree.words[what]})")
        else:
            parts.append(f" ({what}" if kind == "open" else ")")
    return "".join(parts)[1:]


@dataclass
class _Open:
    """A bracket that is not closed yet; whether it is a constituent or a word with its tag is not known at first."""

    line: int
    start: int  # words before it
    label: str | None = None
    word: str | None = None
    inner: bool = False  # has brackets of its own


class _Reader:
    """Takes a file's tokens one by one; the token that closes a tree gives it back."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._begin()

    def _begin(self) -> None:
        self._open: list[_Open] = []
        self._words: list[str] = []
        self._tags: list[str] = []
        self._found: list[Bracket | None] = []  # None keeps the place of one that is not closed yet
        self._places: list[int] = []  # in `_found`, of what is open

    def take(self, token: str, line: int) -> Tree | None:
        if token == "(":
            self._take_open(line)
        elif token == ")":
            self._take_close(line)
            return self._finished()
        else:
            self._take_text(token, line)
        return None

    def require_end(self) -> None:
        if self._open:
            raise self._error(self._open[0].line, "the tree that begins here does not end: a ) is missing")

    def _take_open(self, line: int) -> None:
        if self._open:
            outer = self._open[-1]
            if outer.word is not None:
                raise self._error(line, f'a ( behind the word "{outer.word}": a word stands alone with its tag')
            outer.inner = True
        self._open.append(_Open(line, len(self._words)))
        self._places.append(len(self._found))
        self._found.append(None)

    def _take_text(self, token: str, line: int) -> None:
        if not self._open:
            raise self._error(line, f'"{token}" stands outside of any bracket')
        inner = self._open[-1]
        if inner.inner:
            raise self._error(line, f'the word "{token}" has no tag of its own: (TAG {token}) is expected')
        if inner.label is None:
            inner.label = token
        elif inner.word is None:
            inner.word = token
        else:
            raise self._error(line, f'two words in one bracket, "{inner.word}" and "{token}"')

    def _take_close(self, line: int) -> None:
        if not self._open:
            raise self._error(line, "a ) that closes nothing")
        closed, place = self._open.pop(), self._places.pop()
        label = closed.label or ""
        if closed.inner:
            self._found[place] = Bracket(bare_label(label), closed.start, len(self._words))
        elif closed.word is None:
            raise self._error(line, f"({label}) has nothing in it: a word or brackets are expected")
        else:
            self._found.pop()
            if label != TRACE:
                self._words.append(closed.word)
                self._tags.append(label)

    def _finished(self) -> Tree | None:
        if self._open:
            return None
        kept = [one for one in self._found if one is not None and one.label and one.end > one.start]
        tree = Tree(tuple(self._words), tuple(self._tags), with_root(kept, len(self._words)))
        self._begin()
        return tree

    def _error(self, line: int, what: str) -> CorpusError:
        return CorpusError(f"{self.name}:{line}: {what}.")
