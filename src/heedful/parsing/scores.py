"""Labelled brackets, scored as evalb does with COLLINS.prm (section 6.3, Table 4).

A bracket is right where label, first and last word are. Words whose gold tag is punctuation do not count, nor do
brackets that hold nothing else; a root TOP (or S1, as some parsers have it) does not count; ADVP and PRT are one label.
Counts are summed over the corpus before they are divided.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from heedful.errors import InputError
from heedful.parsing.linearization import delinearize, is_well_formed
from heedful.parsing.trees import ROOT, Bracket, Tree

SCORING_RULES = "evalb COLLINS.prm"
SHORT_SENTENCE_WORDS = 40  # words, punctuation included; many papers also give the score of sentences up to this length
_PUNCTUATION = {",", ":", "``", "''", "."}
_IGNORED_LABELS = {ROOT, "S1"}
_EQUIVALENT_LABELS = {"PRT": "ADVP"}


@dataclass(frozen=True)
class BracketScores:
    """Counts over a corpus, and what follows from them, in percent."""

    sentences: int = 0
    skipped: int = 0  # of these, nothing but punctuation: not scored
    gold: int = 0  # brackets of the treebank
    found: int = 0  # brackets of the parser
    right: int = 0  # in both
    complete: int = 0  # sentences with all brackets right, and no others
    crossing: int = 0  # brackets of the parser that overlap one of the treebank, neither inside the other

    @property
    def precision(self) -> float:
        return _percent(self.right, self.found)

    @property
    def recall(self) -> float:
        return _percent(self.right, self.gold)

    @property
    def f1(self) -> float:
        return _percent(2 * self.right, self.found + self.gold)

    @property
    def complete_match(self) -> float:
        return _percent(self.complete, self.sentences - self.skipped)

    @property
    def average_crossing(self) -> float:
        """Crossing brackets a sentence."""
        return self.crossing / max(1, self.sentences - self.skipped)


@dataclass(frozen=True)
class ParsingScores:
    all: BracketScores
    short: BracketScores  # of sentences of at most SHORT words
    well_formed: int  # outputs that needed no repair

    @property
    def well_formed_share(self) -> float:
        return _percent(self.well_formed, self.all.sentences)

    def __str__(self) -> str:
        scores, short = self.all, self.short
        skipped = f", {scores.skipped:,} of them nothing but punctuation, not scored" if scores.skipped else ""
        return "\n".join(
            [
                f"F1 {scores.f1:.2f} (precision {scores.precision:.2f}, recall {scores.recall:.2f})",
                f"F1 {short.f1:.2f} of the {short.sentences:,} sentences of at most {SHORT_SENTENCE_WORDS} words",
                f"complete match {scores.complete_match:.2f} %, "
                f"{scores.average_crossing:.2f} crossing brackets a sentence",
                f"well-formed before repair {self.well_formed_share:.2f} % ({self.well_formed:,} outputs)",
                f"  {scores.sentences:,} sentences{skipped}; {SCORING_RULES}",
            ]
        )


def score_outputs(gold: Sequence[Tree], outputs: Sequence[str]) -> ParsingScores:
    """Linearised trees as a model says them, repaired where they need it."""
    pairs = list(zip(gold, outputs, strict=True))
    found = [delinearize(output, len(tree.words)) for tree, output in pairs]
    short = [index for index, tree in enumerate(gold) if len(tree.words) <= SHORT_SENTENCE_WORDS]
    return ParsingScores(
        all=score_brackets(gold, found),
        short=score_brackets([gold[index] for index in short], [found[index] for index in short]),
        well_formed=sum(is_well_formed(output, len(tree.words)) for tree, output in pairs),
    )


def score_brackets(gold: Sequence[Tree], found: Sequence[Sequence[Bracket]]) -> BracketScores:
    """The n-th brackets against those of the n-th tree, over the same words."""
    scores = [_score_tree(tree, brackets) for tree, brackets in zip(gold, found, strict=True)]
    names = BracketScores.__dataclass_fields__
    return BracketScores(**{name: sum(getattr(score, name) for score in scores) for name in names})


def require_same_words(gold: Sequence[Tree], sentences: Sequence[str]) -> None:
    """A tree of another sentence would score as a bad parse, and look like one."""
    if not gold and not sentences:
        raise InputError("There is nothing to score: the sentences and the trees are empty.")
    if len(gold) != len(sentences):
        raise InputError(
            f"{len(sentences):,} sentences and {len(gold):,} trees: each sentence needs its tree, in order."
        )
    for number, (tree, sentence) in enumerate(zip(gold, sentences, strict=True), start=1):
        if list(tree.words) != sentence.split():
            raise InputError(
                f'Line {number}: the sentence ("{sentence[:40]}…") has not the words of the tree '
                f'("{" ".join(tree.words)[:40]}…"). Make both with heedful treebank.'
            )


def _score_tree(tree: Tree, brackets: Sequence[Bracket]) -> BracketScores:
    # before[i]: words before word i that are not punctuation
    before = [0, *accumulate(tag not in _PUNCTUATION for tag in tree.tags)]
    if before[-1] == 0:
        return BracketScores(sentences=1, skipped=1)
    gold, found = (Counter(_scored_brackets(each, before)) for each in (tree.brackets, brackets))
    right = (gold & found).total()
    return BracketScores(
        sentences=1,
        gold=gold.total(),
        found=found.total(),
        right=right,
        complete=int(gold == found),
        crossing=sum(count for bracket, count in found.items() if any(_crosses(bracket, other) for other in gold)),
    )


def _scored_brackets(brackets: Sequence[Bracket], before: Sequence[int]) -> list[Bracket]:
    """Brackets over the words that count, with the labels that count."""
    mapped = [
        Bracket(_EQUIVALENT_LABELS.get(bracket.label, bracket.label), before[bracket.start], before[bracket.end])
        for bracket in brackets
    ]
    return [bracket for bracket in mapped if bracket.end > bracket.start and bracket.label not in _IGNORED_LABELS]


def _crosses(one: Bracket, other: Bracket) -> bool:
    return one.start < other.start < one.end < other.end or other.start < one.start < other.end < one.end


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
