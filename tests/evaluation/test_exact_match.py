"""Exact match against counts by hand."""

from heedful.evaluation.exact_match import exact_match, exact_match_by_label


def test_exact_match_counts_equal_lines() -> None:
    match = exact_match(["a", "b", "C"], ["a", "x", "c"])
    assert (match.correct, match.total) == (1, 3)
    assert str(match) == "33.3% (1 of 3)"


def test_exact_match_by_label_is_sorted_worst_first() -> None:
    labels = [("dative", "plural"), ("dative",), ("plural",), ()]
    by_label = exact_match_by_label(["1", "2", "3", "4"], ["1", "x", "3", "4"], labels)
    assert list(by_label) == ["dative", "plural"]
    assert (by_label["dative"].correct, by_label["dative"].total) == (1, 2)
    assert (by_label["plural"].correct, by_label["plural"].total) == (2, 2)
