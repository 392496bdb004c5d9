"""Exported packages in the real Argos Translate and LibreTranslate: `make formats`.

Both run unmodified and offline, in their own environment (.venv-libretranslate), because their pinned dependencies
conflict with heedful's.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

import heedful
from heedful.cli.main import main

pytestmark = pytest.mark.formats
THEIRS = Path(__file__).parents[2] / ".venv-libretranslate" / "bin"
SENTENCES = [
    "The old man is looking for his red hat.",
    "Why did the teacher give the small child the new book?",
    "They are reading a long letter.",
]
LINES = [*SENTENCES, " ".join(SENTENCES), "", f"{SENTENCES[0]}\n{SENTENCES[2]}"]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Packages in both directions and a CTranslate2 export of one briefly trained model."""
    if not (THEIRS / "libretranslate").exists():
        pytest.skip("LibreTranslate is not installed: make formats")
    top = tmp_path_factory.mktemp("packages")
    small = {"model.N": 2, "model.d_model": 64, "model.d_ff": 128, "model.h": 4, "training.steps": 150}
    run = heedful.train(
        out=top / "run",
        overrides={"data.builtin": True, "data.builtin_pairs": 5_000, "training.validate_every": 150, **small},
        device="cpu",
    )
    for name, languages in {"en_de": ("en", "de"), "de_en": ("de", "en")}.items():
        options = ["--to", "argos", "--out", str(top / f"{name}.argosmodel"), "--languages", *languages]
        assert main(["export", str(run.path), *options]) == 0
    assert main(["export", str(run.path), "--to", "ctranslate2", "--out", str(top / "ct2")]) == 0
    return {name: top / name for name in ("run", "en_de.argosmodel", "de_en.argosmodel", "ct2")}


@pytest.fixture(scope="module")
def expected(packages: dict[str, Path]) -> list[str]:
    """CTranslate2's translation of each line with the settings of Argos Translate."""
    ctranslate2 = pytest.importorskip("ctranslate2")
    translator = ctranslate2.Translator(str(packages["ct2"]), intra_threads=1)
    tokens = sentencepiece.SentencePieceProcessor(model_file=str(packages["ct2"] / "sentencepiece.model"))
    said = {}
    for sentence in SENTENCES:
        [found] = translator.translate_batch([tokens.encode(sentence, out_type=str)], beam_size=4, length_penalty=0.2)
        said[sentence] = tokens.decode(found.hypotheses[0])
    whole = " ".join(said.values())
    return [*said.values(), whole, "", f"{said[SENTENCES[0]]}\n{said[SENTENCES[2]]}"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables that redirect all files to a new directory and block the network."""
    directory = str(tmp_path_factory.mktemp("home"))
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    door = "http://127.0.0.1:9"
    kept |= {"http_proxy": door, "https_proxy": door, "all_proxy": door, "no_proxy": "127.0.0.1"}
    return {**kept, "HOME": directory, "XDG_DATA_HOME": directory, "XDG_CONFIG_HOME": directory, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def translated(packages: dict[str, Path], home: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines translated by Argos Translate, with both packages installed."""
    lines = tmp_path_factory.mktemp("lines") / "lines.json"
    lines.write_text(json.dumps(LINES), encoding="utf-8")
    script = Path(__file__).parent / "installed.py"
    both = [packages["en_de.argosmodel"], packages["de_en.argosmodel"]]
    done = subprocess.run(
        [THEIRS / "python", script, lines, *both], env=home, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said: list[str] = json.loads(done.stdout.strip().split("\n")[-1])
    return said


def test_argos_translate(translated: list[str], expected: list[str]) -> None:
    assert translated == expected


@pytest.fixture(scope="module")
def server(translated: list[str], home: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a LibreTranslate server with the installed packages."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    directory = tmp_path_factory.mktemp("server")
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [THEIRS / "libretranslate", "--host", "127.0.0.1", "--port", str(port), "--disable-files-translation"],
            env=home,
            cwd=directory,
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            if process.poll() is not None or answers(address):
                break
            time.sleep(0.2)
        assert answers(address), (directory / "log").read_text()
        yield address
    finally:
        process.terminate()
        process.wait(20)


def answers(address: str) -> bool:
    try:
        return bool(urllib.request.urlopen(f"{address}/languages", timeout=5).status == 200)
    except (urllib.error.URLError, OSError):
        return False


def posted(address: str, **fields: str) -> Any:
    body = urllib.parse.urlencode(fields).encode()
    with urllib.request.urlopen(f"{address}/translate", body, timeout=60) as answer:
        return json.loads(answer.read())


def test_libretranslate(server: str, expected: list[str]) -> None:
    with urllib.request.urlopen(f"{server}/languages", timeout=10) as answer:
        codes = {language["code"]: language["targets"] for language in json.loads(answer.read())}
    assert set(codes) == {"en", "de"}
    assert "de" in codes["en"]
    for line, said in zip(LINES, expected, strict=True):
        if line:
            assert posted(server, q=line, source="en", target="de")["translatedText"] == said


def test_its_client_speaks_to_our_server(packages: dict[str, Path], home: dict[str, str]) -> None:
    """The unmodified client libretranslatepy works with `heedful serve`."""
    program = [sys.executable, "-m", "heedful", "serve", str(packages["run"]), "--port", "0"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        address = process.stderr.readline().split()[4]
        said = subprocess.run(
            [THEIRS / "python", Path(__file__).parent / "client.py", address, *SENTENCES],
            env=home, capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
    finally:
        process.terminate()
        process.communicate(timeout=30)
    found = json.loads(said.stdout)
    assert found["translated"] == [one.text for one in heedful.load(packages["run"]).translate(SENTENCES)]
    assert found["detected"][0]["language"] == "en"
    assert [one["code"] for one in found["languages"]] == ["en", "de"]
