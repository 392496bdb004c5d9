"""The built-in corpus as a corpus."""

import os
import subprocess
import sys

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


def test_another_process_gets_the_same_digest() -> None:
    """In one process the digest is cached, so comparing it with itself would prove nothing."""
    program = "from heedful.text.builtin_corpus import BuiltinCorpus as B; print(B('train', 10).digest())"
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == BuiltinCorpus("train", 10).digest()
