"""docs/explanation/reliability.md says what the fault tests recorded, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

FAULTS = Path(__file__).parent / "faults"
sys.path.append(str(FAULTS))

import reliability_record


def test_the_page_is_drawn_from_the_record() -> None:
    assert reliability_record.PAGE.read_text(encoding="utf-8") == reliability_record.page(
        json.loads(reliability_record.DATA.read_text(encoding="utf-8"))
    )


def test_a_row_that_failed_or_did_not_run_says_so() -> None:
    summary = {"passed": False, "counts": {"kills": 20}, "tests": 1, "seconds": 1.5, "date": "2026-01-02"}
    page = reliability_record.page({"R2": {"every change": summary}})
    assert "| R2 | `kill -9` | **failed**, 2026-01-02 | not run | not run |" in page
    assert "Every change: 20 kills in 1.5 s.*" in page
    assert "| R3 | crash at every I/O call | not run | not run | not run |" in page


def test_every_row_has_a_test_and_a_control() -> None:
    for row, (_, tested) in reliability_record.ROWS.items():
        files = list(FAULTS.glob(f"test_r{int(row[1:]):02d}_*.py"))
        assert bool(files) == bool(tested), row
        for file in files:
            text = file.read_text(encoding="utf-8")
            assert "def test_control" in text, row
            assert "pytestmark = pytest.mark.faults" in text, row
