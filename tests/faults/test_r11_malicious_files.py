"""R11: malicious files: no code runs, a typed error within a second, bounded memory."""

from __future__ import annotations

import gc
import os
import pickle
import resource
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import malicious_files
import pytest
from fault_injection import forked

from heedful import manifest as manifest_module
from heedful import recipes
from heedful.engines.load import load
from heedful.errors import HeedfulError
from heedful.storage import model_directory
from heedful.text.text_files import read_lines
from heedful.training.checkpoints import read_progress

pytestmark = pytest.mark.faults

REFUSED, ACCEPTED, SLOW, OTHER = 10, 11, 12, 13
MEMORY = 512 * 1024 * 1024  # more than the process has at the start
SECONDS = 1.0


def outcome(read: Callable[[], object], tmp_path: Path) -> int:
    """Return the outcome of reading it in a process with little memory and a CPU-time clock."""

    def work() -> int:
        os.chdir(tmp_path)
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        began, code = time.process_time(), ACCEPTED
        try:
            read()
        except HeedfulError as error:
            print(error)
            code = REFUSED
        return code if time.process_time() - began <= SECONDS else SLOW

    return forked(work, tmp_path / "log.txt")


def says(tmp_path: Path) -> str:
    return (tmp_path / "log.txt").read_text()[-3_000:]


@pytest.mark.parametrize("name", malicious_files.MODELS)
def test_models(reference: Path, tmp_path: Path, name: str, counted: Callable[[int, str], None]) -> None:
    model = Path(shutil.copytree(reference / "model", tmp_path / "model"))
    malicious_files.MODELS[name](model)
    assert outcome(lambda: load(model), tmp_path) == REFUSED, says(tmp_path)
    assert not (tmp_path / malicious_files.TRACE).exists()
    counted(1, "malicious files")


@pytest.mark.parametrize("name", malicious_files.TEXTS)
def test_texts(tmp_path: Path, name: str, counted: Callable[[int, str], None]) -> None:
    path = malicious_files.TEXTS[name](tmp_path)
    assert outcome(lambda: sum(1 for _ in read_lines(path)), tmp_path) == REFUSED, says(tmp_path)
    counted(1, "malicious files")


@pytest.mark.parametrize("name", malicious_files.RECIPES)
def test_recipes(tmp_path: Path, name: str, counted: Callable[[int, str], None]) -> None:
    path = malicious_files.RECIPES[name](tmp_path)
    assert outcome(lambda: recipes.read(path), tmp_path) == REFUSED, says(tmp_path)
    assert not (tmp_path / malicious_files.TRACE).exists()
    counted(1, "malicious files")


@pytest.mark.parametrize(
    "content",
    [
        malicious_files.deep,
        malicious_files.huge,
        lambda: b'{"step": "x"}',
        lambda: b'{"step": true}',
        lambda: b'{"best": []}',
    ],
)
def test_states(tmp_path: Path, content: Callable[[], bytes]) -> None:
    (tmp_path / "state.json").write_bytes(content())
    assert outcome(lambda: read_progress(tmp_path), tmp_path) == REFUSED, says(tmp_path)


def test_control_executed_payload_is_detected(tmp_path: Path) -> None:
    assert outcome(lambda: pickle.loads(pickle.dumps(malicious_files.Payload())), tmp_path) == ACCEPTED
    assert (tmp_path / malicious_files.TRACE).exists()


def test_control_without_limits_memory_or_time_run_out(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Path(shutil.copytree(reference / "model", tmp_path / "model"))
    monkeypatch.setattr(manifest_module, "MOST_JSON", 10**12)
    monkeypatch.setattr(model_directory, "MOST_JSON", 10**12)
    malicious_files.MODELS["huge JSON"](model)
    assert outcome(lambda: load(model), tmp_path) != REFUSED


def test_control_without_plain_names_other_files_are_read(
    reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Path(shutil.copytree(reference / "model", tmp_path / "model"))
    monkeypatch.setattr(manifest_module, "_is_entry", lambda *_: True)
    malicious_files.MODELS["../ in the manifest"](model)
    outcome(lambda: load(model), tmp_path)
    assert "etc/passwd" in says(tmp_path), "the file outside was looked at"
