"""Exported packages in the real Argos Translate and LibreTranslate: `make formats`.

Both run unmodified and offline, in their own environment (.venv-libretranslate), because their pinned dependencies
conflict with heedful's.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from libretranslate_server import THEIRS, heedful_serve, libretranslate, new_home

import heedful

pytestmark = pytest.mark.formats
SENTENCES = [
    "The old man is looking for his red hat.",
    "Why did the teacher give the small child the new book?",
    "They are reading a long letter.",
]
LINES = [*SENTENCES, " ".join(SENTENCES), "", f"{SENTENCES[0]}\n{SENTENCES[2]}"]


ARGOS_PENALTY = 0.2  # Argos Translate divides scores by n^0.2, whatever the model's alpha is


@pytest.fixture(scope="module", params=["packages", "automatic_packages"])
def exported(request: pytest.FixtureRequest) -> dict[str, Path]:
    found: dict[str, Path] = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def expected(exported: dict[str, Path]) -> list[str]:
    """CTranslate2's translation of each line with the settings of Argos Translate."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    translator = ctranslate2.Translator(str(exported["ct2"]), intra_threads=1)
    tokens = sentencepiece.SentencePieceProcessor(model_file=str(exported["ct2"] / "sentencepiece.model"))
    said = {}
    for sentence in SENTENCES:
        [found] = translator.translate_batch(
            [tokens.encode(sentence, out_type=str)], beam_size=4, length_penalty=ARGOS_PENALTY
        )
        said[sentence] = tokens.decode(found.hypotheses[0])
    whole = " ".join(said.values())
    return [*said.values(), whole, "", f"{said[SENTENCES[0]]}\n{said[SENTENCES[2]]}"]


@pytest.fixture(scope="module")
def home(exported: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return new_home(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def translated(exported: dict[str, Path], home: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines translated by Argos Translate, with both packages installed."""
    lines = tmp_path_factory.mktemp("lines") / "lines.json"
    lines.write_text(json.dumps(LINES), encoding="utf-8")
    script = Path(__file__).parent / "argos_translate.py"
    both = [exported["en_de.argosmodel"], exported["de_en.argosmodel"]]
    done = subprocess.run(
        [THEIRS / "python", script, lines, *both], env=home, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said: list[str] = json.loads(done.stdout.strip().split("\n")[-1])
    return said


def test_argos_translate(translated: list[str], expected: list[str]) -> None:
    assert translated == expected


def test_heedful_with_the_same_decoding(exported: dict[str, Path], translated: list[str]) -> None:
    """With Argos Translate's beam and length penalty, CTranslate2 translates the same."""
    program = (
        "import json, sys, heedful; run, alpha, *lines = sys.argv[1:]; "
        "found = heedful.load(run, engine='ctranslate2').translate(lines, beam=4, alpha=float(alpha)); "
        "print(json.dumps([one.text for one in found]))"
    )  # in its own process, because one process translates with one engine
    arguments = [str(exported["run"]), str(ARGOS_PENALTY), *SENTENCES]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120, check=True
    )
    assert json.loads(done.stdout.strip().split("\n")[-1]) == translated[: len(SENTENCES)]


@pytest.fixture(scope="module")
def formatted(expected: list[str], home: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the expected translations after LibreTranslate's edits of case and punctuation."""
    pairs = tmp_path_factory.mktemp("pairs") / "pairs.json"
    pairs.write_text(json.dumps(list(zip(LINES, expected, strict=True))), encoding="utf-8")
    program = [THEIRS / "python", Path(__file__).parent / "libretranslate_formatting.py", pairs]
    done = subprocess.run(program, env=home, capture_output=True, text=True, timeout=120, check=True)
    found: list[str] = json.loads(done.stdout.strip().split("\n")[-1])
    return found


@pytest.fixture(scope="module")
def server(translated: list[str], home: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """LibreTranslate itself, with the packages that were installed."""
    with libretranslate(home, tmp_path_factory.mktemp("server"), "--disable-files-translation") as address:
        yield address


def posted(address: str, **fields: str) -> Any:
    body = urllib.parse.urlencode(fields).encode()
    with urllib.request.urlopen(f"{address}/translate", body, timeout=60) as answer:
        return json.loads(answer.read())


def test_libretranslate(server: str, formatted: list[str]) -> None:
    with urllib.request.urlopen(f"{server}/languages", timeout=10) as answer:
        codes = {language["code"]: language["targets"] for language in json.loads(answer.read())}
    assert set(codes) == {"en", "de"}
    assert "de" in codes["en"]
    for line, said in zip(LINES, formatted, strict=True):
        if line:
            assert posted(server, q=line, source="en", target="de")["translatedText"] == said


def test_its_client_speaks_to_our_server(packages: dict[str, Path], home: dict[str, str]) -> None:
    """libretranslatepy, as it installs, and `heedful serve`."""
    with heedful_serve(packages["run"]) as address:
        said = subprocess.run(
            [THEIRS / "python", Path(__file__).parent / "libretranslate_client.py", address, *SENTENCES],
            env=home, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    found = json.loads(said.stdout)
    assert found["translated"] == [one.text for one in heedful.load(packages["run"]).translate(SENTENCES)]
    assert found["detected"][0]["language"] == "en"
    assert [one["code"] for one in found["languages"]] == ["en", "de"]
