"""Trees against nested lists, and repair against an independent well-formedness check."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heedful.errors import CorpusError
from heedful.parsing.linearization import delinearize, is_well_formed, linearize
from heedful.parsing.treebank import split_files, treebank_files
from heedful.parsing.trees import Bracket, Tree, read_trees, strip_function_tags, to_bracketed

SAMPLE = Path(__file__).parents[3] / "shared" / "data" / "treebank-sample"

# A tree as nested pairs: (label, [children]); a word is (tag, word).
Nested = tuple[str, Any]
LABELS = st.sampled_from(["S", "NP", "VP", "PP", "SBAR", "X", "e", "b", "XX", "-LRB-", "bNP"])
TEXT = st.text("abXe'.,$-0|=é語", min_size=1, max_size=4)
TAGGED_WORDS = st.tuples(TEXT.filter(lambda tag: tag != "-NONE-"), TEXT)
NODES: st.SearchStrategy[Nested] = st.recursive(
    TAGGED_WORDS, lambda inner: st.tuples(LABELS, st.lists(inner, min_size=1, max_size=4)), max_leaves=12
)
NESTED = st.tuples(LABELS, st.lists(NODES, min_size=1, max_size=4))
SYMBOLS = st.lists(st.sampled_from(["wNN", "bS", "eS", "bNP", "eNP", "bX", "eX", "w", "b", "e", "wX", "(S", "Haus"]))


def to_text(node: Nested, space: str = " ") -> str:
    label, inner = node
    if isinstance(inner, str):
        return f"({label}{space}{inner})"
    return f"({label}{space}{space.join(to_text(child, space) for child in inner)})"


def tagged_words(node: Nested) -> list[tuple[str, str]]:
    label, inner = node
    return [(label, inner)] if isinstance(inner, str) else [leaf for child in inner for leaf in tagged_words(child)]


def to_symbols(node: Nested) -> str:
    label, inner = node
    leaf = re.sub(r"[\W\d_]", "", label) or "P"
    return f"w{leaf}" if isinstance(inner, str) else f"b{label} {' '.join(map(to_symbols, inner))} e{label}"


def read(write_text: Callable[..., Path], text: str) -> list[Tree]:
    return list(read_trees(write_text("file.mrg", text)))


@pytest.fixture
def error_message(write_text: Callable[..., Path]) -> Callable[[str], str]:
    def read_error(text: str) -> str:
        with pytest.raises(CorpusError) as caught:
            read(write_text, text)
        return str(caught.value)

    return read_error


# reading


@given(NESTED, st.sampled_from([" ", "\n", "\n    ", " \t "]))
def test_read_tree_matches_the_nested_lists(
    tmp_path_factory: pytest.TempPathFactory, nested: Nested, space: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "nested.mrg"
    path.write_text(f"( {to_text(nested, space)} )\n{to_text(nested)}", encoding="utf-8")
    first, second = read_trees(path)
    assert first == second
    assert list(zip(first.tags, first.words, strict=True)) == tagged_words(nested)
    assert to_bracketed(first) == to_text(nested)
    assert linearize(first.brackets, first.tags) == to_symbols(nested)


def test_traces_and_empty_constituents_are_removed(write_text: Callable[..., Path]) -> None:
    text = """
( (S (NP-SBJ-1 (NNP Ada) )
     (VP (VBD tried)
         (S (NP-SBJ (-NONE- *-1) )
            (VP (TO to) (VP (VB count) (SBAR (WHNP-2 (-NONE- 0)) (S (-NONE- *T*-2) ))))))
     (. .) ))
( (NP (-NONE- *)) )
( (FRAG (-LRB- -LRB-) (NP=2 (CD 3)) (-RRB- -RRB-)) )
"""
    first, second = read(write_text, text)
    # Without traces WHNP, S and SBAR are empty, so they are removed.
    assert to_bracketed(first) == "(S (NP (NNP Ada)) (VP (VBD tried) (S (VP (TO to) (VP (VB count))))) (. .))"
    assert first.brackets == (
        Bracket("S", 0, 5),
        Bracket("NP", 0, 1),
        Bracket("VP", 1, 4),
        Bracket("S", 2, 4),
        Bracket("VP", 2, 4),
        Bracket("VP", 3, 4),
    )
    assert to_bracketed(second) == "(FRAG (-LRB- -LRB-) (NP (CD 3)) (-RRB- -RRB-))"


@pytest.mark.parametrize(
    ("label", "bare"),
    [
        ("NP", "NP"),
        ("NP-SBJ-1", "NP"),
        ("NP=2", "NP"),
        ("PP-LOC=3", "PP"),
        ("ADVP|PRT", "ADVP"),
        ("-LRB-", "-LRB-"),
        ("-NONE-", "-NONE-"),
    ],
)
def test_function_tags_and_indices_are_stripped(label: str, bare: str) -> None:
    assert strip_function_tags(label) == bare


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("( (NP (NN a)) (NP (NN b)) )", "(TOP (NP (NN a)) (NP (NN b)))"),
        ("( (NP (NN a)) (. .) )", "(TOP (NP (NN a)) (. .))"),
        ("( (NN a) )", "(TOP (NN a))"),
        ("(NN a)", "(TOP (NN a))"),
        ("( (S (NP (NN a)) (NP (-NONE- *)) ) (NP (-NONE- *)) )", "(S (NP (NN a)))"),
    ],
)
def test_every_tree_has_a_single_root(write_text: Callable[..., Path], text: str, root: str) -> None:
    assert [to_bracketed(tree) for tree in read(write_text, text)] == [root]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN a))\n(S (NP (NN a))\n(VP (VB b))", ":2: this tree is not closed"),
        ("(S (NN a))\n(S (NP (NN a))\n(VP (VB b)\n", ":2: this tree is not closed"),
        ("(S (NN a))\n\n)", ":3: unmatched )"),
        ("(S (NN a)))", ":1: unmatched )"),
        ("dog", ':1: "dog" is outside any bracket; write (TAG dog)'),
        ("(S (NN a))\ncat (S (NN b))", ':2: "cat" is outside any bracket; write (TAG cat)'),
        ("(S\n(NN a b))", ':2: two words in one bracket, "a" and "b";'),
        ("(S (NN a)\nb)", ':2: the word "b" has no tag; write (TAG b).'),
        ("(S (NN a\n(NP (NN b))))", ':2: unexpected ( after the word "a"'),
        ("(S (NN))", ":1: (NN) is empty"),
        ("(S (NN a))\n( )", ":2: () is empty"),
        ("(S (NN caf\udce9))", ":1: not UTF-8"),
    ],
)
def test_malformed_tree_is_rejected_with_file_and_line(
    write_text: Callable[..., Path], text: str, message: str
) -> None:
    path = write_text("bad.mrg", text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CorpusError) as caught:
        list(read_trees(path))
    assert str(caught.value).startswith(f"{path}{message}")


def test_deeply_nested_tree_is_read(write_text: Callable[..., Path], error_message: Callable[[str], str]) -> None:
    depth = 20_000
    (tree,) = read(write_text, "(S " * depth + "(NN a)" + ")" * depth)
    assert len(tree.brackets) == depth
    assert to_bracketed(tree) == "(S " * depth + "(NN a)" + ")" * depth
    output = linearize(tree.brackets, tree.tags)
    assert delinearize(output, 1) == tree.brackets
    assert ":1: this tree is not closed" in error_message("(S " * depth)


# linearization and repair


def is_balanced(output: str, words: int) -> bool:
    """Return whether deleting matched pairs, innermost first, leaves a single root."""
    before, text = "", f" {output} "
    if not re.fullmatch(r" ((w[^\W\d_]+|b\S+|e\S+) )+", text):
        return False
    if len(re.findall(r"(?<= )w", text)) != words:
        return False
    while text != before:
        before, text = text, re.sub(r" b(\S+)((?: w\S+| #)+) e\1(?= )", " #", text)
    return text == " # "


@given(NESTED)
def test_linearization_round_trip(nested: Nested) -> None:
    count = len(tagged_words(nested))
    output = to_symbols(nested)
    brackets = delinearize(output, count)
    assert linearize(brackets, [tag for tag, _ in tagged_words(nested)]) == output
    assert is_well_formed(output, count)
    assert is_balanced(output, count)


@given(SYMBOLS, st.integers(1, 8))
@example([], 1)
@example(["wNN", "wNN"], 2)
def test_any_output_is_repaired_to_a_well_formed_tree(tokens: list[str], words: int) -> None:
    output = " ".join(tokens)
    repaired = linearize(delinearize(output, words), ["NN"] * words)
    assert is_balanced(repaired, words)
    assert is_well_formed(repaired, words)
    assert delinearize(repaired, words) == delinearize(output, words)
    assert is_well_formed(output, words) == is_balanced(output, words) == (repaired == output)


@pytest.mark.parametrize(
    ("output", "words", "repaired"),
    [
        ("bS bNP wNN Haus ( wNN eNP b e eS", 2, "bS bNP wNN wNN eNP eS"),  # rule 1
        ("bS bNP bX wNN eNP wNN eS", 2, "bS bNP bX wNN eX eNP wNN eS"),  # rule 2: closes nested constituents
        ("bS eVP bNP wNN eNP eNP eS", 1, "bS bNP wNN eNP eS"),  # rule 2: nothing to close
        ("bS bNP bNP wNN eNP wNN", 2, "bS bNP bNP wNN eNP wNN eNP eS"),  # rules 2 (innermost) and 3
        ("bS wNN bNP wNN wNN eNP bX wNN eX eS", 2, "bS wNN bNP wNN eNP eS"),  # rules 4 and 5
        ("bS bNP wNN eNP eS", 3, "bS bNP wNN eNP wNN wNN eS"),  # rule 4
        ("bS bNP eNP wNN eS", 1, "bS wNN eS"),  # rule 5
        ("bNP wNN eNP bNP wNN eNP", 2, "bTOP bNP wNN eNP bNP wNN eNP eTOP"),  # rule 6
        ("bNP wNN eNP bNP wNN eNP", 3, "bTOP bNP wNN eNP bNP wNN eNP wNN eTOP"),  # rules 4 and 6
        ("bNP wNN eNP bNP wNN eNP", 1, "bNP wNN eNP"),  # rule 4 leaves one root
        ("wNN bNP wNN eNP", 2, "bTOP wNN bNP wNN eNP eTOP"),
        ("", 2, "bTOP wNN wNN eTOP"),
        ("bS bNP eNP eS", 1, "bTOP wNN eTOP"),
    ],
)
def test_repair_rules(output: str, words: int, repaired: str) -> None:
    assert linearize(delinearize(output, words), ["NN"] * words) == repaired
    assert is_well_formed(output, words) == (output == repaired)


# splits


def paths(*names: str) -> list[Path]:
    return [Path("treebank", name) for name in names]


@pytest.mark.parametrize(
    ("files", "sizes"), [(199, (159, 20, 20)), (3, (1, 1, 1)), (10, (8, 1, 1)), (100, (80, 10, 10))]
)
def test_default_split_is_80_10_10_by_file_name(files: int, sizes: tuple[int, int, int]) -> None:
    names = paths(*(f"wsj_{number:04d}.mrg" for number in range(files)))
    splits = split_files(names)
    assert list(splits) == ["train", "valid", "test"]
    assert tuple(map(len, splits.values())) == sizes
    assert [path for split in splits.values() for path in split] == names


def test_wsj_sections_follow_the_standard_split() -> None:
    files = paths(*(f"{section:02d}/wsj_{section:02d}{number:02d}.mrg" for section in range(25) for number in range(2)))
    splits = split_files(files)
    assert [path.parent.name for path in splits["train"]] == [f"{n:02d}" for n in range(2, 22) for _ in range(2)]
    assert {path.parent.name for path in splits["valid"]} == {"22"}
    assert {path.parent.name for path in splits["test"]} == {"23"}


def test_too_few_files_are_rejected() -> None:
    with pytest.raises(CorpusError, match=r"^1 \.mrg file found. Training, validation and test"):
        split_files(paths("a.mrg"))


def test_treebank_files_are_found_recursively_and_sorted(tmp_path: Path) -> None:
    for name in ("b/2.mrg", "a/3.mrg", "1.mrg", "README", "a/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path.relative_to(tmp_path)) for path in treebank_files(tmp_path)] == ["1.mrg", "a/3.mrg", "b/2.mrg"]


# the real sample


@pytest.mark.skipif(not SAMPLE.is_dir(), reason="the Penn Treebank sample is not installed")
def test_treebank_sample_round_trip() -> None:
    """Published sizes: 3,914 trees and 94,084 words without traces."""
    splits = {
        name: [tree for path in files for tree in read_trees(path)]
        for name, files in split_files(treebank_files(SAMPLE)).items()
    }
    assert [len(trees) for trees in splits.values()] == [3396, 273, 245]
    trees = [tree for split in splits.values() for tree in split]
    assert sum(len(tree.words) for tree in trees) == 94_084
    for tree in trees:
        output = linearize(tree.brackets, tree.tags)
        assert delinearize(output, len(tree.words)) == tree.brackets
        assert is_well_formed(output, len(tree.words))
        assert tree.brackets[0] == (tree.brackets[0].label, 0, len(tree.words))
    labels = {bracket.label for tree in trees for bracket in tree.brackets}
    assert not [label for label in labels if not label.isalpha()]
    assert "TOP" not in labels
