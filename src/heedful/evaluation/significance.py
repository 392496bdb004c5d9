"""Tests of whether one system is better than another.

BLEU and chrF of both, with two significance tests by sacreBLEU.

Paired bootstrap resampling (Koehn 2004) and approximate randomization (Riezler and Maxwell 2005). The random numbers
start from the seed 12345, or from SACREBLEU_SEED, as in the `sacrebleu` command: the same text gives the same p-values.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sacrebleu
from sacrebleu.significance import PairedTest, Result

from heedful.errors import UsageError

LEVEL = 0.05  # p-values below it are called significant


@dataclass(frozen=True)
class SystemScore:
    """One system's corpus score, with mean and 95% confidence interval by bootstrap."""

    value: float
    mean: float
    interval: float  # half width: the interval is mean ± interval


@dataclass(frozen=True)
class PairedScore:
    """One metric of systems A and B: p-values of both tests, and reproducible signatures."""

    name: str
    a: SystemScore
    b: SystemScore
    bootstrap_p: float
    randomization_p: float
    bootstrap_signature: str
    randomization_signature: str

    @property
    def difference(self) -> float:
        """The score of B minus the score of A."""
        return self.b.value - self.a.value

    @property
    def is_significant(self) -> bool:
        """Return whether both tests reject chance at LEVEL; equal scores are never significant."""
        return self.difference != 0 and max(self.bootstrap_p, self.randomization_p) < LEVEL

    @property
    def verdict(self) -> str:
        """The result as a sentence."""
        if self.difference == 0:
            return f"{self.name}: A and B score the same."
        better = "B" if self.difference > 0 else "A"
        by = f"{better} is better by {abs(self.difference):.2f}"
        if self.is_significant:
            return f"{self.name}: {by}, which is significant (p < {LEVEL} in both tests)."
        return f"{self.name}: {by}, which is not significant (p < {LEVEL} is needed in both tests)."


def paired_scores(
    a: Sequence[str], b: Sequence[str], references: Sequence[str], tokenize: str = "13a", lowercase: bool = False
) -> tuple[PairedScore, ...]:
    """Return BLEU and chrF of both systems, tested against each other."""
    _require_seed()
    bootstrap = _paired_test("bs", a, b, references, tokenize, lowercase)
    randomization = _paired_test("ar", a, b, references, tokenize, lowercase)
    return tuple(
        PairedScore(
            _plain(name),
            _system_score(one.a),
            _system_score(one.b),
            _p_value(one.b),
            _p_value(randomization[name].b),
            one.signature,
            randomization[name].signature,
        )
        for name, one in bootstrap.items()
    )


class _Tested(NamedTuple):
    a: Result
    b: Result
    signature: str


def _paired_test(
    kind: str, first: Sequence[str], second: Sequence[str], references: Sequence[str], tokenize: str, lowercase: bool
) -> dict[str, _Tested]:
    """Run the test "bs" or "ar" for each metric.

    Return the results by sacreBLEU's metric names.
    """
    # force: no warning about tokenized text, which tokenize="none" expects.
    metrics = {
        "BLEU": sacrebleu.BLEU(tokenize=tokenize, lowercase=lowercase, force=True),
        "chrF": sacrebleu.CHRF(lowercase=lowercase),
    }
    systems: list[tuple[str, Sequence[str]]] = [("A", list(first)), ("B", list(second))]
    signatures, columns = PairedTest(systems, metrics, [list(references)], test_type=kind)()
    results = {name: [cell for cell in columns[name] if isinstance(cell, Result)] for name in signatures}
    return {name: _Tested(a, b, str(signatures[name])) for name, (a, b) in results.items()}


def _system_score(result: Result) -> SystemScore:
    assert result.mean is not None, "the bootstrap test has a mean"
    assert result.ci is not None, "the bootstrap test has an interval"
    return SystemScore(float(result.score), float(result.mean), float(result.ci))


def _p_value(result: Result) -> float:
    assert result.p_value is not None, "system B is tested"
    return float(result.p_value)


def _plain(name: str) -> str:
    """sacreBLEU calls chrF "chrF2" after its β; `heedful evaluate` says chrF."""
    return "chrF" if name.startswith("chrF") else name


def _require_seed() -> None:
    seed = os.environ.get("SACREBLEU_SEED", "12345")
    if not (seed.isascii() and seed.isdigit() and int(seed)):
        raise UsageError(
            f'SACREBLEU_SEED = "{seed}" is not a positive integer. Correct it, or unset it to use the default, 12345.'
        )
