"""Exact match against counts by hand."""

from heedful.evaluation.exact_match import exact_match, exact_match_by_label


def test_exact_match_counts_equal_lines() -> None:
    match = exact_match(["a", "b", "C"], ["a", "x", "c"])
    assert (match.correct, match.total) == (1, 3)
    assert str(match) == "33.3% (1 of 3)"


def test_exact_match_by_label_is_sorted_worst_first() -> None:
    labels = [("dative", "plural"), ("dative",), ("plural",), ()]
    found = exact_match_by_label(["1", "2", "3", "4"], ["1", "x", "3", "4"], labels)
    assert list(found) == ["dative", "plural"]
    assert (found["dative"].correct, found["dative"].total) == (1, 2)
    assert (found["plural"].correct, found["plural"].total) == (2, 2)
