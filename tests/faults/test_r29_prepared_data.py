"""R29: a killed `heedful prepare` redoes no finished shard; flipped bits are detected."""

from __future__ import annotations

import random
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "preparation"))

import tiny_runs
from dirty_corpus import SHARD_BYTES, dirty_pairs, tree
from fault_injection import count, die, forked, tap

import synthetic_tasks as tasks
from heedful.errors import HeedfulError, InputError
from heedful.preparation.plan import Request
from heedful.preparation.prepare import prepare
from heedful.storage.prepared_directory import PreparedDirectory
from heedful.storage.run_directory import RunDirectory
from heedful.training import run_setup

pytestmark = pytest.mark.faults

KILLS, FLIPS = count(5, 50), count(200, 2_000)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("text")
    tasks.write(directory, "train", dirty_pairs())
    tasks.write(directory, "valid", tasks.pairs(tasks.reverse, range(300, 306)))
    corpus = {key.removeprefix("data."): (path,) for key, path in tasks.corpus_in(directory).items()}
    return {**corpus, "vocab_size": 300, "max_length": 40}


@pytest.fixture(scope="module")
def whole(text: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepared(text, tmp_path_factory.mktemp("whole") / "out").path


def prepared(text: dict[str, Any], out: Path) -> PreparedDirectory:
    return prepare(Request({"data": text}), out, lambda _: None, shard_bytes=SHARD_BYTES)


def killed(text: dict[str, Any], out: Path, event: int, log: Path) -> bool:
    """Prepare in a process that dies at the `event`-th disk change; return if it got there."""
    seen = 0

    def hit(*_: str) -> None:
        nonlocal seen
        seen += 1
        if seen == event:
            die()

    def work() -> None:
        with pytest.MonkeyPatch.context() as patch:
            tap(patch, out, hit)
            prepared(text, out)

    return forked(work, log) != 0


def events(text: dict[str, Any], out: Path) -> int:
    seen = 0

    def hit(*_: str) -> None:
        nonlocal seen
        seen += 1

    with pytest.MonkeyPatch.context() as patch:
        tap(patch, out, hit)
        prepared(text, out)
    return seen


def finished(out: Path) -> dict[str, int]:
    """Each finished shard and when it was written."""
    return {path.name: (path / "MANIFEST.json").stat().st_mtime_ns for path in (out / "shards").glob("0*")}


def test_killed_preparation_continues_and_ends_the_same(
    text: dict[str, Any], whole: Path, tmp_path: Path, counted: Callable[[int, str], None]
) -> None:
    total, expected, draw = events(text, tmp_path / "counted"), tree(whole), random.Random(29)
    kept = 0
    for number in range(KILLS):
        out = tmp_path / str(number)
        assert killed(text, out, draw.randint(1, total), tmp_path / "log")
        before = finished(out)
        prepared(text, out)
        assert tree(out) == expected
        after = finished(out)
        assert {name: after[name] for name in before} == before
        kept += len(before)
        shutil.rmtree(out)
    counted(KILLS, "kills")
    counted(kept, "finished shards kept")


def flips(directories: list[Path], number: int) -> Iterator[tuple[Path, bytes]]:
    draw = random.Random(29)
    files = sorted(path for one in directories for path in one.rglob("*") if path.is_file() and path.stat().st_size)
    for index in range(number):
        path = files[index % len(files)]
        content = bytearray(path.read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        yield path, bytes(content)


def accepted(directories: list[Path], open_all: Callable[[], object]) -> int:
    taken = 0
    for path, damaged in flips(directories, FLIPS):
        whole_file = path.read_bytes()
        path.write_bytes(damaged)
        try:
            open_all()
            taken += 1
        except InputError:  # exit code 3
            pass
        path.write_bytes(whole_file)
    open_all()
    return taken


def parts(out: Path) -> list[Path]:
    return [out / "plan", out / "index", out / "shards"]


def test_no_flipped_bit_in_a_prepared_corpus_is_accepted(
    whole: Path, tmp_path: Path, counted: Callable[[int, str], None]
) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "out"))
    assert accepted(parts(out), lambda: PreparedDirectory(out).require_files()) == 0
    counted(FLIPS, "flips in shards")


def test_no_flipped_bit_in_a_token_store_is_accepted(
    reference: Path, settings: dict[str, Any], tmp_path: Path, counted: Callable[[int, str], None]
) -> None:
    run = RunDirectory(tiny_runs.copy_with(reference, tmp_path / "run", tiny_runs.LAST).path)
    stores = [run.data / "training", run.data / "validation"]
    assert accepted(stores, lambda: run_setup.resume(run, {})) == 0
    counted(FLIPS, "flips in token stores")


def test_control_without_the_manifests_flips_are_accepted(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, counted: Callable[[int, str], None]
) -> None:
    out = Path(shutil.copytree(whole, tmp_path / "out"))
    monkeypatch.setattr("heedful.storage.prepared_directory.verify_manifest", lambda *_: {})

    def opened() -> None:
        prepared_directory = PreparedDirectory(out)
        prepared_directory.require_files()
        assert len(prepared_directory.store)

    taken = accepted(parts(out), opened)
    assert taken > FLIPS / 2
    counted(taken, "flips accepted by sizes alone")


def test_control_shards_that_are_not_atomic_do_not_survive_kills(
    text: dict[str, Any],
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    counted: Callable[[int, str], None],
) -> None:
    @contextmanager
    def in_place(final: Path, **_: object) -> Iterator[Path]:
        final.mkdir()
        yield final

    monkeypatch.setattr("heedful.preparation.shards.new_directory", in_place)
    total, draw, failed = events(text, tmp_path / "counted"), random.Random(29), 0
    for number in range(KILLS):
        out = tmp_path / str(number)
        assert killed(text, out, draw.randint(total // 2, total - total // 5), tmp_path / "log")
        try:
            prepared(text, out)
            failed += tree(out) != tree(whole)
        except HeedfulError:
            failed += 1
    assert failed
    counted(failed, "results lost without atomic shards")
