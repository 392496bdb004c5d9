"""The ONNX sentence splitter, run by minisbd as Argos Translate does."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from heedful.interop.sentence_splitter_onnx import build_sentence_splitter
from heedful.text.sentence_splitting import split_sentences


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Any:
    minisbd = pytest.importorskip("minisbd")
    path = tmp_path_factory.mktemp("minisbd") / "en.onnx"
    path.write_bytes(build_sentence_splitter())
    return minisbd.SBDetect(str(path), use_gpu=False, max_threads=1)


SPLIT = [
    ["One sentence."],
    ["No full stop"],
    ["One sentence.", "And another one!", "A third?", "Yes"],
    ["Wait…", "What?", "Really?!", "Yes."],
    ["He said “No.”", "Then he left."],
    ["(It rained.)", "It stopped."],
    ["It was in 1990.", "Then it ended."],
    ["This is 3.5 or so.", "Good."],
    ["Das ist so.", "Übrigens: Ähnlich.", "Über 100."],
    ["今日は。", "元気ですか？", "「はい。」", "そう"],
    ["هل أنت هنا؟", "نعم."],
    ["यह है।", "वह है।"],
    ["Это так.", "Да."],
]
UNSPLIT = [
    "It is e.g. small and so on.",
    "Mr. Smith met Mrs. J. Jones and Dr. Brown.",
    "We met Mr. Smith.",
    "version 2.0.1 of the file a.b",
    "Is it? asked he.",
    "Hello , world",
]


@pytest.mark.parametrize("sentences", SPLIT, ids=lambda sentences: sentences[0])
def test_sentence_boundaries(detector: Any, sentences: list[str]) -> None:
    without_spaces = any("\u3000" <= character <= "\uffef" for character in sentences[0])
    text = ("" if without_spaces else " ").join(sentences)
    assert detector.sentences(text) == sentences


@pytest.mark.parametrize("text", UNSPLIT)
def test_no_boundary_inside_a_sentence(detector: Any, text: str) -> None:
    assert detector.sentences(text) == [text]


def test_long_text_is_split_without_loss(detector: Any) -> None:
    """minisbd processes text in chunks of 1,000 characters."""
    sentences = [f"This is sentence number {number:04d}." for number in range(200)]
    assert detector.sentences(" ".join(sentences)) == sentences
    long = "word " * 1_000 + "end."
    assert " ".join(detector.sentences(long)).replace(" ", "") == long.replace(" ", "")


def test_paragraphs_and_empty_text(detector: Any) -> None:
    assert detector.sentences("One. Two.\n\nThree.") == ["One.", "Two.", "Three."]
    assert detector.sentences("") == []


def test_model_is_small_and_the_same_in_every_process() -> None:
    program = (
        "import sys; from heedful.interop.sentence_splitter_onnx import build_sentence_splitter as build; "
        "sys.stdout.buffer.write(build())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    assert done.stdout == build_sentence_splitter()
    assert len(build_sentence_splitter()) < 2_000_000


WORDS = (
    *(
        "the dog",
        "a TV",
        "OK",
        "Mr",
        "Dr",
        "Prof",
        "John",
        "J",
        "I",
        "X",
        "C",
        "vitamin",
        "Plan",
        "B",
        "The",
        "He",
    ),
    *(
        "She",
        "It",
        "Then",
        "Smith",
        "and",
        "of",
        "12",
        "3",
        "1990",
        "No",
        "e.g",
        "i.e",
        "z.B",
        "z",
        "bzw",
        "p",
        "Fig",
        "Mai",
    ),
    *("März", "Januar", "Der", "Die", "Ende", "U.S", "PhD", "über", "Übrigens", "St", "Main", "42nd", "McLean"),
)
MARKS = (" ", " ", " ", ". ", ". ", ". ", "! ", "? ", "… ", ", ", ".” ", ".) ", "?! ")


@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_same_boundaries_as_split_sentences(language: str, tmp_path: Path) -> None:
    """On generated lines of words around which the rules differ."""
    minisbd = pytest.importorskip("minisbd")
    (tmp_path / "x.onnx").write_bytes(build_sentence_splitter(language))
    detector = minisbd.SBDetect(str(tmp_path / "x.onnx"), use_gpu=False, max_threads=1)
    choose = random.Random(1)
    for _ in range(1_500):
        line = "".join(choose.choice(WORDS) + choose.choice(MARKS) for _ in range(choose.randint(1, 9)))
        line = f"{line}{choose.choice(WORDS)}."
        if line.islower():  # judged as a whole, which a window cannot
            continue
        assert detector.sentences(line) == [sentence.strip() for sentence in split_sentences(line, language)]


@pytest.mark.parametrize(
    "line",
    [
        "We watched the TV. The dog sleeps.",
        "It is 3. The end.",
        "OK. No. He came.",
        "At Main St. OK.",
        "In St. Louis.",
        "42nd St. OK.",
    ],
)
def test_a_short_word_does_not_join_two_sentences(detector: Any, line: str) -> None:
    assert detector.sentences(line) == [sentence.strip() for sentence in split_sentences(line)]
