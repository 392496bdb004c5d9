"""Trees as a sequence of symbols, so that a model can translate words into them (section 6.3).

bS bNP wDT wNN eNP bVP wVBZ eVP eS: bNP begins an NP, eNP ends it, and a word is w and its tag. The tags are not scored:
they are there for the model to learn from, that it may look at the word it has come to (Vinyals et al. 2015, with far
more trees, have one symbol for all words). Letters alone, because a tokenizer that learns its tokens by script
would cut (NP in two; so each symbol is one token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from heedful.parsing.trees import Bracket, ensure_root, traverse

WORD_PREFIX, OPEN_PREFIX, CLOSE_PREFIX = "w", "b", "e"


def linearize(brackets: Sequence[Bracket], tags: Sequence[str]) -> str:
    """The symbols of a tree whose words have these tags, a space between them."""
    prefix = {"open": OPEN_PREFIX, "close": CLOSE_PREFIX}
    return " ".join(
        _word_symbol(tags[item]) if isinstance(item, int) else f"{prefix[kind]}{item}"
        for kind, item in traverse(brackets, len(tags))
    )


def _word_symbol(tag: str) -> str:
    """PRP$ is PRP, and tags that are no letters at all, of punctuation, are P."""
    return WORD_PREFIX + ("".join(filter(str.isalpha, tag)) or "P")


def delinearize(output: str, words: int) -> tuple[Bracket, ...]:
    """The brackets of any output at all, made a well-formed tree of exactly so many words.

    1. What is none of the three kinds of symbols is dropped.
    2. An end closes the innermost open constituent of its label, and with it all inside; where none is open it is
       dropped.
    3. At the end of the output everything open is closed.
    4. Words too many are dropped from the end; words too few are added there, below the root alone.
    5. A constituent without a word is dropped.
    6. Where no constituent has every word, a new root has (TOP, which evalb does not count).

    A well-formed output is taken as it stands.
    """
    brackets, word_count = _parse_symbols(output.split())
    clipped = [Bracket(label, min(start, words), min(end, words)) for label, start, end in brackets]
    kept = [bracket for bracket in clipped if bracket.end > bracket.start]
    if kept and (kept[0].start, kept[0].end) == (
        0,
        word_count,
    ):  # the root has missing words too
        kept[0] = kept[0]._replace(end=words)
    return ensure_root(kept, words)


def is_well_formed(output: str, words: int) -> bool:
    """Whether the output needs no repair: one root, matching ends, no constituent empty, every word there."""
    symbols = output.split()
    tags = [symbol.removeprefix(WORD_PREFIX) for symbol in symbols if symbol.startswith(WORD_PREFIX)]
    return len(tags) == words and linearize(delinearize(output, words), tags).split() == symbols


def _parse_symbols(symbols: list[str]) -> tuple[list[Bracket], int]:
    """Constituents in the order in which they begin, and the number of words."""
    brackets: list[Bracket] = []
    open_indices: list[int] = []  # places in `found`
    open_labels: Counter[str] = Counter()  # of what is open
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
