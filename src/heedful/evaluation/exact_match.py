"""Exact match: the fraction of translations that equal their reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ExactMatch:
    """Counts of correct and of all translations."""

    correct: int
    total: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.total

    def __str__(self) -> str:
        return f"{self.accuracy:.1%} ({self.correct:,} of {self.total:,})"


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> ExactMatch:
    """Return how many hypotheses equal their reference."""
    correct = sum(hypothesis == reference for hypothesis, reference in zip(hypotheses, references, strict=True))
    return ExactMatch(correct, len(references))


def exact_match_by_label(
    hypotheses: Sequence[str], references: Sequence[str], labels: Sequence[Sequence[str]]
) -> dict[str, ExactMatch]:
    """Return the exact match of the sentences with each label, worst first."""
    matches: dict[str, ExactMatch] = {}
    for label in sorted({label for sentence_labels in labels for label in sentence_labels}):
        indices = [index for index, sentence_labels in enumerate(labels) if label in sentence_labels]
        matches[label] = exact_match([hypotheses[i] for i in indices], [references[i] for i in indices])
    return dict(sorted(matches.items(), key=lambda item: item[1].accuracy))
