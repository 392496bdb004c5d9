"""Find all derivations of a given English sentence.

A depth-first search over the choices of the generator: the generator runs again with the next option for its last
open choice until every option has been tried. Two checks prune the search. Words that the sentence does not contain
are never tried, and a complete phrase or clause that is not a substring of the sentence ends the attempt.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from heedful.grammar import english_realisation
from heedful.grammar.abstract_syntax import Clause, NounPhrase, Pronoun, Sentence
from heedful.grammar.sentence_pair import is_too_long, realise
from heedful.grammar.sentences import generate_sentence

T = TypeVar("T")


class _DeadEndError(Exception):
    """The choices made so far cannot lead to the sentence."""


class _DerivationSearch:
    """Replays a path of choices, then takes the first possible option of each new choice."""

    def __init__(self, english: str) -> None:
        self.text = f" {english.lower().rstrip('.?').replace(',', '')} "
        self.words = frozenset(self.text.split())
        self.path: list[int] = []
        self.sizes: list[int] = []  # number of possible options of each choice on the path
        # id of an options tuple -> the tuple, which keeps the id valid, and its possible options.
        self._filtered: dict[int, tuple[object, list[Any]]] = {}

    def pick(self, options: Sequence[T]) -> T:
        known = self._filtered.get(id(options))
        if known is None:
            known = (options, list(dict.fromkeys(option for option in options if self._is_possible(option))))
            self._filtered[id(options)] = known
        possible: list[T] = known[1]
        if not possible:
            raise _DeadEndError
        depth = len(self.sizes)
        self.sizes.append(len(possible))
        if depth == len(self.path):
            self.path.append(0)
        return possible[self.path[depth]]

    def _is_possible(self, option: object) -> bool:
        if isinstance(option, tuple) and not isinstance(option, Pronoun):
            return all(self._is_possible(each) for each in option)
        cue_words: frozenset[str] = getattr(option, "cue_words", frozenset())
        return not cue_words or not cue_words.isdisjoint(self.words)

    def check_partial(self, constituent: object) -> None:
        if isinstance(constituent, Clause) and not self.words.issuperset(
            english_realisation.realise_clause(constituent).lower().split()
        ):
            raise _DeadEndError

    def check_complete(self, constituent: T) -> T:
        if isinstance(constituent, NounPhrase):
            self._require_substring(english_realisation.realise_noun_phrase(constituent))
        elif isinstance(constituent, Clause):
            self._require_substring(english_realisation.realise_clause(constituent))
        elif isinstance(constituent, Pronoun):
            forms = {english_realisation.realise_nominal(constituent, subject).lower() for subject in (True, False)}
            if forms.isdisjoint(self.words):
                raise _DeadEndError
        return constituent

    def _require_substring(self, words: str) -> None:
        """Abandon the derivation unless the words, contiguous in English, occur in the text."""
        if f" {words.lower()} " not in self.text:
            raise _DeadEndError

    def advance(self) -> bool:
        """Advance to the next unexplored branch; return False if there is none."""
        path = self.path[: len(self.sizes)]
        while path and path[-1] + 1 >= self.sizes[len(path) - 1]:
            path.pop()
        if path:
            path[-1] += 1
        self.path, self.sizes = path, []
        return bool(path)


def derivations(english: str, most_attempts: float = math.inf) -> Iterator[Sentence]:
    """Yield every abstract syntax tree whose English realisation is this sentence.

    The search stops after `most_attempts`, because it may take long for a text that is nearly in the grammar.
    """
    search = _DerivationSearch(english)
    more, attempts = True, 0
    while more and attempts < most_attempts:
        attempts += 1
        try:
            structure = generate_sentence(search)
        except _DeadEndError:
            pass
        else:
            if english_realisation.realise_sentence(structure) == english:
                yield structure
        more = search.advance()


def is_derivable(english: str, german: str) -> bool:
    """Return whether the grammar derives the English sentence with this German one only."""
    derived = [realise(structure) for structure in derivations(english)]
    return {pair.german for pair in derived} == {german} and not any(is_too_long(pair) for pair in derived)
