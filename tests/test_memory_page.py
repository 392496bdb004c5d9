"""docs/results/memory.md equals the measurements in memory.json, and its claims hold."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1] / "docs" / "results"
MEASURED: dict[str, Any] = json.loads((DOCS / "memory.json").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = MEASURED["steps"]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (DOCS / "memory.md").read_text(encoding="utf-8").split("\n")
    if line.startswith("|")
]
SWEEP, BASE = (
    {(step["way"], step["length"]): step["peak"] for step in STEPS if step["preset"] == preset}
    for preset in ("small", "base")
)


def number(cell: str) -> float:
    return float(cell.replace(",", ""))


def exponent(way: str) -> float:
    return math.log(SWEEP[way, 4096] / SWEEP[way, 1024]) / math.log(4)


def test_the_lengths() -> None:
    head = next(row for row in ROWS if row[0] == "MiB at length")
    lengths = [int(number(cell)) for cell in head[1:-1]]
    assert lengths == [64, 128, 256, 512, 1024, 2048, 4096]
    shown = {row[0]: row[1:] for row in ROWS if (row[0], 64) in SWEEP}
    assert set(shown) == {way for way, _ in SWEEP}
    for way, cells in shown.items():
        for length, cell in zip(lengths, cells, strict=False):
            assert (cell == "–") == ((way, length) not in SWEEP)
            if cell != "–":
                assert number(cell) == pytest.approx(SWEEP[way, length] / 2**20, abs=0.51 if "." not in cell else 0.051)
        assert number(cells[-1]) == pytest.approx(exponent(way), abs=0.0051)


def test_the_paper_s_base() -> None:
    shown = {row[0]: row[1:] for row in ROWS if row[0] in ("32 × 32", "1 × 1,024")}
    ways = ("plain attention", "heedful", "heedful, checkpoint_activations")
    for batch, length in (("32 × 32", 32), ("1 × 1,024", 1024)):
        for way, cell in zip(ways, shown[batch], strict=True):
            assert number(cell) == pytest.approx(BASE[way, length] / 2**20, abs=0.51)


def test_whole_processes() -> None:
    shown = [row for row in ROWS if row[0].startswith("freed memory")]
    assert ["kept" in row[0] for row in shown] == [True, False]
    cells = [cell for row in shown for cell in row[1:]]
    for cell, process in zip(cells, MEASURED["processes"], strict=True):
        grown, seconds = cell.rstrip(")").split(" (")
        assert number(grown) == pytest.approx(process["grown"] / 2**20, abs=0.51)
        assert number(seconds) == pytest.approx(process["seconds"], abs=0.51)
    assert [(one["own_pages"], one["checkpoint"]) for one in MEASURED["processes"]] == [
        (own_pages, checkpoint) for own_pages in (False, True) for checkpoint in (False, True)
    ]


def test_only_plain_attention_grows_with_the_square() -> None:
    assert exponent("plain attention") > 1.7  # 2, and what is linear beside it
    for way in {way for way, _ in SWEEP} - {"plain attention"}:
        assert exponent(way) < 1.05, way
