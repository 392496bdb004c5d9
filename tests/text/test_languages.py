"""Language codes, and detection of languages from file names and text."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from heedful.errors import UsageError
from heedful.text.builtin_corpus import BuiltinCorpus
from heedful.text.languages import (
    Languages,
    disagrees,
    from_names,
    identify,
    language_name,
    require_code,
    with_languages,
)

BUILTIN = list(BuiltinCorpus("train", 300).pairs())
ENGLISH, GERMAN = [pair.source for pair in BUILTIN], [pair.target for pair in BUILTIN]


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("train.en", "train.de", ("en", "de")),
        ("a/b/train.de.gz", "/c/train.en.gz", ("de", "en")),
        ("corpus.de-en.en", "corpus.de-en.de", ("en", "de")),
        ("news.en-de.en.gz", "news.en-de.de.gz", ("en", "de")),
        ("test_2016_flickr.lc.norm.tok.en.gz", "test_2016_flickr.lc.norm.tok.fr.gz", ("en", "fr")),
        ("en.txt", "de.txt", ("en", "de")),
        ("train.en.txt.gz", "train.cs.txt.gz", ("en", "cs")),
        ("train.pt-BR", "train.zh_Hans", ("pt-BR", "zh-Hans")),
        ("train.eng", "train.deu", ("eng", "deu")),
    ],
)
def test_names_of_two_files_state_the_languages(source: str, target: str, expected: tuple[str, str]) -> None:
    assert from_names([source], [target]) == Languages(*expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("train.src", "train.tgt"),
        ("train.txt", "other.txt"),
        ("source", "target"),
        ("train.en", "train.tgt"),
        ("train.en", "simple.en"),  # the same language twice is not a pair to translate between
        ("train.en-de", "train.de-en"),
        ("train.xx", "train.yy"),
        ("train.EN", "train.DE"),
        ("words.trees", "words.words"),
        (".gz", ".gz"),
    ],
)
def test_other_names_say_nothing(source: str, target: str) -> None:
    assert from_names([source], [target]) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("corpus.en-de.tsv", ("en", "de")),
        ("x/train-en-de.tsv.gz", ("en", "de")),
        ("de_en.tsv", ("de", "en")),
        ("eng-deu.tsv", ("eng", "deu")),
        ("train.tsv", None),
        ("pt-BR.tsv", None),
        ("en-en.tsv", None),
        ("pre-train.tsv", None),
        ("corpus.en.tsv", None),
    ],
)
def test_a_table_names_both(name: str, expected: tuple[str, str] | None) -> None:
    assert from_names([name], []) == (expected and Languages(*expected))


def test_several_files_must_agree() -> None:
    assert from_names(["a.en", "b.en"], ["a.de", "b.de"]) == Languages("en", "de")
    assert from_names(["a.en", "b.fr"], ["a.de", "b.de"]) is None
    assert from_names(["a.en", "b.txt"], ["a.de", "b.de"]) is None


@pytest.mark.parametrize(
    ("code", "spelled"),
    [
        ("en", "en"),
        ("EN", "en"),
        ("pt_br", "pt-BR"),
        ("zh-hans", "zh-Hans"),
        ("sr-Latn-RS", "sr-Latn-RS"),
        ("es-419", "es-419"),
        ("hsb", "hsb"),
        ("qaa", "qaa"),
        ("x-mine", "x-mine"),
    ],
)
def test_codes_in_their_usual_spelling(code: str, spelled: str) -> None:
    assert require_code(code, "--languages") == spelled


@pytest.mark.parametrize("code", ["xx-nonsense", "xx", "", "e", "en-", "en de", "en\n", "klingon", "en-x"])
def test_what_is_not_a_code(code: str) -> None:
    with pytest.raises(UsageError) as caught:
        require_code(code, "data.source_language")
    message = str(caught.value)
    assert message.startswith(f'data.source_language: "{code}" is not a language code. Use an ISO 639 code')
    assert "Did you mean" not in message


def test_what_is_not_even_text() -> None:
    with pytest.raises(UsageError, match=r'"\\udcff" is not a language code'):
        require_code("\udcff", "--languages")


@pytest.mark.parametrize(("name", "code"), [("English", "en"), ("german", "de"), ("Portugese", "pt")])
def test_a_name_instead_of_a_code(name: str, code: str) -> None:
    with pytest.raises(UsageError, match=f'Did you mean "{code}"'):
        require_code(name, "--languages")


def test_names_of_languages() -> None:
    names = [language_name(code) for code in ("en", "pt-BR", "deu", "hsb", "")]
    assert names == ["English", "Portuguese", "German", "hsb", ""]


def test_models_with_their_languages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert with_languages("runs/mine") == ("runs/mine", None)
    assert with_languages("runs/mine:en:fr") == ("runs/mine", ("en", "fr"))
    assert with_languages("C:runs:pt_br:fr") == ("C:runs", ("pt-BR", "fr"))
    assert with_languages("odd:name") == ("odd:name", None)
    (tmp_path / "run:en:de").mkdir()
    assert with_languages("run:en:de") == ("run:en:de", None)
    with pytest.raises(UsageError, match=r'runs/mine:en:french: "french" is not a language code.*Did you mean "fr"'):
        with_languages("runs/mine:en:french")


def test_text_is_identified() -> None:
    assert identify(ENGLISH) == "en"
    assert identify(GERMAN) == "de"
    assert identify(line.lower() for line in GERMAN[:30]) == "de"


def test_what_is_not_clear_is_not_identified() -> None:
    assert identify(ENGLISH[:20] + GERMAN[:20]) is None
    assert identify([]) is None
    assert identify(["", " "]) is None
    assert identify(["1 2 3 4", "5 6 7 8"] * 50) is None
    assert identify(["a b c d e f", "g h a b c"] * 50) is None


def test_identification_reads_no_more_than_it_needs() -> None:
    endless = itertools.cycle(ENGLISH)
    assert identify(endless) == "en"


@pytest.mark.parametrize(
    ("stated", "found", "expected"),
    [
        ("en", "de", True),
        ("en-GB", "de", True),
        ("eng", "de", True),
        ("de", "de", False),
        ("deu", "de", False),
        ("pt-BR", "pt", False),
        ("en", None, False),
        ("hsb", "cs", False),  # not a language that the identifier knows: it would take it for a neighbour
        ("nb", "da", False),
        ("bs", "hr", False),
    ],
)
def test_when_a_text_disagrees(stated: str, found: str | None, expected: bool) -> None:
    assert disagrees(stated, found) is expected
