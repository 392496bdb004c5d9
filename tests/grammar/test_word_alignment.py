"""Gold alignments: hand-written links, and a check that marks change no sentence."""

from __future__ import annotations

import pytest

from heedful import grammar
from heedful.grammar import word_alignment
from heedful.grammar.chooser import HashChooser
from heedful.grammar.sentence_pair import realise
from heedful.grammar.sentences import generate_sentence
from heedful.grammar.word_alignment import gold_alignment, realise_marked, without_marks


def test_marks_do_not_change_any_sentence() -> None:
    for index in range(1_000):
        structure = generate_sentence(HashChooser(11, index))
        pair, marked = realise(structure), realise_marked(structure)
        assert (without_marks(marked.english), without_marks(marked.german)) == (pair.english, pair.german)


@pytest.mark.parametrize(
    ("english", "german", "links"),
    [
        (
            "The old man is looking for his red hat.",
            "Der alte Mann sucht seinen roten Hut.",
            "alte:old Mann:man sucht:looking sucht:for roten:red Hut.:hat.",
        ),
        (
            "The children are calling the lazy teacher.",  # a separable verb: two German words
            "Die Kinder rufen den faulen Lehrer an.",
            "Kinder:children rufen:calling faulen:lazy Lehrer:teacher. an.:calling",
        ),
        (
            "They say that the bakers must paint a black picture for her today.",
            "Sie sagen, dass die Bäcker heute ein schwarzes Bild für sie malen müssen.",
            "sagen,:say Bäcker:bakers heute:today. schwarzes:black Bild:picture malen:paint",
        ),
    ],
)
def test_links_of_known_pairs(english: str, german: str, links: str) -> None:
    found = gold_alignment(english, german)
    assert found is not None
    words, others = german.split(), english.split()
    assert {f"{words[target]}:{others[source]}" for target, source in found} == set(links.split())


def test_a_pair_outside_the_grammar_has_no_alignment() -> None:
    assert gold_alignment("Something else happened.", "Etwas anderes geschah.") is None
    assert gold_alignment("The dog sleeps.", "Die Katze schläft.") is None


def test_every_pair_of_the_corpus_is_aligned() -> None:
    for pair in grammar.pairs("test", 20):
        assert gold_alignment(pair.english, pair.german)


def test_the_search_for_a_derivation_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = ("The old man is looking for his red hat.", "Der alte Mann sucht seinen roten Hut.")
    assert gold_alignment(*pair) is not None
    monkeypatch.setattr(word_alignment, "_MOST_ATTEMPTS", 3)
    assert gold_alignment(*pair) is None
