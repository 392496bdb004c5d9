"""The generated reference is complete and every entry has a description."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import heedful
from heedful import config, errors
from heedful.cli.parser import build_parser

DOCS = Path(__file__).parents[1] / "docs"
sys.path.append(str(DOCS / "_ext"))

import generated


def rows(table: str) -> list[list[str]]:
    return [re.split(r"(?<!\\\\) \| ", line[2:-2]) for line in table.split("\n") if line.startswith("| ")][2:]


@pytest.mark.parametrize("section", config.SECTIONS)
def test_every_recipe_key_has_a_type_a_default_and_a_meaning(section: str) -> None:
    shown = {row[0].strip("`"): row[1:] for row in rows(generated.recipe_keys(section))}
    assert shown.keys() == config.keys_of(section).keys()
    assert [key for key, cells in shown.items() if not all(cell.strip() for cell in cells)] == []


def test_defaults_and_meanings_are_those_of_the_code() -> None:
    shown = {row[0].strip("`"): row[1:] for row in rows(generated.recipe_keys("model"))}
    assert shown["d_model"][:2] == ["integer", "`512`"]
    assert shown["positions"][:2] == ["string", '`"sinusoidal"`']
    assert "feed-forward" in shown["d_ff"][2]


def test_meanings_are_short_enough_for_a_cell() -> None:
    for section in config.SECTIONS.values():
        for name, meaning in generated.field_comments(section).items():
            assert len(meaning.split()) <= 16, name


def test_every_command_and_option_is_shown() -> None:
    page, (_, commands) = generated.command_line(), build_parser()
    for name, parser in commands.items():
        own = page.split(f"## heedful {name}\n")[1].split("\n## ")[0]
        for action in parser.declared:
            if action.option_strings and "--help" not in action.option_strings:
                assert any(row[0].startswith(f"`{action.option_strings[-1]}") for row in rows(own)), action


def test_every_exception_is_shown_with_its_exit_code() -> None:
    shown = {row[0].strip("`"): row for row in rows(generated.error_tree())}
    classes = {name: cls for name, cls in vars(errors).items() if inspect.isclass(cls) and issubclass(cls, Exception)}
    assert shown.keys() == classes.keys()
    for name, cls in classes.items():
        assert shown[name][1].strip("`") == cls.__mro__[1].__name__
        if name not in ("HeedfulError", "Interrupted"):
            assert shown[name][2] == str(cls.exit_code), name


def test_every_public_name_is_documented() -> None:
    page = generated.python_api()
    for name in heedful.__all__:
        assert name == "__version__" or f"## heedful.{name}\n" in page


def test_every_mark_is_known_and_every_writer_is_used() -> None:
    marks = [
        found for page in DOCS.glob("*/*.md") for found in generated.MARK.findall(page.read_text(encoding="utf-8"))
    ]
    assert {name for name, _ in marks} == generated.WRITERS.keys()
    assert {argument for name, argument in marks if name == "recipe-keys"} == config.SECTIONS.keys()


def test_a_page_is_filled_where_its_mark_is() -> None:
    page = generated.filled("before\n\n<!-- generated: shape-legend -->\n\nafter\n")
    assert page.startswith("before\n\n| suffix | axis |")
    assert page.endswith("\n\nafter\n")
    assert "| `H` | heads |" in page


def test_a_field_without_a_comment_has_no_meaning() -> None:
    """The control of the first test: a meaning comes from the field's own line."""
    said = generated.comments("a = 1  # one\nb = 2\n# alone\n")
    assert said == {1: "one", 3: "alone"}
    assert {field.name for field in fields(config.ModelConfig)} == generated.field_comments(config.ModelConfig).keys()
