"""The token store: a tokenized corpus on disk, memory-mapped rather than loaded.

A store is a directory with the token ids of each side (`source.ids`, `target.ids`; each sentence ends with the end
symbol), the start of each sentence (`*.offsets`), its line number in the text (`lines`), the pairs sorted by length
(`by_length`), the length buckets (`buckets`), a description (`store.json`) and the digest of each file
(`MANIFEST.json`).

A prepared corpus has several stores, its shards, and an index with the length order of all pairs.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, astuple, dataclass
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from heedful.atomic_files import holds_only, new_directory, read_at_most
from heedful.config import EOS, DataConfig
from heedful.data.length_buckets import Chunk, LengthBuckets, Lengths, length_buckets, write_order
from heedful.errors import CorpusError, cause
from heedful.formatting import plural
from heedful.manifest import MANIFEST, write_manifest
from heedful.text.corpus import Pair, clean
from heedful.text.tokenizer import Tokenizer
from heedful.typed_dataclasses import require_format_version

Ids = npt.NDArray[np.integer[Any]]
NumberedPair = tuple[int, Pair]  # line number in the text, and the pair
Dropped = Callable[[str, int, Pair], None]  # the reason (a field of FilterReport), the line number, and the pair

FORMAT_VERSION = 1  # of the directory; in store.json
_SIDES = ("source.ids", "target.ids", "source.offsets", "target.offsets", "lines")
INDEX_FILES = ("by_length", "buckets", "store.json")
STORE_FILES = (*_SIDES, *INDEX_FILES)
_MOST_JSON = 1_000_000  # bytes of store.json
_DESCRIPTION = {"format_version", "dtype", "report", "facts"}  # keys of store.json
_CHUNK = 10_000  # pairs tokenized together
_ORDERED_TOGETHER = 500_000  # pairs sorted by length at a time
# A line with more characters per allowed token is always too long, and is not tokenized.
_MOST_CHARACTERS_PER_TOKEN = 64


@dataclass
class FilterReport:
    """How many pairs were read, kept and dropped, and why."""

    read: int = 0
    kept: int = 0
    empty: int = 0  # a side is empty or white space
    too_long: int = 0  # a side has more than max_length tokens
    uneven: int = 0  # one side is more than max_ratio times as long as the other

    def __add__(self, other: FilterReport) -> FilterReport:
        return FilterReport(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        dropped = f"{self.empty:,} empty, {self.too_long:,} too long, {self.uneven:,} too different in length"
        return f"{self.kept:,} of {plural(self.read, 'pair')} kept ({dropped})"


class _Shard:
    """The memory-mapped sentences of one store directory."""

    def __init__(self, directory: Path, dtype: np.dtype[Any]) -> None:
        self.ids = {side: _map(directory / f"{side}.ids", dtype) for side in ("source", "target")}
        self.offsets = {side: _map(directory / f"{side}.offsets", np.dtype(np.int64)) for side in self.ids}
        self.lines = _map(directory / "lines", np.dtype(np.int64))

    def __len__(self) -> int:
        return len(self.lines)

    def check_sizes(self) -> None:
        """Raise if a file is truncated: it would otherwise be read as shorter sentences."""
        for side, ids in self.ids.items():
            offsets = self.offsets[side]
            if len(offsets) != len(self) + 1 or offsets[-1] != len(ids):
                raise ValueError(f"{side} side incomplete")


class Store:
    """A corpus of `len(store)` pairs, read from a directory that `write_store` wrote.

    With `shards`, the directory is the index that `write_index` wrote for these store directories.
    """

    def __init__(self, directory: Path, shards: Sequence[Path] = ()) -> None:
        self.directory = directory
        try:
            described = json.loads((directory / "store.json").read_text(encoding="utf-8"))
            require_format_version(described["format_version"], FORMAT_VERSION, directory / "store.json", CorpusError)
            dtype = np.dtype(described["dtype"])
            self.report = FilterReport(**described["report"])
            self.facts: dict[str, str] = described["facts"]
            self._shards = [_Shard(shard, dtype) for shard in shards or (directory,)]
            self._starts = [0, *accumulate(map(len, self._shards))]
            self.by_length = _map(directory / "by_length", np.dtype(np.int64))
            self.buckets = LengthBuckets(*np.fromfile(directory / "buckets", np.int64).reshape(3, -1))
            self._check_sizes()
        except (OSError, ValueError, KeyError, TypeError) as error:
            origin = "heedful prepare wrote it" if shards else "It was written when the run started"
            raise CorpusError(
                f"Cannot read the token store {directory}: {cause(error)}. "
                f"{origin}. Restore it from a backup, or choose another `--out`."
            ) from None

    def __len__(self) -> int:
        return self.report.kept

    def source(self, index: int) -> Ids:
        """Return the ids of the pair's source with the end token."""
        return self._sentence("source", index)

    def target(self, index: int) -> Ids:
        return self._sentence("target", index)

    def line(self, index: int) -> int:
        """Return the line number of a pair in the text."""
        shard, place = self._place(index)
        return int(shard.lines[place])

    def lengths(self, side: str) -> Lengths:
        """Return the number of tokens of every sentence of a side, with the end token."""
        return np.concatenate([np.diff(shard.offsets[side]) for shard in self._shards]).astype(np.int32)

    def _check_sizes(self) -> None:
        for shard in self._shards:
            shard.check_sizes()
        if self._starts[-1] != len(self):
            raise ValueError("line numbers incomplete")
        if not len(self.by_length) == self.buckets.count_G.sum() == len(self):
            raise ValueError("length order incomplete")
        tokens = sum(len(ids) for shard in self._shards for ids in shard.ids.values())
        if self.buckets.tokens != tokens or any((side < 1).any() for side in self.buckets):
            raise ValueError("lengths damaged")

    def _place(self, index: int) -> tuple[_Shard, int]:
        number = bisect_right(self._starts, index) - 1
        return self._shards[number], index - self._starts[number]

    def _sentence(self, side: str, index: int) -> Ids:
        shard, place = self._place(index)
        offsets = shard.offsets[side]
        return shard.ids[side][offsets[place] : offsets[place + 1]]


def is_store(directory: Path) -> bool:
    """Return whether the directory has only files of a store, so that one may replace it."""
    files = (*STORE_FILES, MANIFEST)
    complete = holds_only(directory, files) and len(list(directory.iterdir())) == len(files)
    return complete and _description(directory).keys() == _DESCRIPTION


def facts_of(directory: Path) -> dict[str, str]:
    """Return the facts that a store was written with; empty if there is no store."""
    facts = _description(directory).get("facts")
    return facts if isinstance(facts, dict) else {}


def _description(directory: Path) -> dict[str, Any]:
    try:
        described = json.loads(read_at_most(directory / "store.json", _MOST_JSON))
    except (OSError, ValueError, RecursionError):
        return {}
    return described if isinstance(described, dict) else {}


def _map(path: Path, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if path.stat().st_size == 0:
        return np.zeros(0, dtype)  # an empty file cannot be mapped
    return np.memmap(path, dtype, mode="r")


def write_store(
    directory: Path,
    pairs: Iterable[Pair],
    tokenizer: Tokenizer,
    rules: DataConfig,
    facts: dict[str, str],
    threads: int = 1,
) -> Store:
    """Tokenize pairs into a new store, in constant memory.

    `facts`, such as digests, are stored with it.
    """
    with new_directory(directory, replaces=is_store) as unfinished:
        fill_store(unfinished, enumerate(pairs, start=1), tokenizer, rules, facts, threads)
        write_manifest(unfinished)
    return Store(directory)


def fill_store(
    directory: Path,
    numbered: Iterable[NumberedPair],
    tokenizer: Tokenizer,
    rules: DataConfig,
    facts: dict[str, str],
    threads: int = 1,
    dropped: Dropped | None = None,
) -> FilterReport:
    """Tokenize pairs with their line numbers into the files of a store.

    `dropped` is called with the reason and the pair for every pair that is not kept.
    """
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32)
    report = FilterReport()
    with _Writer(directory, dtype) as writer:
        for kept in _tokenized(numbered, tokenizer, rules, _Filter(report, dropped), threads):
            writer.add(kept)
    _write_order(directory, lambda: _chunks(directory, report.kept))
    _describe(directory, dtype, report, facts)
    return report


def write_index(directory: Path, shards: Sequence[Path], facts: dict[str, str]) -> FilterReport:
    """Write length order and description of a corpus with pairs in several store directories."""
    described = [_description(shard) for shard in shards]
    reports = [FilterReport(**one["report"]) for one in described]

    def chunks() -> Iterator[Chunk]:
        return chain.from_iterable(_chunks(shard, report.kept) for shard, report in zip(shards, reports, strict=True))

    _write_order(directory, chunks)
    total = sum(reports, FilterReport())
    _describe(directory, np.dtype(described[0]["dtype"]), total, facts)
    return total


def _write_order(directory: Path, chunks: Callable[[], Iterator[Chunk]]) -> None:
    buckets = length_buckets(chunks())
    with (directory / "by_length").open("wb") as file:
        write_order(chunks(), buckets, file)
    np.stack(buckets).tofile(directory / "buckets")


def _describe(directory: Path, dtype: np.dtype[Any], report: FilterReport, facts: dict[str, str]) -> None:
    described = {"format_version": FORMAT_VERSION, "dtype": dtype.name, "report": asdict(report), "facts": facts}
    (directory / "store.json").write_text(json.dumps(described, indent=1), encoding="utf-8")


def _chunks(directory: Path, pairs: int) -> Iterator[Chunk]:
    """Yield the lengths of both sides in chunks.

    The files are read, not mapped: mapped pages would stay in memory.
    """
    for begin in range(0, pairs, _ORDERED_TOGETHER):
        count = min(_ORDERED_TOGETHER, pairs - begin) + 1  # offsets: one more than sentences
        source, target = (
            np.fromfile(directory / f"{side}.offsets", np.int64, count, offset=begin * np.int64().itemsize)
            for side in ("source", "target")
        )
        yield np.diff(source).astype(np.int32), np.diff(target).astype(np.int32)


@dataclass(frozen=True)
class _Kept:
    line: int
    source: list[int]
    target: list[int]


@dataclass(frozen=True)
class _Filter:
    """Counts the pairs that are dropped, and passes them on."""

    report: FilterReport
    dropped: Dropped | None

    def drop(self, reason: str, line: int, pair: Pair) -> None:
        setattr(self.report, reason, getattr(self.report, reason) + 1)
        if self.dropped:
            self.dropped(reason, line, pair)


def _tokenized(
    numbered: Iterable[NumberedPair], tokenizer: Tokenizer, rules: DataConfig, pair_filter: _Filter, threads: int
) -> Iterator[list[_Kept]]:
    candidates = _candidates(numbered, rules, pair_filter)
    while chunk := list(islice(candidates, _CHUNK)):
        sources = tokenizer.encode_many([pair.source for _, pair in chunk], threads)
        targets = tokenizer.target.encode_many([pair.target for _, pair in chunk], threads)
        kept = []
        for (line, pair), source, target in zip(chunk, sources, targets, strict=True):
            if reason := _misfit(len(source) + 1, len(target) + 1, rules):
                pair_filter.drop(reason, line, pair)
            else:
                kept.append(_Kept(line, [*source, EOS], [*target, EOS]))
        pair_filter.report.kept += len(kept)
        yield kept


def _candidates(numbered: Iterable[NumberedPair], rules: DataConfig, pair_filter: _Filter) -> Iterator[NumberedPair]:
    """Yield line number and text of pairs worth tokenizing, without lines far too long."""
    for line, pair in numbered:
        pair_filter.report.read += 1
        cleaned = Pair(*(clean(text, rules.lowercase) for text in pair))
        if not (cleaned.source and cleaned.target):
            pair_filter.drop("empty", line, pair)
        elif max(map(len, cleaned)) > _MOST_CHARACTERS_PER_TOKEN * rules.max_length:
            pair_filter.drop("too_long", line, pair)
        else:
            yield line, cleaned


def _misfit(source: int, target: int, rules: DataConfig) -> str:
    """Return why sides of these lengths are dropped, or an empty string."""
    shorter, longer = sorted((source, target))
    if longer > rules.max_length:
        return "too_long"
    return "uneven" if longer > rules.max_ratio * shorter else ""


class _Writer:
    """The open files of a store that is being written."""

    def __init__(self, directory: Path, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.ends = {"source": 0, "target": 0}
        self.files: dict[str, IO[bytes]] = {name: (directory / name).open("wb") for name in _SIDES}

    def __enter__(self) -> _Writer:
        for side in self.ends:
            self.files[f"{side}.offsets"].write(np.zeros(1, np.int64).tobytes())
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files.values():
            file.close()

    def add(self, kept: list[_Kept]) -> None:
        if not kept:
            return
        self._add_side("source", [sentence.source for sentence in kept])
        self._add_side("target", [sentence.target for sentence in kept])
        self.files["lines"].write(np.array([sentence.line for sentence in kept], np.int64).tobytes())

    def _add_side(self, side: str, sentences: list[list[int]]) -> None:
        ends = self.ends[side] + np.cumsum([len(ids) for ids in sentences], dtype=np.int64)
        self.files[f"{side}.ids"].write(np.concatenate([np.array(ids, self.dtype) for ids in sentences]).tobytes())
        self.files[f"{side}.offsets"].write(ends.tobytes())
        self.ends[side] = int(ends[-1])
