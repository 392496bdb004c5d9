"""Scores against the functions and the command of sacreBLEU."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu

from heedful.errors import InputError
from heedful.evaluation.sacrebleu_scores import Score, bleu, chrf, require_detokenized

REFERENCES = [
    "Der Hund läuft über die Straße.",
    "Eine Frau, die ein Buch liest, sitzt auf einer Bank.",
    "Zwei Kinder spielen im Park .",
    "Ein Mann sagt: „Guten Morgen!“",
]
HYPOTHESES = [
    "der Hund läuft über eine Straße.",
    "Eine Frau, die liest, sitzt auf der Bank.",
    "Zwei Kinder spielen im Park .",
    "",
]


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("tokenize", ["13a", "none"])
def test_bleu_matches_sacrebleu(tokenize: str, lowercase: bool) -> None:
    score = bleu(HYPOTHESES, REFERENCES, tokenize, lowercase)
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=tokenize, lowercase=lowercase, force=True)
    assert score.value == expected.score
    assert score.name == "BLEU"
    case = "lc" if lowercase else "mixed"
    version = sacrebleu.__version__
    assert score.signature == f"nrefs:1|case:{case}|eff:no|tok:{tokenize}|smooth:exp|version:{version}"
    assert f"BP {expected.bp:.3f}, ratio {expected.ratio:.3f}, {expected.sys_len}/{expected.ref_len}" in score.detail
    assert score.detail.startswith("/".join(f"{precision:.1f}" for precision in expected.precisions))


@pytest.mark.parametrize("lowercase", [False, True])
def test_chrf_matches_sacrebleu(lowercase: bool) -> None:
    score = chrf(HYPOTHESES, REFERENCES, lowercase)
    metric = sacrebleu.CHRF(lowercase=lowercase)
    assert score.value == metric.corpus_score(HYPOTHESES, [REFERENCES]).score
    assert score.signature == str(metric.get_signature())
    if not lowercase:
        assert score.value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score


@pytest.mark.parametrize("lowercase", [False, True])
def test_scores_match_the_sacrebleu_command(tmp_path: Path, lowercase: bool) -> None:
    """The signature reproduces the score."""
    reference, hypothesis = tmp_path / "reference", tmp_path / "hypothesis"
    reference.write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    hypothesis.write_text("".join(f"{line}\n" for line in HYPOTHESES), encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sacrebleu",
        str(reference),
        "-i",
        str(hypothesis),
        "-m",
        "bleu",
        "chrf",
        "-w",
        "6",
    ]
    case = ["-lc", "--chrf-lowercase"] if lowercase else []
    done = subprocess.run([*command, *case], capture_output=True, check=True, text=True)
    for printed, score in zip(
        json.loads(done.stdout),
        (bleu(HYPOTHESES, REFERENCES, lowercase=lowercase), chrf(HYPOTHESES, REFERENCES, lowercase)),
        strict=True,
    ):
        assert score.value == pytest.approx(printed["score"], abs=1e-5)
        assert score.signature == printed["signature"]


def test_perfect_and_empty_translations() -> None:
    assert bleu(REFERENCES, REFERENCES).value == pytest.approx(100)
    assert chrf(REFERENCES, REFERENCES).value == pytest.approx(100)
    assert bleu([""] * 4, REFERENCES).value == 0
    assert chrf([""] * 4, REFERENCES).value == 0


def test_score_format() -> None:
    assert str(Score("BLEU", 12.345, "nrefs:1", "50.0/…")) == "BLEU 12.35 50.0/…\n  nrefs:1"
    assert str(Score("chrF", 12.3, "nrefs:1")) == "chrF 12.30\n  nrefs:1"


@pytest.mark.parametrize("line", ["\u2581Der \u2581Hund", "Der Hu@@ nd"])
def test_subword_references_are_rejected(line: str) -> None:
    with pytest.raises(InputError, match="Reference line 2 seems to be split into subwords"):
        require_detokenized(["Der Hund", line])


@pytest.mark.parametrize("score", [bleu, chrf])
def test_line_counts_must_match(score: Callable[..., Score]) -> None:
    with pytest.raises(InputError, match="1 translation but 2 references"):
        score(["a"], ["a", "b"])
    with pytest.raises(InputError, match="Nothing to score"):
        score([], [])


def test_double_at_sign_inside_a_word_is_accepted() -> None:
    require_detokenized(["write to a@@b now"])
