"""Linearization: trees as symbol sequences that a model can generate (section 6.3).

bS bNP wDT wNN eNP bVP wVBZ eVP eS: bNP opens an NP, eNP closes it, and a word is w with its tag. Tags are not scored;
they teach the model to align its output with the input (Vinyals et al. 2015, with far more trees, have one symbol for
all words). Symbols consist of letters only, because the tokenizer splits at script boundaries, such as in (NP.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from heedful.parsing.trees import Bracket, ensure_root, traverse

WORD_PREFIX, OPEN_PREFIX, CLOSE_PREFIX = "w", "b", "e"


def linearize(brackets: Sequence[Bracket], tags: Sequence[str]) -> str:
    """Return the symbols of a tree over words with these tags, separated by spaces."""
    prefix = {"open": OPEN_PREFIX, "close": CLOSE_PREFIX}
    return " ".join(
        _word_symbol(tags[item]) if isinstance(item, int) else f"{prefix[kind]}{item}"
        for kind, item in traverse(brackets, len(tags))
    )


def _word_symbol(tag: str) -> str:
    """Return w and the letters of the tag (PRP$: wPRP), or wP if it has none (punctuation)."""
    return WORD_PREFIX + ("".join(filter(str.isalpha, tag)) or "P")


def delinearize(output: str, words: int) -> tuple[Bracket, ...]:
    """Return the brackets of any output, repaired to a well-formed tree over `words` words.

    1. Unknown symbols are dropped.
    2. A closing symbol closes the innermost open constituent with its label and everything inside; without one, it
       is dropped.
    3. The end of the output closes all open constituents.
    4. Surplus words are dropped from the end; missing words are added there, directly below the root.
    5. Empty constituents are dropped.
    6. If no constituent spans every word, a new root does (TOP, which evalb ignores).

    A well-formed output is returned unchanged.
    """
    brackets, word_count = _parse_symbols(output.split())
    clipped = [Bracket(label, min(start, words), min(end, words)) for label, start, end in brackets]
    kept = [bracket for bracket in clipped if bracket.end > bracket.start]
    if kept and (kept[0].start, kept[0].end) == (
        0,
        word_count,
    ):  # the root also spans the missing words
        kept[0] = kept[0]._replace(end=words)
    return ensure_root(kept, words)


def is_well_formed(output: str, words: int) -> bool:
    """Return whether the output needs no repair."""
    symbols = output.split()
    tags = [symbol.removeprefix(WORD_PREFIX) for symbol in symbols if symbol.startswith(WORD_PREFIX)]
    return len(tags) == words and linearize(delinearize(output, words), tags).split() == symbols


def _parse_symbols(symbols: list[str]) -> tuple[list[Bracket], int]:
    """Return the constituents in the order of their opening symbols, and the word count."""
    brackets: list[Bracket] = []
    open_indices: list[int] = []  # indices into `brackets`
    open_labels: Counter[str] = Counter()  # of the open constituents
    words = 0
    for symbol in symbols:
        label = symbol[1:]
        if symbol.startswith(WORD_PREFIX):
            words += 1
        elif symbol.startswith(OPEN_PREFIX) and label:
            open_indices.append(len(brackets))
            open_labels[label] += 1
            brackets.append(Bracket(label, words, words))
        elif symbol.startswith(CLOSE_PREFIX) and open_labels[label]:
            closed = ""
            while closed != label:
                index = open_indices.pop()
                closed = brackets[index].label
                open_labels[closed] -= 1
                brackets[index] = brackets[index]._replace(end=words)
    for index in open_indices:
        brackets[index] = brackets[index]._replace(end=words)
    return brackets, words
