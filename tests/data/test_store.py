"""The token store: filtering, counts, memory, and errors of a damaged store."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.config import EOS, DataConfig
from heedful.data.batches import Batches
from heedful.data.store import FilterReport, Store, write_store
from heedful.errors import CorpusError
from heedful.text.corpus import Corpus, Pair


def expected_fate(pair: Pair, tokenizer, rules: DataConfig) -> str:
    """The rules of config.py by hand: empty, then too long, then uneven."""
    sides = [side.strip().lower() if rules.lowercase else side.strip() for side in pair]
    if "" in sides:
        return "empty"
    source, target = (len(tokenizer.encode(side)) + 1 for side in sides)  # with the end symbol
    if source > rules.max_length or target > rules.max_length:
        return "too_long"
    if source / target > rules.max_ratio or target / source > rules.max_ratio:
        return "uneven"
    return "kept"


SIDES = st.one_of(
    st.lists(st.sampled_from(["bada", "Kilo", "me", "\u2581", "é"]), max_size=30).map(" ".join),
    st.sampled_from(["", " ", "\t\u3000", "\u2028"]),
)


@settings(max_examples=60)
@given(
    pairs=st.lists(st.builds(Pair, SIDES, SIDES), max_size=30),
    max_length=st.integers(2, 30),
    max_ratio=st.sampled_from([1.0, 1.5, 2.0, 4.0]),
    lowercase=st.booleans(),
)
def test_pairs_are_kept_and_counted_by_the_rules(tmp_path_factory, tokenizer, pairs, max_length, max_ratio, lowercase):
    rules = DataConfig(max_length=max_length, max_ratio=max_ratio, lowercase=lowercase)
    store = write_store(tmp_path_factory.mktemp("s") / "store", pairs, tokenizer, rules, {})
    fates = [expected_fate(pair, tokenizer, rules) for pair in pairs]
    counts = {name: fates.count(name) for name in ("kept", "empty", "too_long", "uneven")}
    assert store.report == FilterReport(read=len(pairs), **counts)
    kept = [index for index, fate in enumerate(fates) if fate == "kept"]
    assert len(store) == len(kept)
    assert [store.line(i) for i in range(len(store))] == [index + 1 for index in kept]
    for place, index in enumerate(kept):
        source, target = (side.strip().lower() if lowercase else side.strip() for side in pairs[index])
        assert store.source(place).tolist() == [*tokenizer.encode(source), EOS]
        assert store.target(place).tolist() == [*tokenizer.encode(target), EOS]
    assert store.lengths("source").tolist() == [len(store.source(i)) for i in range(len(store))]
    assert store.lengths("target").tolist() == [len(store.target(i)) for i in range(len(store))]


def test_limits_are_inclusive(tmp_path, tokenizer):
    """A pair at max_length or max_ratio is kept; one more token drops it."""
    four = next(" ".join(["bada"] * n) for n in range(1, 9) if len(tokenizer.encode(" ".join(["bada"] * n))) >= 4)
    tokens = len(tokenizer.encode(four)) + 1
    for max_length, kept in ((tokens, 1), (tokens - 1, 0)):
        store = write_store(tmp_path / "a", [Pair(four, four)], tokenizer, DataConfig(max_length=max_length), {})
        assert (len(store), store.report.too_long) == (kept, 1 - kept)
    short = len(tokenizer.encode("me")) + 1
    for max_ratio, kept in ((tokens / short, 1), (tokens / short - 0.01, 0)):
        store = write_store(tmp_path / "a", [Pair("me", four)], tokenizer, DataConfig(max_ratio=max_ratio), {})
        assert (len(store), store.report.uneven) == (kept, 1 - kept)


def test_report_format():
    report = FilterReport(read=12_345, kept=12_000, empty=5, too_long=300, uneven=40)
    assert str(report) == "12,000 of 12,345 pairs kept (5 empty, 300 too long, 40 too different in length)"


def test_facts_and_report_are_read_back(store):
    assert store.facts == {"text": "synthetic"}
    assert store.report.read == 1_000


def test_empty_store(tmp_path, tokenizer):
    store = write_store(tmp_path / "s", [Pair("", "x")], tokenizer, DataConfig(), {})
    assert len(store) == 0
    assert store.lengths("source").tolist() == []


def test_store_does_not_depend_on_the_chunk_size(tmp_path, tokenizer, make_pairs, monkeypatch):
    pairs = [*make_pairs(50), Pair("", ""), *make_pairs(50, seed=3)]
    write_store(tmp_path / "whole", pairs, tokenizer, DataConfig(max_length=20), {})
    monkeypatch.setattr("heedful.data.store._CHUNK", 7)
    monkeypatch.setattr("heedful.data.store._ORDERED_TOGETHER", 9)
    write_store(tmp_path / "chunks", pairs, tokenizer, DataConfig(max_length=20), {}, threads=2)
    for file in (tmp_path / "whole").iterdir():
        assert file.read_bytes() == (tmp_path / "chunks" / file.name).read_bytes()


@pytest.mark.parametrize(("vocab_size", "dtype"), [(2**16, np.uint16), (2**16 + 1, np.uint32)])
def test_id_type_fits_the_vocabulary_size(tmp_path, vocab_size, dtype):
    class Wide:
        def __init__(self) -> None:
            self.vocab_size = vocab_size

        @property
        def target(self):
            return self

        def encode_many(self, texts: list[str], threads: int) -> list[list[int]]:
            return [[vocab_size - 1] for _ in texts]

    store = write_store(tmp_path / "s", [Pair("a", "b")], Wide(), DataConfig(), {})  # type: ignore[arg-type]
    assert store.source(0).tolist() == [vocab_size - 1, EOS]
    assert store.source(0).dtype == dtype


def test_ten_megabytes_in_one_line_are_dropped_quickly(tmp_path, tokenizer, write_text):
    source = write_text("a.en", ["one", "x" * 10_000_000, "x " * 5_000_000, "three"])
    target = write_text("a.de", ["eins", "zwei", "drei", "vier"])
    begin = time.process_time()
    pairs = Corpus.of((str(source),), (str(target),), "training").pairs()
    store = write_store(tmp_path / "s", pairs, tokenizer, DataConfig(), {})
    assert time.process_time() - begin < 3
    assert store.report == FilterReport(read=4, kept=2, too_long=2)
    assert [store.line(i) for i in range(len(store))] == [1, 4]


def test_text_error_leaves_no_store(tmp_path, tokenizer):
    def failing() -> Iterator[Pair]:
        yield Pair("a", "b")
        raise CorpusError("text:2: not UTF-8")

    with pytest.raises(CorpusError, match="text:2"):
        write_store(tmp_path / "s", failing(), tokenizer, DataConfig(), {})
    assert list(tmp_path.iterdir()) == []


def peak_of_writing(directory: Path, pairs: Iterator[Pair], tokenizer) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        write_store(directory, pairs, tokenizer, DataConfig(), {})
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_number_of_lines(tmp_path, tokenizer, make_pairs, monkeypatch):
    monkeypatch.setattr("heedful.data.store._CHUNK", 500)
    monkeypatch.setattr("heedful.data.store._ORDERED_TOGETHER", 500)
    pairs = make_pairs(500)

    def peak(times: int) -> int:
        stream = (Pair(*pair) for _ in range(times) for pair in pairs)
        return peak_of_writing(tmp_path / f"{times}", stream, tokenizer)

    few, many = peak(2), peak(20)
    assert many < 1.25 * few, (few, many)


def test_memory_does_not_grow_with_dropped_lines(tmp_path, tokenizer):
    """A hundred lines of a megabyte each, one at a time."""
    stream = (Pair("x" * 1_000_000, "y") for _ in range(100))
    assert peak_of_writing(tmp_path / "s", stream, tokenizer) < 20_000_000


def test_reading_does_not_load_the_ids(tmp_path, tokenizer):
    pairs = [Pair("bada " * 100, "bada " * 100)] * 2_000
    write_store(tmp_path / "s", pairs, tokenizer, DataConfig(max_length=1_000), {})
    size = (tmp_path / "s" / "source.ids").stat().st_size
    tracemalloc.start()
    try:
        Store(tmp_path / "s").source(1_999)
        assert tracemalloc.get_traced_memory()[1] < size / 4
    finally:
        tracemalloc.stop()


FILES = ["source.ids", "target.ids", "source.offsets", "target.offsets", "lines", "by_length", "buckets", "store.json"]


@pytest.fixture
def written(tmp_path, tokenizer, make_pairs) -> Path:
    write_store(tmp_path / "s", make_pairs(20), tokenizer, DataConfig(), {})
    return tmp_path / "s"


def refused(directory: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        Store(directory)
    message = str(caught.value)
    assert message.startswith(f"Cannot read the token store {directory}: ")
    assert message.endswith("It was written when the run started. Restore it from a backup, or choose another `--out`.")


@pytest.mark.parametrize("value", [0, 1, 1_000])
def test_inconsistent_lengths_are_rejected(written, value):
    buckets = np.fromfile(written / "buckets", np.int64).reshape(3, -1)
    buckets[:2] = value
    buckets.tofile(written / "buckets")
    refused(written)


def test_inconsistent_order_is_detected_in_training(written):
    order = np.fromfile(written / "by_length", np.int64)
    np.full_like(order, order[-1]).tofile(written / "by_length")
    batches = Batches(Store(written), 60, seed=1)
    with pytest.raises(CorpusError, match="length order does not match"):
        [batches[number] for number in range(batches.per_epoch)]


@pytest.mark.parametrize("name", FILES)
def test_missing_file_is_rejected(written, name):
    (written / name).unlink()
    refused(written)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("lost", [1, 2, 8, None])
def test_truncated_file_is_rejected(written, name, lost):
    content = (written / name).read_bytes()
    (written / name).write_bytes(content[: -lost if lost else 0])
    refused(written)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: [],
        lambda content: {**content, "dtype": "nonsense"},
        lambda content: {**content, "dtype": "object"},
        lambda content: {key: value for key, value in content.items() if key != "facts"},
        lambda content: {**content, "report": {"read": 1, "other": 2}},
        lambda content: {**content, "report": {**content["report"], "kept": 19}},
    ],
    ids=["a list", "no type", "objects", "no facts", "other report", "other count"],
)
def test_invalid_description_is_rejected(written, change):
    described = json.loads((written / "store.json").read_text(encoding="utf-8"))
    (written / "store.json").write_text(json.dumps(change(described)), encoding="utf-8")
    refused(written)


def test_unknown_store_version_says_what_to_do(written):
    described = json.loads((written / "store.json").read_text(encoding="utf-8"))
    (written / "store.json").write_text(json.dumps({**described, "format_version": 2}), encoding="utf-8")
    with pytest.raises(CorpusError, match=r"has format_version 2; heedful .* reads format_version 1"):
        Store(written)


def test_missing_store(tmp_path):
    refused(tmp_path / "none")
