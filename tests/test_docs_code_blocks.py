"""Every code block of README, tutorials and how-to guides runs, long ones shortened.

A page is one shell script: its ```bash, ```console and ```python blocks in order, in a directory of its own. There,
`heedful` is a wrapper that trains for a few steps and starts servers in the background.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from heedful import grammar

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        ROOT / "README.md",
        *(
            page
            for kind in ("tutorials", "how-to")
            for page in ROOT.glob(f"docs/{kind}/*.md")
            if page.name != "index.md"
        ),
    ]
)

# Commands that are not run here, each with its reason. An entry that matches nothing fails.
SKIPPED = {
    "make ": "sets up another environment; CI runs the same target",
    "pip install": "changes the environment that the tests run in",
    "torchrun ": "needs several GPUs; `make distributed` runs it with processes on a CPU",
    "argostranslate": "not installed here; `make formats` installs packages into the real one",
    "mt.example.org": "needs a public name and nginx; tests/formats/test_nginx.py runs this configuration",
    "recipes/wmt14": "needs WMT14, which is not in the repository; tests/cli/test_dry_run.py runs it",
}
LANGUAGES = {"bash", "console", "python", "text", "toml", "json", "nginx"}
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# A few steps of the smallest model: enough to show that a command works.
SHORT = (
    "--set training.steps=4 --set training.validate_every=4 --set training.save_every=2 --set training.average=2 "
    "--set training.threads=1"
)
WRAPPER = """#!/usr/bin/env bash
case "$1" in
  train) exec "{python}" -m heedful "$@" {short} ;;
  serve)
    "{python}" -m heedful "$@" > serve.log 2>&1 < /dev/null & echo $! >> servers
    for _ in $(seq 300); do
      curl -sf -o /dev/null http://127.0.0.1:{port}/health && exit 0
      kill -0 $! || {{ cat serve.log; exit 1; }}
      sleep 0.2
    done
    cat serve.log; exit 1 ;;
  *) exec "{python}" -m heedful "$@" ;;
esac
"""


class Block(NamedTuple):
    language: str
    code: str


def blocks(page: str) -> list[Block]:
    return [Block(language.strip(), code) for language, code in FENCE.findall(page)]


def commands(code: str) -> list[str]:
    """Commands of a shell block, continuation lines joined."""
    joined = re.sub(r"\\\n\s*", "", code)
    return [line for line in joined.split("\n") if line.strip() and not line.lstrip().startswith("#")]


def typed(code: str) -> str:
    """Of a ```console block, what the user types."""
    return "\n".join(line.removeprefix("$ ") for line in code.split("\n") if line.startswith("$ "))


def is_skipped(command: str) -> bool:
    return any(mark in command for mark in SKIPPED)


def script(page: str) -> str:
    """Return the page as a script that stops at a failing command and names its block."""
    lines = ["set -eo pipefail"]
    for number, block in enumerate(blocks(page), start=1):
        if block.language == "python":
            lines += [f"echo '== block {number}' >&2", f"python - <<'END_OF_BLOCK'\n{block.code}END_OF_BLOCK"]
        elif block.language in ("bash", "console"):
            code = typed(block.code) if block.language == "console" else block.code
            kept = [command for command in commands(code) if not is_skipped(command)]
            lines += [f"echo '== block {number}' >&2", *kept]
    return "\n".join(lines) + "\n"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def write_corpus(directory: Path) -> None:
    """The files that the pages name, from the built-in corpus."""
    pairs = list(grammar.pairs("train", 500))
    parts = {"train": pairs[:400], "valid": pairs[400:420], "test": pairs[420:440], "new": pairs[440:445]}
    for name, part in {**parts, "domain": pairs[445:]}.items():
        for side, lines in (("en", [pair.english for pair in part]), ("de", [pair.german for pair in part])):
            (directory / f"{name}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of a few steps in each direction, for pages that begin with a trained model."""
    directory = tmp_path_factory.mktemp("trained")
    write_corpus(directory)
    for source, target in (("en", "de"), ("de", "en")):
        files = f"--source train.{source} --target train.{target}"
        valid = f"--valid-source valid.{source} --valid-target valid.{target}"
        languages = f"--set data.source_language={source} --set data.target_language={target}"
        options = f"{files} {valid} {languages} --out {source}-{target} {SHORT}".split()
        call = [sys.executable, "-m", "heedful", "train", *options]
        subprocess.run(call, cwd=directory, check=True, capture_output=True, env=environment(directory))
    forward, backward = directory / "en-de", directory / "de-en"
    return {"runs/demo": forward, "runs/mine": forward, "runs/en-de": forward, "runs/de-en": backward}


def environment(directory: Path) -> dict[str, str]:
    path = os.pathsep.join([str(directory / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src"), "HOME": str(directory)}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A directory as after `make setup`; servers started in it end with the test."""
    write_corpus(tmp_path)
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes")
    (tmp_path / "bin").mkdir()
    (tmp_path / ".venv").symlink_to(tmp_path, target_is_directory=True)  # .venv/bin/heedful is the wrapper
    yield tmp_path
    started = tmp_path / "servers"
    for pid in started.read_text().split() if started.exists() else []:
        subprocess.run(["kill", pid], check=False)


def made(page: str) -> set[str]:
    """The runs that a page trains itself."""
    shell = [command for block in blocks(page) if block.language == "bash" for command in commands(block.code)]
    trains = [command for command in shell if " train " in command and "--dry-run" not in command]
    return {name for command in trains if not is_skipped(command) for name in re.findall(r"--out (runs/\S+)", command)}


@pytest.mark.docs
@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_runs(page: Path, place: Path, trained: dict[str, Path]) -> None:
    text, port = page.read_text(encoding="utf-8"), free_port()
    wrapper = place / "bin" / "heedful"
    wrapper.write_text(WRAPPER.format(python=sys.executable, short=SHORT, port=port), encoding="utf-8")
    wrapper.chmod(0o755)
    for name in trained.keys() - made(text):
        shutil.copytree(trained[name], place / name)
    code = script(text).replace("heedful serve", f"heedful serve --port {port}").replace("--port 5000", "")
    code = code.replace(":5000", f":{port}")
    done = subprocess.run(
        ["bash", "-c", code], cwd=place, env=environment(place), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_says_what_it_is(page: Path) -> None:
    """A block without a language would not be run."""
    assert {block.language for block in blocks(page.read_text(encoding="utf-8"))} <= LANGUAGES


def test_every_exception_is_still_needed() -> None:
    text = [page.read_text(encoding="utf-8") for page in PAGES]
    written = [command for page in text for block in blocks(page) for command in commands(block.code)]
    assert [mark for mark in SKIPPED if not any(mark in command for command in written)] == []


def test_a_failing_command_stops_the_page() -> None:
    page = "```bash\ntrue\n```\n\n```python\nassert 1 + 1 == 3\n```\n\n```bash\necho late\n```\n"
    done = subprocess.run(["bash", "-c", script(page)], capture_output=True, text=True, env=environment(ROOT))
    assert done.returncode != 0
    assert "late" not in done.stdout
    assert done.stderr.count("== block") == 2


def test_what_is_typed_is_told_from_what_is_printed() -> None:
    page = "```console\n$ echo typed\nprinted\n```\n\n```text\necho never\n```\n"
    assert "echo typed" in script(page)
    assert "printed" not in script(page)
    assert "never" not in script(page)


def test_long_commands_are_one_command() -> None:
    assert commands("a \\\n   b\n# a comment\n\nc\n") == ["a b", "c"]
