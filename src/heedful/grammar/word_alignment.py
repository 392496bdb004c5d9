"""Gold word alignment of a sentence pair, from the lexical entry of each word.

Nouns, adjectives, verbs and adverbs of the abstract syntax tree are replaced with copies whose forms carry an invisible
mark, one per occurrence. The realisers inflect and order the marked forms as usual, and equal marks in the two
sentences are a link. Function words, be, have and know (wissen) are not marked and not aligned.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from heedful.grammar import english_realisation
from heedful.grammar.abstract_syntax import Sentence
from heedful.grammar.german_realisation import GermanRealiser
from heedful.grammar.lexical_entries import Adjective, Adverb, Noun, Verb
from heedful.grammar.recognizer import derivations

Alignment = frozenset[tuple[int, int]]  # (German word, English word), counted from 0

_FIRST_MARK, _LAST_MARK = 0xE000, 0xF8FF  # private-use characters
_FORMS: dict[type, tuple[str, ...]] = {
    Noun: ("english", "english_plural", "german", "german_plural", "weak_form"),
    Adjective: ("english", "german", "stem"),
    Adverb: ("english", "german"),
    Verb: (
        *("english", "third_person", "past", "participle", "ing_form", "particle", "english_preposition"),
        *("german", "prefix", "du_form", "er_form", "german_participle"),
    ),
}
_MOST_ATTEMPTS = 30_000  # of the search for a derivation: about half a second; the corpus needs half as many
_UNMARKED_VERBS = ("sein", "haben", "wissen")  # morphology recognises them by their form


class MarkedPair(NamedTuple):
    """Both sentences with marks in the content words."""

    english: str
    german: str


def align(structure: Sentence) -> Alignment:
    """Return the links between the words of both realisations. Words are separated by spaces."""
    pair = realise_marked(structure)
    marks: dict[str, list[int]] = {}
    for number, word in enumerate(pair.english.split()):
        for mark in _marks(word):
            marks.setdefault(mark, []).append(number)
    return frozenset(
        (number, other)
        for number, word in enumerate(pair.german.split())
        for mark in _marks(word)
        for other in marks.get(mark, ())
    )


def gold_alignment(english: str, german: str) -> Alignment | None:
    """Return the alignment of a pair of the grammar; None if no derivation is found."""
    for structure in derivations(english, _MOST_ATTEMPTS):
        if without_marks(realise_marked(structure).german) == german:
            return align(structure)
    return None


def realise_marked(structure: Sentence) -> MarkedPair:
    marked = _marked(structure, {}, [])
    return MarkedPair(english_realisation.realise_sentence(marked), GermanRealiser().realise_sentence(marked))


def without_marks(text: str) -> str:
    return "".join(character for character in text if not _is_mark(character))


def _is_mark(character: str) -> bool:
    return _FIRST_MARK <= ord(character) <= _LAST_MARK


def _marks(word: str) -> list[str]:
    return [character for character in word if _is_mark(character)]


def _marked(node: Any, done: dict[int, Any], used: list[Any]) -> Any:
    """Return a copy with marks.

    A constituent that occurs twice, such as an antecedent, stays one object.
    """
    if type(node) in _FORMS:
        used.append(node)
        return _marked_entry(node, chr(_FIRST_MARK + len(used) - 1))
    if not isinstance(node, tuple):
        return node
    if id(node) not in done:
        parts = [_marked(part, done, used) for part in node]
        done[id(node)] = type(node)(*parts) if hasattr(node, "_fields") else tuple(parts)
    return done[id(node)]


@cache  # morphology caches its results by entry, so the number of copies must be bounded
def _marked_entry(entry: Any, mark: str) -> Any:
    if getattr(entry, "german", "") in _UNMARKED_VERBS:
        return entry
    forms = {name: _marked_form(getattr(entry, name), mark) for name in _FORMS[type(entry)]}
    return replace(entry, **forms)


def _marked_form(form: str, mark: str) -> str:
    """Mark words after the first letter: it selects a or an, the last letters the endings."""
    return " ".join(f"{word[0]}{mark}{word[1:]}" if word else word for word in form.split(" "))
