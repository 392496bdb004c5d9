"""Parsing of --limit, and the documented table."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from heedful.errors import UsageError
from heedful.serving.limits import Limits, limits_from, limits_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "how-to" / "serving.md"


def test_every_limit_can_be_set() -> None:
    for field in fields(Limits):
        assert getattr(limits_from([f"{field.name}=7"]), field.name) == 7
    assert limits_from([]) == Limits()
    assert limits_from(["body=1", "send_seconds=0.5", "alternatives=0"]) == Limits(
        body=1, send_seconds=0.5, alternatives=0
    )


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("bodies=1", 'Did you mean "body"'),
        ("body", '`--limit`: body must be an integer from 1 to 1,000,000,000,000, not ""'),
        ("body=", "must be an integer"),
        ("body=0", "integer from 1"),
        ("body=-5", "integer from 1"),
        ("body=1.5", "must be an integer"),
        ("body=1e6", "must be an integer"),
        (f"body={'9' * 400}", "must be an integer"),
        ("idle_seconds=nan", "must be a number of seconds"),
        ("idle_seconds=inf", "must be a number of seconds"),
        ("idle_seconds=0", "from 0.1"),
    ],
)
def test_wrong_settings(setting: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        limits_from([setting])


def test_the_documentation_has_the_table() -> None:
    assert limits_table() in DOCUMENT.read_text(encoding="utf-8")
