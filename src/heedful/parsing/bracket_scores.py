"""Labelled precision, recall and F1 as computed by evalb with COLLINS.prm.

Section 6.3, Table 4. A bracket matches if its label, first and last word do. Words with a punctuation tag in the gold
tree are ignored, and so are brackets without other words. The root labels TOP and S1 are ignored. ADVP and PRT are
equivalent. Scores are micro-averaged: counts are summed over the corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from heedful.errors import InputError
from heedful.formatting import plural
from heedful.parsing.linearization import delinearize, is_well_formed
from heedful.parsing.trees import ROOT, Bracket, Tree

SCORING_RULES = "evalb COLLINS.prm"
SHORT_SENTENCE_WORDS = 40  # including punctuation; papers often report these sentences too
_PUNCTUATION = {",", ":", "``", "''", "."}
_IGNORED_LABELS = {ROOT, "S1"}
_EQUIVALENT_LABELS = {"PRT": "ADVP"}


@dataclass(frozen=True)
class BracketScores:
    """Bracket counts over a corpus, and scores in percent."""

    sentences: int = 0
    skipped: int = 0  # sentences of punctuation only, not scored
    gold: int = 0  # brackets in the gold trees
    found: int = 0  # predicted brackets
    right: int = 0  # matched brackets
    complete: int = 0  # sentences whose brackets all match
    crossing: int = 0  # predicted brackets that cross a gold bracket

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
        """Crossing brackets per sentence."""
        return self.crossing / max(1, self.sentences - self.skipped)


@dataclass(frozen=True)
class ParsingScores:
    """Scores of a parser, for all sentences and for short ones."""

    all: BracketScores
    short: BracketScores  # sentences of at most SHORT_SENTENCE_WORDS words
    well_formed: int  # outputs that need no repair

    @property
    def well_formed_share(self) -> float:
        return _percent(self.well_formed, self.all.sentences)

    def __str__(self) -> str:
        scores, short = self.all, self.short
        skipped = f", {scores.skipped:,} of them not scored (punctuation only)" if scores.skipped else ""
        return "\n".join(
            [
                f"F1 {scores.f1:.2f} (precision {scores.precision:.2f}, recall {scores.recall:.2f})",
                f"F1 {short.f1:.2f} on the {plural(short.sentences, 'sentence')} of at most "
                f"{SHORT_SENTENCE_WORDS} words",
                f"complete match {scores.complete_match:.2f}%, "
                f"{scores.average_crossing:.2f} crossing brackets per sentence",
                f"well-formed before repair {self.well_formed_share:.2f}% ({plural(self.well_formed, 'output')})",
                f"  {plural(scores.sentences, 'sentence')}{skipped}; {SCORING_RULES}",
            ]
        )


def score_outputs(gold: Sequence[Tree], outputs: Sequence[str]) -> ParsingScores:
    """Score the linearized trees that a model generated, after repair."""
    pairs = list(zip(gold, outputs, strict=True))
    found = [delinearize(output, len(tree.words)) for tree, output in pairs]
    short = [index for index, tree in enumerate(gold) if len(tree.words) <= SHORT_SENTENCE_WORDS]
    return ParsingScores(
        all=score_brackets(gold, found),
        short=score_brackets([gold[index] for index in short], [found[index] for index in short]),
        well_formed=sum(is_well_formed(output, len(tree.words)) for tree, output in pairs),
    )


def score_brackets(gold: Sequence[Tree], found: Sequence[Sequence[Bracket]]) -> BracketScores:
    """Score predicted brackets against the gold trees of the same sentences."""
    scores = [_score_tree(tree, brackets) for tree, brackets in zip(gold, found, strict=True)]
    names = BracketScores.__dataclass_fields__
    return BracketScores(**{name: sum(getattr(score, name) for score in scores) for name in names})


def require_same_words(gold: Sequence[Tree], sentences: Sequence[str]) -> None:
    """Raise unless each tree has the words of its sentence."""
    if not gold and not sentences:
        raise InputError("Nothing to score: there are no sentences and no trees. Provide at least one of each.")
    if len(gold) != len(sentences):
        raise InputError(
            f"Found {plural(len(sentences), 'sentence')} but {plural(len(gold), 'tree')}. "
            "Provide one tree per sentence, in the same order."
        )
    for number, (tree, sentence) in enumerate(zip(gold, sentences, strict=True), start=1):
        if list(tree.words) != sentence.split():
            raise InputError(
                f'Line {number}: the sentence ("{sentence[:40]}…") and its tree ("{" ".join(tree.words)[:40]}…") '
                "have different words. Create both files with `heedful treebank`."
            )


def _score_tree(tree: Tree, brackets: Sequence[Bracket]) -> BracketScores:
    # before[i]: number of words before word i, without punctuation
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
    """Return the scored brackets, with normalised labels and spans without punctuation."""
    mapped = [
        Bracket(_EQUIVALENT_LABELS.get(bracket.label, bracket.label), before[bracket.start], before[bracket.end])
        for bracket in brackets
    ]
    return [bracket for bracket in mapped if bracket.end > bracket.start and bracket.label not in _IGNORED_LABELS]


def _crosses(one: Bracket, other: Bracket) -> bool:
    return one.start < other.start < one.end < other.end or other.start < one.start < other.end < one.end


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
