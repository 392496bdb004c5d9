"""Constituency trees, and a reader for bracketed treebank files.

A tree is stored flat: its words, and its constituents as labelled spans, outer before inner. Nothing is recursive, so
the depth of a tree is unlimited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from heedful.errors import CorpusError
from heedful.text.text_files import read_lines

ROOT = "TOP"  # label of an added root
TRACE_TAG = "-NONE-"  # tag of traces and other empty elements

_TOKEN = re.compile(r"[()]|[^\s()]+")
_FUNCTION_TAG_SEPARATOR = re.compile(r"[-=|]")


class Bracket(NamedTuple):
    """A labelled constituent that spans words[start:end]."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Tree:
    """A sentence with its constituents.

    Every bracket has a label and at least one word. The first bracket is the root and spans all words.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]  # one part-of-speech tag per word
    brackets: tuple[Bracket, ...]  # in the order of their opening brackets


def read_trees(path: Path) -> Iterator[Tree]:
    """Yield the trees of a bracketed file (plain or .gz).

    Traces, function tags, indices, empty constituents and unlabelled brackets (the outermost ones in the Penn
    Treebank) are removed. Errors name the file and line.
    """
    reader = _BracketReader(str(path))
    for line_number, line in enumerate(read_lines(path), start=1):
        for token in _TOKEN.findall(line):
            tree = reader.feed(token, line_number)
            if tree is not None and tree.words:
                yield tree
    reader.finish()


def ensure_root(brackets: Sequence[Bracket], words: int) -> tuple[Bracket, ...]:
    """Return the brackets, below a new root unless the first one spans every word."""
    if brackets and (brackets[0].start, brackets[0].end) == (0, words):
        return tuple(brackets)
    return (Bracket(ROOT, 0, words), *brackets)


def strip_function_tags(label: str) -> str:
    """Return NP for NP-SBJ-1, NP=2 and NP|QP; keep labels such as -LRB-."""
    return label if label.startswith("-") else _FUNCTION_TAG_SEPARATOR.split(label, maxsplit=1)[0]


def traverse(brackets: Sequence[Bracket], words: int) -> Iterator[tuple[str, str | int]]:
    """Yield ("open", label), ("word", index) and ("close", label) from left to right."""
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
    """Return a tree on one line, as evalb reads it: (S (NP (DT the) (NN dog)) ...)."""
    parts = []
    for kind, item in traverse(tree.brackets, len(tree.words)):
        if isinstance(item, int):
            parts.append(f" ({tree.tags[item]} {tree.words[item]})")
        else:
            parts.append(f" ({item}" if kind == "open" else ")")
    return "".join(parts)[1:]


@dataclass
class _OpenBracket:
    """An open bracket, which becomes a constituent or a tagged word."""

    line: int
    start: int  # number of words before it
    label: str | None = None
    word: str | None = None
    has_children: bool = False


class _BracketReader:
    """Builds trees from the tokens of a file."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._reset()

    def _reset(self) -> None:
        self._open_brackets: list[_OpenBracket] = []
        self._words: list[str] = []
        self._tags: list[str] = []
        self._brackets: list[Bracket | None] = []  # None: not closed yet
        self._open_indices: list[int] = []  # indices of open brackets in `_brackets`

    def feed(self, token: str, line: int) -> Tree | None:
        """Process one token; return the tree that it completes, if any."""
        if token == "(":
            self._open_bracket(line)
        elif token == ")":
            self._close_bracket(line)
            return self._completed_tree()
        else:
            self._add_text(token, line)
        return None

    def finish(self) -> None:
        """Raise if the last tree is not complete."""
        if self._open_brackets:
            raise self._error(self._open_brackets[0].line, "this tree is not closed; add the missing )")

    def _open_bracket(self, line: int) -> None:
        if self._open_brackets:
            outer = self._open_brackets[-1]
            if outer.word is not None:
                raise self._error(
                    line, f'unexpected ( after the word "{outer.word}"; a bracket holds either one word or brackets'
                )
            outer.has_children = True
        self._open_brackets.append(_OpenBracket(line, len(self._words)))
        self._open_indices.append(len(self._brackets))
        self._brackets.append(None)

    def _add_text(self, token: str, line: int) -> None:
        if not self._open_brackets:
            raise self._error(line, f'"{token}" is outside any bracket; write (TAG {token}) inside a tree')
        inner = self._open_brackets[-1]
        if inner.has_children:
            raise self._error(line, f'the word "{token}" has no tag; write (TAG {token})')
        if inner.label is None:
            inner.label = token
        elif inner.word is None:
            inner.word = token
        else:
            raise self._error(
                line, f'two words in one bracket, "{inner.word}" and "{token}"; give each word its own tag'
            )

    def _close_bracket(self, line: int) -> None:
        if not self._open_brackets:
            raise self._error(line, "unmatched ); remove it or add the missing (")
        closed, index = self._open_brackets.pop(), self._open_indices.pop()
        label = closed.label or ""
        if closed.has_children:
            self._brackets[index] = Bracket(strip_function_tags(label), closed.start, len(self._words))
        elif closed.word is None:
            raise self._error(line, f"({label}) is empty; a bracket needs a word or brackets")
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
