"""R26: many sentences on one line are all translated, and equally by every interface."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_injection import count
from server_process import server

import synthetic_tasks as tasks
from fake_engine import FirstSentenceEngine
from heedful.cli.main import main
from heedful.decoding import translator as module
from heedful.decoding.search import Hypothesis
from heedful.decoding.translator import Translator
from heedful.engines.load import load

pytestmark = pytest.mark.faults

LARGE = {"characters": 10**6, "tokens": 10**6, "waiting": 10**7, "body": 10**7}
LENGTHS = [1, 2, 3, 9, 50, 200, 300] + [random.Random(26).randint(1, 300) for _ in range(count(3, 93))]


def line(sentences: int) -> str:
    draw = random.Random(f"26 {sentences}")
    found = [f"{tasks.line(26, draw.randrange(10**6)).capitalize()}{draw.choice('.!?')}" for _ in range(sentences)]
    return "".join(one + draw.choice([" ", "  ", " \t"]) for one in found).strip()


def by_command(run: Path, lines: list[str], directory: Path) -> list[str]:
    (directory / "in").write_text("".join(f"{one}\n" for one in lines), encoding="utf-8")
    assert main(["translate", str(run), "--input", str(directory / "in"), "--output", str(directory / "out")]) == 0
    return (directory / "out").read_text(encoding="utf-8").removesuffix("\n").split("\n")


def by_server(run: Path, lines: list[str], **options: Any) -> list[str]:
    with server(run, **options, **LARGE) as one:
        answers = [one.translate(text) for text in lines]
        assert {status for status, _ in answers} == {200}
        return [body["translatedText"] for _, body in answers]


def by_python(run: Path, lines: list[str]) -> list[str]:
    return [one.text for one in load(run).translate(lines)]


def speak_only_first_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decidable: of each segment the first sentence comes back, as it was."""

    def search(self: Translator, sources: list[list[int]], **_: Any) -> list[list[Hypothesis]]:
        found = FirstSentenceEngine(self.model.tokenizer).search(sources, 1)
        return [[Hypothesis(tuple(ids), 0.0, 0.0) for ids in one] for one in found]

    monkeypatch.setattr(Translator, "search", search)


def test_number_of_sentences_is_kept(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: Callable[[int, str], None]
) -> None:
    lines = [line(length) for length in LENGTHS]
    speak_only_first_sentences(monkeypatch)
    for found in (
        by_command(reference, lines, tmp_path),
        by_python(reference, lines),
        by_server(reference, lines, first_sentence=True),
    ):
        assert found == lines
    counted(3 * sum(LENGTHS), "sentences")


def test_cli_python_and_server_agree(reference: Path, tmp_path: Path, counted: Callable[[int, str], None]) -> None:
    """With the real model, whatever its translations."""
    lines = [line(length) for length in LENGTHS[:7]]
    found = by_python(reference, lines)
    assert len(set(found)) == len(found), "otherwise nothing is compared"
    assert by_command(reference, lines, tmp_path) == found
    assert by_server(reference, lines, batch_seconds=None) == found
    counted(len(lines), "lines through three interfaces")


def test_control_without_segmentation(reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line(3)]
    speak_only_first_sentences(monkeypatch)
    segment_text = module.segment_text
    monkeypatch.setattr(module, "segment_text", lambda *given: segment_text(*given[:3], False))
    for found in (
        by_command(reference, lines, tmp_path),
        by_python(reference, lines),
        by_server(reference, lines, first_sentence=True, without="segmentation"),
    ):
        assert found != lines
        assert len(found[0]) < len(lines[0])
