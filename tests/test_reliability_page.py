"""docs/explanation/reliability.md says what the fault tests recorded, and nothing else."""

from __future__ import annotations

import json
import sys
from pathlib import Path

FAULTS = Path(__file__).parent / "faults"
sys.path.append(str(FAULTS))

import record


def test_the_page_is_drawn_from_the_record() -> None:
    assert record.PAGE.read_text(encoding="utf-8") == record.page(json.loads(record.DATA.read_text(encoding="utf-8")))


def test_every_row_has_a_test_and_a_control() -> None:
    for row, (_, tested) in record.ROWS.items():
        files = list(FAULTS.glob(f"test_r{int(row[1:]):02d}_*.py"))
        assert bool(files) == bool(tested), row
        for file in files:
            text = file.read_text(encoding="utf-8")
            assert "def test_control" in text, row
            assert "pytestmark = pytest.mark.faults" in text, row
