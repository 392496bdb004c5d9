"""BLEU and chrF by sacreBLEU, with the signatures that reproduce them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sacrebleu

from heedful.errors import InputError
from heedful.formatting import plural


@dataclass(frozen=True)
class Score:
    """A corpus score with its sacreBLEU signature."""

    name: str
    value: float
    signature: str
    detail: str = ""  # BLEU's precisions, brevity penalty and lengths
    length_ratio: float | None = None  # of BLEU: words of the translations per word of the references

    def __str__(self) -> str:
        return f"{self.name} {self.value:.2f} {self.detail}\n  {self.signature}".replace(" \n", "\n")


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a", lowercase: bool = False) -> Score:
    """Return the corpus BLEU."""
    _require_same_length(hypotheses, references)
    # force: no warning about tokenized text, which tokenize="none" expects.
    metric = sacrebleu.BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    result = metric.corpus_score(list(hypotheses), [list(references)])
    precisions = "/".join(f"{p:.1f}" for p in result.precisions)
    detail = f"{precisions} (BP {result.bp:.3f}, ratio {result.ratio:.3f}, {result.sys_len}/{result.ref_len} words)"
    return Score("BLEU", float(result.score), str(metric.get_signature()), detail, float(result.ratio))


def chrf(hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False) -> Score:
    """Return the corpus chrF."""
    _require_same_length(hypotheses, references)
    metric = sacrebleu.CHRF(lowercase=lowercase)
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Score("chrF", float(result.score), str(metric.get_signature()))


def _require_same_length(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if not references:
        raise InputError("Nothing to score: there are no references. Provide at least one.")
    if len(hypotheses) != len(references):
        raise InputError(
            f"Found {plural(len(hypotheses), 'translation')} but {plural(len(references), 'reference')}. "
            "Provide one reference per translation."
        )


def require_detokenized(references: Sequence[str]) -> None:
    """Raise if a reference looks like subwords, on which BLEU is meaningless."""
    for number, line in enumerate(references, start=1):
        if "\u2581" in line or "@@ " in line:
            raise InputError(
                f'Reference line {number} seems to be split into subwords ("{line[:40]}"). '
                "BLEU is defined on raw text. Provide detokenized references."
            )
