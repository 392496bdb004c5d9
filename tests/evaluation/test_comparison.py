"""Comparisons against the sacrebleu command, and against counts by hand."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import sacrebleu

import heedful
from heedful.errors import InputError, UsageError
from heedful.evaluation.comparison import Comparison, compare_translations
from heedful.evaluation.significance import paired_scores
from heedful.grammar import pairs

TEST_SET = list(pairs("test", 60))
SOURCES, REFERENCES = [pair.english for pair in TEST_SET], [pair.german for pair in TEST_SET]


def worsened(seed: int, share: float) -> list[str]:
    """The references without some of their words."""
    draw = random.Random(seed)
    return [" ".join(word for word in line.split() if draw.random() > share) for line in REFERENCES]


A, B = worsened(1, 0.2), worsened(2, 0.1)


@pytest.fixture(scope="module")
def found() -> Comparison:
    return compare_translations(A, B, REFERENCES, SOURCES)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("systems")
    for name, lines in {"a": A, "b": B, "source": SOURCES, "reference": REFERENCES}.items():
        (directory / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return directory


def sacrebleu_says(files: Path, *options: str) -> str:
    """What the sacrebleu command prints for the two systems."""
    call = [sys.executable, "-m", "sacrebleu", "reference", "-i", "a", "b", "-m", "bleu", "chrf", "-w", "4", *options]
    done = subprocess.run([*call, "-f", "text"], cwd=files, capture_output=True, text=True, check=True)
    return done.stdout


def test_bootstrap_matches_the_sacrebleu_command(found: Comparison, files: Path) -> None:
    printed = sacrebleu_says(files, "--paired-bs")
    means = re.findall(r"([\d.]+) \(([\d.]+) ± ([\d.]+)\)", printed)
    scores = [one for system in ("a", "b") for one in (getattr(score, system) for score in found.scores)]
    assert len(means) == len(scores) == 4
    for row, score in zip(means, scores, strict=True):
        assert [float(cell) for cell in row] == pytest.approx([score.value, score.mean, score.interval], abs=1e-4)
    p_values = [float(p) for p in re.findall(r"p = ([\d.]+)", printed)]
    assert p_values == pytest.approx([score.bootstrap_p for score in found.scores], abs=1e-4)
    for score in found.scores:
        assert score.bootstrap_signature in printed


def test_randomization_matches_the_sacrebleu_command(found: Comparison, files: Path) -> None:
    printed = sacrebleu_says(files, "--paired-ar")
    p_values = [float(p) for p in re.findall(r"p = ([\d.]+)", printed)]
    assert p_values == pytest.approx([score.randomization_p for score in found.scores], abs=1e-4)
    for score in found.scores:
        assert score.randomization_signature in printed


def test_clear_difference_is_significant_and_noise_is_not(found: Comparison) -> None:
    assert [score.is_significant for score in found.scores] == [True, True]
    assert re.fullmatch(r"BLEU: B is better by \d+\.\d\d, which is significant .*", found.scores[0].verdict)
    bleu, _ = paired_scores(worsened(3, 0.1), worsened(4, 0.1), REFERENCES)
    assert not bleu.is_significant
    assert "which is not significant" in bleu.verdict


def test_a_system_is_not_better_than_itself() -> None:
    """Its p-value is the smallest that sacreBLEU gives, and means nothing."""
    found = compare_translations(A, A, REFERENCES)
    assert found.scores[0].bootstrap_p < 0.05
    assert not found.scores[0].is_significant
    assert found.scores[0].verdict == "BLEU: A and B score the same."
    assert (found.a_better, found.b_better, found.most_different) == (0, 0, ())


def test_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = paired_scores(A, B, REFERENCES)
    again, _ = paired_scores(A, B, REFERENCES)
    monkeypatch.setenv("SACREBLEU_SEED", "1")
    other, _ = paired_scores(A, B, REFERENCES)
    assert first == again
    assert first.a.mean != other.a.mean
    assert "seed:1|" in other.bootstrap_signature


@pytest.mark.parametrize("seed", ["none", "0", "x", "-1", ""])
def test_invalid_seed_is_rejected(seed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", seed)
    with pytest.raises(UsageError, match="is not a positive integer"):
        paired_scores(A, B, REFERENCES)


@pytest.mark.parametrize("lowercase", [False, True])
def test_case(lowercase: bool) -> None:
    bleu, chrf = paired_scores([line.lower() for line in REFERENCES], REFERENCES, REFERENCES, lowercase=lowercase)
    assert (bleu.difference == 0) is lowercase
    assert (chrf.difference == 0) is lowercase


def test_lengths(found: Comparison) -> None:
    lengths = [len(line.split()) for line in REFERENCES]
    assert sum(bucket.sentences for bucket in found.by_length) == len(REFERENCES)
    for bucket in found.by_length:
        inside = [i for i, length in enumerate(lengths) if bucket.shortest <= length <= (bucket.longest or 10**6)]
        assert bucket.sentences == len(inside)
        references = [[REFERENCES[i] for i in inside]]
        bleu = sacrebleu.corpus_bleu([A[i] for i in inside], references, force=True)
        chrf = sacrebleu.corpus_chrf([B[i] for i in inside], references)
        assert (bucket.bleu_a, bucket.chrf_b) == (bleu.score, chrf.score)


def test_every_length_is_in_one_bucket() -> None:
    lines = [" ".join(["wort"] * count) for count in range(1, 61)]
    found = compare_translations(lines, lines, lines)
    assert [bucket.words for bucket in found.by_length] == [
        *("up to 5", "6–10", "11–15", "16–20", "21–30", "31–40", "41–50", "51 or more")
    ]
    assert [bucket.sentences for bucket in found.by_length] == [5, 5, 5, 5, 10, 10, 10, 10]


def test_sentences_that_differ_most(found: Comparison) -> None:
    differences = [
        sacrebleu.sentence_chrf(b, [reference]).score - sacrebleu.sentence_chrf(a, [reference]).score
        for a, b, reference in zip(A, B, REFERENCES, strict=True)
    ]
    expected = sorted(differences, key=lambda difference: -abs(difference))[:10]
    assert [pair.difference for pair in found.most_different] == expected
    for pair in found.most_different:
        assert (pair.source, pair.a) == (SOURCES[pair.line - 1], A[pair.line - 1])
    assert found.a_better == sum(difference < 0 for difference in differences)
    assert found.b_better == sum(difference > 0 for difference in differences)


def test_two_files_from_python(files: Path, found: Comparison) -> None:
    compared = heedful.compare(files / "a", files / "b", reference=files / "reference")
    assert compared.scores == found.scores
    assert compared.most_different[0].source is None
    assert isinstance(compared, heedful.Comparison)


def test_line_count_mismatch_is_rejected(files: Path, tmp_path: Path) -> None:
    (tmp_path / "short").write_text("ein Satz\n")
    with pytest.raises(InputError, match=r"short has 1 line, but there are 60 references\."):
        heedful.compare(files / "a", tmp_path / "short", reference=files / "reference")
