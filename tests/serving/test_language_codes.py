"""Language codes as clients write them."""

from __future__ import annotations

import pytest

from heedful.serving.language_codes import resolve_language

KNOWN = ("en", "de", "pt", "pt-BR", "zh-Hans", "zt")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("de", "de"),
        ("DE", "de"),
        ("de-DE", "de"),
        ("de_at", "de"),
        ("de-Latn-DE-1996", "de"),
        ("pt-BR", "pt-BR"),
        ("PT-br", "pt-BR"),
        ("pb", "pt-BR"),
        ("pt-PT", "pt"),
        ("pt", "pt"),
        ("zh", "zh-Hans"),
        ("zh-Hans-CN", "zh-Hans"),
        ("zh-Hant", "zt"),
        ("zh-hant-TW", "zt"),
        (" en ", "en"),
        ("XX", "xx"),
        ("xx-YY", "xx-yy"),
        ("d", "d"),
        ("", ""),
        ("-", "-"),
    ],
)
def test_best_match(given: str, found: str) -> None:
    assert resolve_language(given, KNOWN) == found


def test_either_code_finds_a_model_with_the_other() -> None:
    assert resolve_language("zh-Hans", ["zh"]) == "zh"
    assert resolve_language("zh-Hant", ["zh"]) == "zh"  # better than nothing
    assert resolve_language("pt-BR", ["pt"]) == "pt"
