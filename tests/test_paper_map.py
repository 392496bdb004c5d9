"""docs/paper.md names code and tests: each of them exists."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAP = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
ROWS = [line for line in MAP.split("\n") if line.startswith("|")]
NAMES = sorted(set(re.findall(r"`(heedful\.[\w.]+)`", "\n".join(ROWS))))
TESTS = sorted(set(re.findall(r"`(test_\w+)`", "\n".join(ROWS))))
FILES = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", MAP)))


@pytest.mark.parametrize("name", NAMES)
def test_the_code_exists(name: str) -> None:
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:depth]))
        except ModuleNotFoundError:
            continue
        for part in parts[depth:]:
            found = getattr(found, part)
        return
    pytest.fail(f"no module of {name} can be imported")


@pytest.mark.parametrize("name", TESTS)
def test_the_test_exists(name: str) -> None:
    text = (ROOT / "tests" / "test_paper.py").read_text(encoding="utf-8")
    assert f"def {name}(" in text


@pytest.mark.parametrize("name", FILES)
def test_the_file_exists(name: str) -> None:
    assert (ROOT / name).is_file()


def test_every_row_names_code_and_a_test() -> None:
    for row in ROWS[2:]:
        assert "`heedful." in row, row
        assert "`test" in row, row
