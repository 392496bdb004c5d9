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
TRACE_TAG = "-NONE-"  # the tag of what is not a word: the place that something was moved from, or left out of

_TOKEN = re.compile(r"[()]|[^\s()]+")
_FUNCTION_TAG_SEPARATOR = re.compile(r"[-=|]")


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
    reader = _BracketReader(str(path))
    for line_number, line in enumerate(read_lines(path), start=1):
        for token in _TOKEN.findall(line):
            tree = reader.feed(token, line_number)
            if tree is not None and tree.words:
                yield tree
    reader.finish()


def ensure_root(brackets: Sequence[Bracket], words: int) -> tuple[Bracket, ...]:
    """The brackets themselves where the first has every word; otherwise below a new root."""
    if brackets and (brackets[0].start, brackets[0].end) == (0, words):
        return tuple(brackets)
    return (Bracket(ROOT, 0, words), *brackets)


def strip_function_tags(label: str) -> str:
    """NP-SBJ-1, NP=2 and NP|QP are NP; -LRB- and its like stay."""
    return label if label.startswith("-") else _FUNCTION_TAG_SEPARATOR.split(label, maxsplit=1)[0]


def traverse(brackets: Sequence[Bracket], words: int) -> Iterator[tuple[str, str | int]]:
    """A tree from left to right: ("open", label), ("word", its place), ("close", label)."""
    open_brackets: list[Bracket] = []
    following = 0
    for position in range(words + 1):
        while open_brackets and open_brackets[-1].end == position:
            yield "close", open_brackets.pop().label
        while following < len(brackets) and brackets[following].start == position:
            open_brackets.append(brackets[following])
            following += 1
            yield "open", open_brackets[-1].label
        if position < words:
            yield "word", position


def to_bracketed(tree: Tree) -> str:
    """(S (NP (DT the) (NN dog)) (VP (VBZ barks))): one line, as evalb and others read it."""
    parts = []
    for kind, item in traverse(tree.brackets, len(tree.words)):
        if isinstance(item, int):
            parts.append(f" ({tree.tags[item]} {tree.words[item]})")
        else:
            parts.append(f" ({item}" if kind == "open" else ")")
    return "".join(parts)[1:]


@dataclass
class _OpenBracket:
    """A bracket that is not closed yet; whether it is a constituent or a word with its tag is not known at first."""

    line: int
    start: int  # words before it
    label: str | None = None
    word: str | None = None
    has_children: bool = False  # has brackets of its own


class _BracketReader:
    """Takes a file's tokens one by one; the token that closes a tree gives it back."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._reset()

    def _reset(self) -> None:
        self._open_brackets: list[_OpenBracket] = []
        self._words: list[str] = []
        self._tags: list[str] = []
        self._brackets: list[Bracket | None] = []  # None keeps the place of one that is not closed yet
        self._open_indices: list[int] = []  # in `_found`, of what is open

    def feed(self, token: str, line: int) -> Tree | None:
        if token == "(":
            self._open_bracket(line)
        elif token == ")":
            self._close_bracket(line)
            return self._completed_tree()
        else:
            self._add_text(token, line)
        return None

    def finish(self) -> None:
        if self._open_brackets:
            raise self._error(self._open_brackets[0].line, "the tree that begins here does not end: a ) is missing")

    def _open_bracket(self, line: int) -> None:
        if self._open_brackets:
            outer = self._open_brackets[-1]
            if outer.word is not None:
                raise self._error(line, f'a ( behind the word "{outer.word}": a word stands alone with its tag')
            outer.has_children = True
        self._open_brackets.append(_OpenBracket(line, len(self._words)))
        self._open_indices.append(len(self._brackets))
        self._brackets.append(None)

    def _add_text(self, token: str, line: int) -> None:
        if not self._open_brackets:
            raise self._error(line, f'"{token}" stands outside of any bracket')
        inner = self._open_brackets[-1]
        if inner.has_children:
            raise self._error(line, f'the word "{token}" has no tag of its own: (TAG {token}) is expected')
        if inner.label is None:
            inner.label = token
        elif inner.word is None:
            inner.word = token
        else:
            raise self._error(line, f'two words in one bracket, "{inner.word}" and "{token}"')

    def _close_bracket(self, line: int) -> None:
        if not self._open_brackets:
            raise self._error(line, "a ) that closes nothing")
        closed, index = self._open_brackets.pop(), self._open_indices.pop()
        label = closed.label or ""
        if closed.has_children:
            self._brackets[index] = Bracket(strip_function_tags(label), closed.start, len(self._words))
        elif closed.word is None:
            raise self._error(line, f"({label}) has nothing in it: a word or brackets are expected")
        else:
            self._brackets.pop()
            if label != TRACE_TAG:
                self._words.append(closed.word)
                self._tags.append(label)

    def _completed_tree(self) -> Tree | None:
        if self._open_brackets:
            return None
        kept = [
            bracket
            for bracket in self._brackets
            if bracket is not None and bracket.label and bracket.end > bracket.start
        ]
        tree = Tree(tuple(self._words), tuple(self._tags), ensure_root(kept, len(self._words)))
        self._reset()
        return tree

    def _error(self, line: int, problem: str) -> CorpusError:
        return CorpusError(f"{self.name}:{line}: {problem}.")
