"""Labelled bracket scores against counts by hand and a recursive reference scorer.

evalb itself (with COLLINS.prm) was compared once on 11,742 repaired outputs of the Penn Treebank sample, sentence by
sentence: matched, gold, test and crossing brackets were equal everywhere. docs/results/parsing.md says how.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import InputError
from heedful.parsing.bracket_scores import BracketScores, require_same_words, score_brackets, score_outputs
from heedful.parsing.linearization import linearize
from heedful.parsing.trees import Tree, read_trees

Score = Callable[[str, str], BracketScores]


@pytest.fixture
def trees(write_text: Callable[..., Path]) -> Callable[[str], list[Tree]]:
    return lambda text: list(read_trees(write_text("trees", text)))


@pytest.fixture
def score(trees: Callable[[str], list[Tree]]) -> Score:
    """Return a function `score(gold, found)` of two bracketed trees."""
    return lambda gold, found: score_brackets(trees(gold), [tree.brackets for tree in trees(found)])


def test_identical_trees_score_100(score: Score) -> None:
    tree = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)) (. .))"
    scores = score(tree, tree)
    # S, NP, VP: 3 brackets, all matched
    assert (scores.gold, scores.found, scores.right, scores.complete, scores.crossing) == (3, 3, 3, 1, 0)
    assert (scores.precision, scores.recall, scores.f1, scores.complete_match) == (100, 100, 100, 100)


def test_attachment_error(score: Score) -> None:
    """The PP attaches to the noun phrase in the gold tree, to the verb phrase in the other."""
    gold = "(S (NP (PRP she)) (VP (VBD saw) (NP (NP (DT a) (NN man)) (PP (IN with) (NP (DT a) (NN hat))))))"
    found = "(S (NP (PRP she)) (VP (VP (VBD saw) (NP (DT a) (NN man))) (PP (IN with) (NP (DT a) (NN hat)))))"
    scores = score(gold, found)
    # gold:  S 0-7, NP 0-1, VP 1-7, NP 2-7, NP 2-4, PP 4-7, NP 5-7   7 brackets
    # found: S 0-7, NP 0-1, VP 1-7, VP 1-4, NP 2-4, PP 4-7, NP 5-7   7 brackets, 6 of them gold's
    assert (scores.gold, scores.found, scores.right, scores.complete) == (7, 7, 6, 0)
    assert scores.f1 == pytest.approx(100 * 6 / 7)
    # VP 1-4 crosses NP 2-7
    assert scores.crossing == 1


def test_wrong_label_is_an_error(score: Score) -> None:
    scores = score("(S (NP (NN a)) (VP (VB b)))", "(S (VP (NN a)) (VP (VB b)) )")
    # gold S 0-2, NP 0-1, VP 1-2; found S 0-2, VP 0-1, VP 1-2: 2 right
    assert (scores.gold, scores.found, scores.right) == (3, 3, 2)


def test_precision_and_recall_denominators(score: Score) -> None:
    scores = score("(S (NP (NN a)) (VP (VB b) (NP (NN c))))", "(S (NP (NN a)) (VB b) (NN c))")
    # gold S 0-3, NP 0-1, VP 1-3, NP 2-3; found S 0-3, NP 0-1: 2 right
    assert scores.precision == 100 * 2 / 2
    assert scores.recall == 100 * 2 / 4
    assert scores.f1 == pytest.approx(100 * 2 * 1.0 * 0.5 / 1.5)


def test_duplicate_brackets_are_counted_separately(score: Score) -> None:
    scores = score("(S (NP (NP (NP (NN a)))) (VB b))", "(S (NP (NP (NN a))) (VB b))")
    # NP 0-1 occurs three times in gold and twice in found: 2 matched, and S
    assert (scores.gold, scores.found, scores.right, scores.complete) == (4, 3, 3, 0)


def test_punctuation_is_ignored(score: Score) -> None:
    gold = "(S (`` ``) (NP (NN a) (, ,)) (VP (VB b)) (: --) ('' '') (. .))"
    found = "(S (`` ``) (NP (NN a)) (, ,) (VP (VB b) (: --) ('' '') (. .)))"
    scores = score(gold, found)
    # without punctuation both are S 0-2, NP 0-1, VP 1-2
    assert (scores.gold, scores.found, scores.right, scores.complete, scores.crossing) == (3, 3, 3, 1, 0)


def test_punctuation_only_brackets_are_ignored(score: Score) -> None:
    scores = score("(S (NP (NN a)) (PRN (, ,) (: --)))", "(S (NP (NN a)) (NP (, ,)) (: --))")
    assert (scores.gold, scores.found, scores.right) == (2, 2, 2)  # S and NP


def test_other_symbols_count_as_words(score: Score) -> None:
    """evalb does not treat -LRB-, $ and # as punctuation."""
    scores = score("(NP (-LRB- -LRB-) (QP ($ $) (CD 5)))", "(NP (-LRB- -LRB-) (QP ($ $)) (CD 5))")
    assert (scores.gold, scores.found, scores.right) == (2, 2, 1)


@pytest.mark.parametrize("root", ["TOP", "S1"])
def test_root_label_is_ignored(score: Score, root: str) -> None:
    scores = score("(S (NP (NN a)) (VB b))", f"({root} (S (NP (NN a)) (VB b)))")
    assert (scores.gold, scores.found, scores.complete) == (2, 2, 1)


def test_advp_and_prt_are_equivalent(score: Score) -> None:
    scores = score("(VP (VB b) (PRT (RP up)) (ADVP (RB so)))", "(VP (VB b) (ADVP (RP up)) (PRT (RB so)))")
    assert (scores.right, scores.complete) == (3, 1)


def test_scores_are_micro_averaged(score: Score) -> None:
    gold = "(S (NP (NN a)) (VP (VB b)))\n(NP (NN a))"
    found = "(S (NN a) (VB b))\n(NP (NN a))"
    scores = score(gold, found)
    # 3 + 1 in gold, 1 + 1 found, 1 + 1 right: the mean of the sentences' recalls would be 66.7%
    assert scores.recall == 100 * 2 / 4
    assert scores.complete_match == 50


def test_punctuation_only_sentences_are_skipped(score: Score) -> None:
    scores = score("(X (. .))\n(NP (NN a))", "(NP (. .))\n(VP (NN a))")
    assert (scores.sentences, scores.skipped, scores.gold, scores.found, scores.right) == (2, 1, 1, 1, 0)
    assert scores.complete_match == 0


def test_no_predicted_brackets_scores_zero(score: Score) -> None:
    scores = score("(NP (NN a))", "(TOP (NN a))")
    assert (scores.precision, scores.recall, scores.f1) == (0, 0, 0)


def test_outputs_are_repaired_and_well_formed_outputs_counted(trees: Callable[[str], list[Tree]]) -> None:
    gold = trees("(S (NP (NN a)) (VP (VB b)))\n" * 3)
    outputs = ["bS bNP wNN eNP bVP wNN eVP eS", "bS bNP wNN eNP bVP wNN", "bS bNP wNN"]
    scores = score_outputs(gold, outputs)
    # the second is not closed; the third has S 0-2 and NP 0-1, both matched, and no VP
    assert (scores.all.right, scores.all.found, scores.all.gold) == (3 + 3 + 2, 3 + 3 + 2, 9)
    assert (scores.well_formed, scores.all.complete) == (1, 2)
    assert "well-formed before repair 33.33% (1 output)" in str(scores)
    assert "F1 94.12 (precision 100.00, recall 88.89)" in str(scores)  # 2 · 8 / (8 + 9)


def test_short_sentence_limit_counts_punctuation(trees: Callable[[str], list[Tree]]) -> None:
    gold = trees("".join(f"(S {'(NN a) ' * words} (. .))\n" for words in (38, 39, 40)))
    outputs = [linearize(tree.brackets, tree.tags) for tree in gold]
    assert score_outputs(gold, outputs).short.sentences == 2


@pytest.mark.parametrize(
    ("sentences", "message"),
    [(["a b"], "1 sentence but 2 trees"), (["a b", "a c"], "Line 2: the sentence"), (["a b", ""], "Line 2")],
)
def test_trees_of_other_sentences_are_rejected(
    trees: Callable[[str], list[Tree]], sentences: list[str], message: str
) -> None:
    gold = trees("(NP (NN a) (NN b))\n(NP (NN c))")
    with pytest.raises(InputError, match=message):
        require_same_words(gold, sentences)
    require_same_words(gold, ["a b", " c "])


# A reference scorer on nested lists: (label, [children]); a word is its tag.
Nested = Any
PUNCTUATION = [",", ":", "``", "''", "."]
LEAVES = st.sampled_from(["NN", "VB", "RB", *PUNCTUATION])
LABELS = st.sampled_from(["S", "NP", "ADVP", "PRT", "TOP"])


@st.composite
def two_trees(draw: st.DrawFn) -> tuple[list[str], Nested, Nested]:
    tags = draw(st.lists(LEAVES, min_size=1, max_size=7))
    return tags, draw(nested(tags)), draw(nested(tags))


@st.composite
def nested(draw: st.DrawFn, tags: list[str]) -> Nested:
    """Draw a tree over the tags by splitting them at a random position."""
    label = draw(LABELS)
    if len(tags) == 1:
        inner = [tags[0]]
    else:
        cut = draw(st.integers(1, len(tags) - 1))
        inner = [
            part[0] if len(part) == 1 and draw(st.booleans()) else draw(nested(part))
            for part in (tags[:cut], tags[cut:])
        ]
    return (label, inner) if draw(st.integers(0, 3)) else (label, [(draw(LABELS), inner)])


def spans(node: Nested, start: int, found: list[tuple[str, int, int]]) -> int:
    """Add the scored brackets to `found`; return the number of scored words so far."""
    if isinstance(node, str):
        return start + (node not in PUNCTUATION)
    end = start
    for child in node[1]:
        end = spans(child, end, found)
    label = "ADVP" if node[0] == "PRT" else node[0]
    if end > start and label != "TOP":
        found.append((label, start, end))
    return end


def to_text(node: Nested) -> str:
    return f"({node} w)" if isinstance(node, str) else f"({node[0]} {' '.join(map(to_text, node[1]))})"


@given(two_trees())
def test_matches_a_recursive_reference_scorer(
    tmp_path_factory: pytest.TempPathFactory, drawn: tuple[list[str], Nested, Nested]
) -> None:
    tags, gold, found = drawn
    path = tmp_path_factory.getbasetemp() / "pair"
    path.write_text(f"{to_text(gold)}\n{to_text(found)}\n", encoding="utf-8")
    first, second = read_trees(path)
    scores = score_brackets([first], [second.brackets])
    if all(tag in PUNCTUATION for tag in tags):
        assert scores == BracketScores(sentences=1, skipped=1)
        return
    gold_spans: list[tuple[str, int, int]] = []
    found_spans: list[tuple[str, int, int]] = []
    spans(gold, 0, gold_spans)
    spans(found, 0, found_spans)
    left, right = list(gold_spans), 0
    for span in found_spans:
        if span in left:
            left.remove(span)
            right += 1
    inside = {(start, end): set(range(start, end)) for _, start, end in gold_spans + found_spans}
    crossing = sum(
        any(
            inside[s, e] & inside[t, f] and inside[s, e] - inside[t, f] and inside[t, f] - inside[s, e]
            for _, t, f in gold_spans
        )
        for _, s, e in found_spans
    )
    assert scores == BracketScores(
        sentences=1,
        gold=len(gold_spans),
        found=len(found_spans),
        right=right,
        complete=int(right == len(gold_spans) == len(found_spans)),
        crossing=crossing,
    )
