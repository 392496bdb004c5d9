"""The paper map and the deviations name existing code and tests, with recorded effects."""

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "benchmarks"))

from deviation_page import effects, filled, places

MAP = (ROOT / "docs" / "explanation" / "paper-map.md").read_text(encoding="utf-8")
ROWS = [line for line in MAP.split("\n") if line.startswith("|")]
NAMES = sorted(set(re.findall(r"`(heedful\.[\w.]+)`", "\n".join(ROWS))))
TESTS = sorted(set(re.findall(r"`(test_\w+)`", "\n".join(ROWS))))
FILES = sorted(set(re.findall(r"`(tests/[\w/]+\.py)`", MAP)))


def resolved(name: str) -> tuple[Any, str]:
    """The object of a dotted name, and the module that the name gives for it."""
    parts = name.split(".")
    for depth in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:depth]))
        except ModuleNotFoundError:
            continue
        for part in parts[depth:]:
            found = getattr(found, part)
        return found, ".".join(parts[:depth])
    pytest.fail(f"no module of {name} can be imported")


@pytest.mark.parametrize("name", NAMES)
def test_the_code_exists_where_the_map_says(name: str) -> None:
    found, module = resolved(name)
    home = getattr(found, "__module__", module)  # a constant does not know its module
    assert home == module, f"{name} is defined in {home}"


def test_a_re_export_is_told_from_a_definition() -> None:
    found, module = resolved("heedful.model.transformer.Embedding")
    assert module == "heedful.model.transformer"
    assert found.__module__ == "heedful.model.embeddings"


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


DEVIATIONS = (ROOT / "docs" / "explanation" / "deviations.md").read_text(encoding="utf-8")
RECORD = json.loads((ROOT / "docs" / "explanation" / "deviations.json").read_text(encoding="utf-8"))
ALL_TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"^\s*def (test_\w+)\(", path.read_text(encoding="utf-8"), re.MULTILINE)
}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(test_\w+)`", DEVIATIONS))))
def test_the_test_of_a_deviation_exists(name: str) -> None:
    assert name in ALL_TESTS


FIELDS = ("Paper", "heedful", "Why", "Effect", "Tests")


def test_every_deviation_has_all_fields_and_a_test() -> None:
    entries = DEVIATIONS.split("## Measured")[0].split("\n### ")[1:]
    assert len(entries) > 30
    for entry in entries:
        said = dict(re.findall(r"^- \*\*(\w+):\*\* (.+)$", entry, re.MULTILINE))
        assert tuple(said) == FIELDS, entry
        assert re.fullmatch(r"(`test_\w+`(, )?)+", said["Tests"]), entry


def test_the_effects_are_those_of_the_record() -> None:
    assert filled(DEVIATIONS, RECORD) == DEVIATIONS


def test_every_effect_that_is_measured_is_shown() -> None:
    """All but the two that others are compared with; they stand in the table."""
    assert set(effects(RECORD)) - set(places(DEVIATIONS)) == {"baseline", "learned"}
