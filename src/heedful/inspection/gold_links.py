"""Gold alignment of a sentence pair in the words of the attention page."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.grammar.word_alignment import gold_alignment
from heedful.inspection.alignment_error import Link


def gold_links(source: str, target: str, source_words: Sequence[str], target_words: Sequence[str]) -> list[Link] | None:
    """Return (target word, source word) links; None if the built-in grammar lacks the pair.

    The grammar separates words at spaces. On the page, punctuation and the end symbol are words of their own.
    """
    alignment = gold_alignment(source, target)
    places = [_places(text, words) for text, words in ((target, target_words), (source, source_words))]
    if not alignment or places[0] is None or places[1] is None:
        return None
    return sorted((places[0][row], places[1][column]) for row, column in alignment)


def _places(text: str, words: Sequence[str]) -> list[int] | None:
    """Return the index in `words` of every space-separated word of the text."""
    places = [number for number, word in enumerate(words[:-1]) if any(map(str.isalnum, word))]
    expected = [word.strip(".,?!").lower() for word in text.split()]
    return places if [words[number].lower() for number in places] == expected else None
