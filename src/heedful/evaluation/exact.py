"""Exact match: the share of translations that are the reference, letter for letter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ExactMatch:
    right: int
    total: int

    @property
    def share(self) -> float:
        return self.right / self.total

    def __str__(self) -> str:
        return f"{self.share:.1%} ({self.right:,} of {self.total:,})"


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> ExactMatch:
    right = sum(hypothesis == reference for hypothesis, reference in zip(hypotheses, references, strict=True))
    return ExactMatch(right, len(references))


def exact_match_by_label(
    hypotheses: Sequence[str], references: Sequence[str], labels: Sequence[Sequence[str]]
) -> dict[str, ExactMatch]:
    """For each label, the exact match of the sentences that carry it, worst first."""
    found: dict[str, ExactMatch] = {}
    for label in sorted({label for carried in labels for label in carried}):
        chosen = [index for index, carried in enumerate(labels) if label in carried]
        found[label] = exact_match([hypotheses[i] for i in chosen], [references[i] for i in chosen])
    return dict(sorted(found.items(), key=lambda item: item[1].share))
