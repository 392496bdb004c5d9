"""Whether, and how, the grammar derives a given sentence.

The generator is run again and again, each time with another answer to its last open choice, until all have been
tried: a depth-first search over its choices. It is quick because words that the sentence does not contain are
never tried, and because a finished phrase or clause that is not part of the sentence ends the attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from heedful.grammar import english as english_side
from heedful.grammar.pair import realise, too_long
from heedful.grammar.sentences import sentence as any_sentence
from heedful.grammar.structure import Clause, NounPhrase, Pronoun, Sentence

T = TypeVar("T")


class _DeadEndError(Exception):
    """The choices made so far cannot lead to the sentence."""


class _Search:
    """Answers choices along a path given beforehand, then takes the first possibility of each new one."""

    def __init__(self, english: str) -> None:
        self.text = f" {english.lower().rstrip('.?').replace(',', '')} "
        self.words = frozenset(self.text.split())
        self.path: list[int] = []
        self.sizes: list[int] = []  # how many possibilities each choice on the path had
        # Options by identity, beside themselves so that the identity stays theirs: most come up again and again.
        self._filtered: dict[int, tuple[object, list[Any]]] = {}

    def pick(self, options: Sequence[T]) -> T:
        known = self._filtered.get(id(options))
        if known is None:
            known = (options, list(dict.fromkeys(option for option in options if self._possible(option))))
            self._filtered[id(options)] = known
        possible: list[T] = known[1]
        if not possible:
            raise _DeadEndError
        depth = len(self.sizes)
        self.sizes.append(len(possible))
        if depth == len(self.path):
            self.path.append(0)
        return possible[self.path[depth]]

    def _possible(self, option: object) -> bool:
        if isinstance(option, tuple) and not isinstance(option, Pronoun):
            return all(self._possible(each) for each in option)
        mentions: frozenset[str] = getattr(option, "mentions", frozenset())
        return not mentions or not mentions.isdisjoint(self.words)

    def begin(self, part: object) -> None:
        if isinstance(part, Clause) and not self.words.issuperset(english_side.clause(part).lower().split()):
            raise _DeadEndError

    def settle(self, part: T) -> T:
        if isinstance(part, NounPhrase):
            self._demand(english_side.noun_phrase(part))
        elif isinstance(part, Clause):
            self._demand(english_side.clause(part))
        elif isinstance(part, Pronoun):
            forms = {english_side.nominal(part, subject).lower() for subject in (True, False)}
            if forms.isdisjoint(self.words):
                raise _DeadEndError
        return part

    def _demand(self, words: str) -> None:
        """Phrases and clauses are unbroken in English, so each must be found in the sentence as it is."""
        if f" {words.lower()} " not in self.text:
            raise _DeadEndError

    def advance(self) -> bool:
        """Turn to the next unexplored branch; False when all have been tried."""
        path = self.path[: len(self.sizes)]
        while path and path[-1] + 1 >= self.sizes[len(path) - 1]:
            path.pop()
        if path:
            path[-1] += 1
        self.path, self.sizes = path, []
        return bool(path)


def derivations(english: str) -> Iterator[Sentence]:
    """All structures that the generator can make and that read as this English sentence."""
    search = _Search(english)
    unfinished = True
    while unfinished:
        try:
            structure = any_sentence(search)
        except _DeadEndError:
            pass
        else:
            if english_side.sentence(structure) == english:
                yield structure
        unfinished = search.advance()


def derivable(english: str, german: str) -> bool:
    """Whether the grammar makes this English sentence, and every way of making it gives this German one."""
    made = [realise(structure) for structure in derivations(english)]
    return {pair.german for pair in made} == {german} and not any(too_long(pair) for pair in made)
