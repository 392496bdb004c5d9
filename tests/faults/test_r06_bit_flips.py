"""R6: a flipped bit or a zeroed page anywhere in a checkpoint is never accepted."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import safetensors
import safetensors.numpy
from fault_injection import count
from tiny_runs import LAST, copy_with

from heedful.errors import HeedfulError
from heedful.storage.run_directory import RunDirectory
from heedful.training.checkpoints import read_progress

pytestmark = pytest.mark.faults

FLIPS, PAGES = count(200, 2_000), count(20, 200)
PAGE = 4_096


@pytest.fixture
def run(reference: Path, tmp_path: Path) -> RunDirectory:
    return copy_with(reference, tmp_path / "run", 14, LAST)


def flips(directory: Path, number: int) -> Iterator[tuple[Path, bytes]]:
    """Yield files with a flipped bit: half by file size, the others evenly over the files."""
    draw, files = random.Random(6), sorted(directory.iterdir())
    sizes = [path.stat().st_size for path in files]
    for index in range(number):
        path = draw.choices(files, sizes)[0] if index % 2 else files[index // 2 % len(files)]
        content = bytearray(path.read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        yield path, bytes(content)


def zeroed(directory: Path, number: int) -> Iterator[tuple[Path, bytes]]:
    """Pages as a disk has them, that were not zero before; the last one may be short."""
    draw, files = random.Random(7), sorted(directory.iterdir())
    made = 0
    while made < number:
        path = files[made % len(files)]
        content = bytearray(path.read_bytes())
        begin = draw.randrange(0, len(content), PAGE)
        page = content[begin : begin + PAGE]
        if any(page):
            content[begin : begin + PAGE] = bytes(len(page))
            made += 1
            yield path, bytes(content)


def accepted(run: RunDirectory, damages: Iterator[tuple[Path, bytes]], is_accepted: Callable[[], bool]) -> int:
    taken = 0
    for path, damaged in damages:
        whole = path.read_bytes()
        assert damaged != whole
        path.write_bytes(damaged)
        taken += is_accepted()
        path.write_bytes(whole)
    assert is_accepted()
    return taken


def test_no_flipped_bit_is_accepted(run: RunDirectory, counted: Callable[[int, str], None]) -> None:
    assert accepted(run, flips(run.checkpoint(LAST), FLIPS), lambda: run.valid_steps(1) == [LAST]) == 0
    counted(FLIPS, "flips")


def test_no_zeroed_page_is_accepted(run: RunDirectory, counted: Callable[[int, str], None]) -> None:
    assert accepted(run, zeroed(run.checkpoint(LAST), PAGES), lambda: run.valid_steps(1) == [LAST]) == 0
    counted(PAGES, "zeroed pages")


def test_previous_checkpoint_is_used(run: RunDirectory) -> None:
    for path, damaged in flips(run.checkpoint(LAST), 8):
        path.write_bytes(damaged)
    assert run.valid_steps() == [14]


def test_control_the_formats_alone_let_most_through(run: RunDirectory, counted: Callable[[int, str], None]) -> None:
    directory = run.checkpoint(LAST)

    def readable() -> bool:
        try:
            for name in ("model.safetensors", "optimizer.safetensors"):
                safetensors.numpy.load_file(directory / name)
            read_progress(directory)
            json.loads((directory / "MANIFEST.json").read_text(encoding="utf-8"))
        except (HeedfulError, safetensors.SafetensorError, ValueError, KeyError):
            return False
        return True

    tried = 200
    taken = accepted(run, (d for d in flips(directory, 2 * tried) if d[0].suffix == ".safetensors"), readable)
    assert taken > tried / 2
    counted(taken, "flips accepted by safetensors alone")
