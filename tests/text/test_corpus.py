"""Parallel corpora: files, tables and their errors."""

from __future__ import annotations

import hashlib
import os
import re

import pytest

from heedful.errors import CorpusError
from heedful.text.corpus import Corpus, Pair, clean
from heedful.text.pair_files import kind_of


def corpus(*sides) -> Corpus:
    source, target = (tuple(map(str, side)) for side in (sides if len(sides) == 2 else (*sides, ())))
    return Corpus.of(source, target, "training")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_two_sides(write_text, ending):
    source = write_text(f"train.en{ending}", ["one", "", "three"])
    target = write_text("train.de", "\ufeffeins\r\nzwei\r\n")  # with a byte-order mark, CRLF
    target.write_bytes(target.read_bytes() + b"drei")  # and no last newline
    assert list(corpus([source], [target]).pairs()) == [("one", "eins"), ("", "zwei"), ("three", "drei")]


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_table(write_text, ending):
    table = write_text(f"train.tsv{ending}", "one\teins\r\n\tzwei\n three \t\ndone\tfertig")
    assert list(corpus([table]).pairs()) == [("one", "eins"), ("", "zwei"), (" three ", ""), ("done", "fertig")]


def test_many_files_in_order(write_text):
    sources = [write_text("a.en", ["a1", "a2"]), write_text("b.en.gz", ["b1"])]
    targets = [write_text("a.de", ["A1", "A2"]), write_text("b.de", ["B1"])]
    several = corpus(sources, targets)
    assert [pair.source for pair in several.pairs()] == ["a1", "a2", "b1"]
    assert [pair.target for pair in several.pairs()] == ["A1", "A2", "B1"]
    assert several.count() == 3
    assert several.files() == (*sources, *targets)


def test_many_tables(write_text):
    tables = [write_text("a.tsv", "a\tA\n"), write_text("b.tsv.gz", "b\tB\n")]
    assert list(corpus(tables).pairs()) == [("a", "A"), ("b", "B")]


@pytest.mark.parametrize(("left", "right"), [(3, 2), (2, 3), (3, 0), (0, 3)])
def test_unequal_sides(write_text, left, right):
    source = write_text("train.en", ["line"] * left)
    target = write_text("train.de", ["Zeile"] * right)
    with pytest.raises(CorpusError) as caught:
        list(corpus([source], [target]).pairs())
    assert str(caught.value) == (
        f"The two sides differ in length: {source} has {left} lines, {target} has {right}. "
        f"Line {min(left, right) + 1} has no counterpart. "
        "Line n of one file must be the translation of line n of the other."
    )


def test_unequal_sides_of_a_second_file_are_not_made_up_for_by_the_first(write_text):
    sources = [write_text("a.en", ["1", "2"]), write_text("b.en", ["3"])]
    targets = [write_text("a.de", ["1"]), write_text("b.de", ["2", "3"])]
    with pytest.raises(CorpusError, match=r"a\.en has 2 lines, .*a\.de has 1"):
        list(corpus(sources, targets).pairs())


def test_empty_sides(write_text):
    source, target = write_text("train.en", ""), write_text("train.de.gz", "")
    with pytest.raises(CorpusError, match=re.escape(f"{source} and {target} are empty.")):
        list(corpus([source], [target]).pairs())


def test_empty_table(write_text):
    table = write_text("train.tsv", "")
    with pytest.raises(CorpusError, match=re.escape(f"{table} is empty.")):
        list(corpus([table]).pairs())


@pytest.mark.parametrize(("line", "columns"), [("no tab", 1), ("", 1), ("a\tb\tc", 3), ("\t\t\t", 4)])
def test_table_with_other_than_two_columns(write_text, line, columns):
    table = write_text("train.tsv", f"one\teins\n{line}\n")
    with pytest.raises(CorpusError) as caught:
        list(corpus([table]).pairs())
    assert str(caught.value) == (
        f"{table}:2: expected 2 columns, found {columns}. Each line of a .tsv file is source, tab, target."
    )


@pytest.mark.parametrize("bad", ["source", "target"])
def test_invalid_utf8_on_either_side(write_text, bad):
    files = {"source": write_text("a.en", ["one", "two"]), "target": write_text("a.de", ["eins", "zwei"])}
    files[bad].write_bytes(b"fine\n\xe4\n")
    with pytest.raises(CorpusError, match=re.escape(f"{files[bad]}:2: not UTF-8")):
        list(corpus([files["source"]], [files["target"]]).pairs())


def test_missing_side(write_text, tmp_path):
    source = write_text("a.en", ["one"])
    with pytest.raises(CorpusError, match=re.escape(f"File {tmp_path / 'a.de'} does not exist.")):
        list(corpus([source], [tmp_path / "a.de"]).pairs())


def test_a_pipe_is_refused(tmp_path):
    """Only one of several readings would get its text."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CorpusError, match=r"pipe is a pipe or a device, but training reads its text several times\."):
        corpus([tmp_path / "pipe"], [tmp_path / "pipe"]).require_files()


def test_no_text_at_all():
    with pytest.raises(CorpusError, match=r"No validation text given\."):
        Corpus.of((), (), "validation")


@pytest.mark.parametrize(
    ("source", "target"),
    [(("a.tsv",), ("a.de",)), (("a.tsv", "b.en"), ()), (("a.en",), ("a.tsv.gz",)), (("a.tsv",), ("b.tsv",))],
)
def test_tables_among_other_files(source, target):
    with pytest.raises(
        CorpusError, match=r"The training text mixes \.tsv, \.jsonl or \.tmx with other files.*only as source\."
    ):
        Corpus.of(source, target, "training")


@pytest.mark.parametrize(("source", "target"), [(("a.en",), ()), (("a.en", "b.en"), ("a.de",))])
def test_files_without_partner(source, target):
    expected = f"The training text has {len(source)} source and {len(target)} target files"
    with pytest.raises(CorpusError, match=expected):
        Corpus.of(source, target, "training")


@pytest.mark.parametrize(
    ("name", "table"),
    [("a.tsv", True), ("a.tsv.gz", True), ("d/x.tsv", True), ("a.tsv.txt", False), ("tsv", False), ("a.gz", False)],
)
def test_tables_are_known_by_their_names(name, table):
    assert (kind_of(name) == ".tsv") is table


def test_digest_is_of_the_bytes_in_order(write_text):
    source, target = write_text("a.en", "one\n"), write_text("a.de", "eins\n")
    parts = b"".join(hashlib.sha256(raw).digest() for raw in (b"one\n", b"eins\n"))
    assert corpus([source], [target]).digest() == hashlib.sha256(parts).hexdigest()
    assert corpus([target], [source]).digest() != corpus([source], [target]).digest()
    before = corpus([source], [target]).digest()
    moved = source.rename(source.with_name("moved.en"))
    assert corpus([moved], [target]).digest() == before
    moved.write_text("One\n", encoding="utf-8")
    assert corpus([moved], [target]).digest() != before


def test_digest_tells_where_one_file_ends(write_text):
    first = corpus([write_text("a.en", "one\ntwo\n")], [write_text("a.de", "eins\n")])
    second = corpus([write_text("b.en", "one\n")], [write_text("b.de", "two\neins\n")])
    assert first.digest() != second.digest()


def test_digest_of_what_cannot_be_read(write_text, tmp_path):
    source = write_text("a.en", "one\n")
    with pytest.raises(CorpusError, match=re.escape(f"File {tmp_path / 'none'} does not exist.")):
        corpus([source], [tmp_path / "none"]).digest()
    with pytest.raises(CorpusError, match=re.escape(f"Cannot read {tmp_path}: ")):
        corpus([source], [tmp_path]).digest()


def test_clean():
    assert clean(" \u00a0 Ein Satz.\r\t", lowercase=False) == "Ein Satz."
    assert clean(" ÄRGER im  Haus ", lowercase=True) == "ärger im  haus"
    assert clean("\u2028 \u3000", lowercase=False) == ""


def test_pairs_are_named():
    assert Pair("a", "b").source == "a"
    assert Pair("a", "b").target == "b"
