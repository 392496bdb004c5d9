"""The built-in pair as a corpus."""

from heedful import grammar
from heedful.text.builtin_corpus import BuiltinCorpus


def test_it_has_the_sentences_of_its_split() -> None:
    corpus = BuiltinCorpus("test", 50)
    expected = [(pair.english, pair.german) for pair in grammar.pairs("test", 50)]
    assert [tuple(pair) for pair in corpus.pairs()] == expected
    assert corpus.count() == 50


def test_the_digest_tells_splits_and_sizes_apart() -> None:
    digests = {BuiltinCorpus(split, size).digest() for split in ("train", "test") for size in (10, 20)}
    assert len(digests) == 4
    assert BuiltinCorpus("train", 10).digest() == BuiltinCorpus("train", 10).digest()
