"""Language detection with profiles of the training text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.text.builtin_corpus import BuiltinCorpus
from heedful.text.language_detection import SIZE, detect, profile


@pytest.fixture(scope="module")
def profiles() -> dict[str, str]:
    pairs = list(BuiltinCorpus("train", 1_000).pairs())
    return {"en": profile(pair.source for pair in pairs), "de": profile(pair.target for pair in pairs)}


def test_sentences_of_the_builtin_pair(profiles: dict[str, str]) -> None:
    pairs = list(BuiltinCorpus("test", 200).pairs())
    right = [detect(pair.source, profiles)[0][0] == "en" for pair in pairs]
    right += [detect(pair.target, profiles)[0][0] == "de" for pair in pairs]
    assert sum(right) / len(right) >= 0.99


def test_profile_is_small_and_sorted_by_frequency(profiles: dict[str, str]) -> None:
    assert len(profiles["en"].split("\n")) == SIZE
    assert profile(["aab"]).split("\n")[:2] == [" ", "a"]
    assert profile([]) == ""


def test_uninformative_text_gives_equal_probabilities(profiles: dict[str, str]) -> None:
    for text in ("", "42 %", "中文"):
        shares = [share for _, share in detect(text, profiles)]
        assert shares == pytest.approx([0.5, 0.5], abs=0.01)
    assert detect("text", {}) == []


@given(st.text())
def test_probabilities_sum_to_one(text: str) -> None:
    found = detect(text, {"one": "a\nb", "two": "c\nd", "three": ""})
    assert sum(share for _, share in found) == pytest.approx(1)
    assert [share for _, share in found] == sorted((share for _, share in found), reverse=True)
