"""The token store: a tokenized corpus on disk, memory-mapped, so that it need not fit into memory.

A store is a directory with the token ids of each side (`source.ids`, `target.ids`; each sentence ends with the end
symbol), the start of each sentence (`*.offsets`), its line number in the text (`lines`), the pairs sorted by length
(`by_length`), the length buckets (`buckets`) and a description (`store.json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from heedful.atomic_files import holds_only, new_directory, read_at_most
from heedful.config import EOS, DataConfig
from heedful.data.length_buckets import Chunk, LengthBuckets, Lengths, length_buckets, write_order
from heedful.errors import CorpusError, cause
from heedful.formatting import plural
from heedful.text.corpus import Pair, clean
from heedful.text.tokenizer import Tokenizer
from heedful.typed_dataclasses import require_format_version

Ids = npt.NDArray[np.integer[Any]]

FORMAT_VERSION = 1  # of the directory; in store.json
_SIDES = ("source.ids", "target.ids", "source.offsets", "target.offsets", "lines")
_FILES = (*_SIDES, "by_length", "buckets", "store.json")
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

    def __str__(self) -> str:
        dropped = f"{self.empty:,} empty, {self.too_long:,} too long, {self.uneven:,} too different in length"
        return f"{self.kept:,} of {plural(self.read, 'pair')} kept ({dropped})"


class Store:
    """A corpus of `len(store)` pairs, read from a directory that `write_store` wrote."""

    def __init__(self, directory: Path) -> None:
        try:
            described = json.loads((directory / "store.json").read_text(encoding="utf-8"))
            require_format_version(described["format_version"], FORMAT_VERSION, directory / "store.json", CorpusError)
            dtype = np.dtype(described["dtype"])
            self.report = FilterReport(**described["report"])
            self.facts: dict[str, str] = described["facts"]
            self._ids = {side: _map(directory / f"{side}.ids", dtype) for side in ("source", "target")}
            self._offsets = {side: _map(directory / f"{side}.offsets", np.dtype(np.int64)) for side in self._ids}
            self.lines = _map(directory / "lines", np.dtype(np.int64))
            self.by_length = _map(directory / "by_length", np.dtype(np.int64))
            self.buckets = LengthBuckets(*np.fromfile(directory / "buckets", np.int64).reshape(3, -1))
            self._check_sizes()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorpusError(
                f"Cannot read the token store {directory}: {cause(error)}. "
                "It was written when the run started. Restore it from a backup, or choose another `--out`."
            ) from None

    def __len__(self) -> int:
        return self.report.kept

    def source(self, index: int) -> Ids:
        """Return the ids of the pair's source with the end token."""
        return self._sentence("source", index)

    def target(self, index: int) -> Ids:
        return self._sentence("target", index)

    def lengths(self, side: str) -> Lengths:
        """Return the number of tokens of every sentence of a side, with the end token."""
        return np.diff(self._offsets[side]).astype(np.int32)

    def _check_sizes(self) -> None:
        """Raise if a file is truncated: it would otherwise be read as shorter sentences."""
        for side, ids in self._ids.items():
            offsets = self._offsets[side]
            if len(offsets) != len(self) + 1 or offsets[-1] != len(ids):
                raise ValueError(f"{side} side incomplete")
        if len(self.lines) != len(self):
            raise ValueError("line numbers incomplete")
        if not len(self.by_length) == self.buckets.count_G.sum() == len(self):
            raise ValueError("length order incomplete")
        if self.buckets.tokens != sum(map(len, self._ids.values())) or any((side < 1).any() for side in self.buckets):
            raise ValueError("lengths damaged")

    def _sentence(self, side: str, index: int) -> Ids:
        offsets = self._offsets[side]
        return self._ids[side][offsets[index] : offsets[index + 1]]


def is_store(directory: Path) -> bool:
    """Return whether the directory has only the files of a store, so that a new store may replace it."""
    complete = holds_only(directory, _FILES) and len(list(directory.iterdir())) == len(_FILES)
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
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32)
    report = FilterReport()
    with new_directory(directory, replaces=is_store) as unfinished:
        with _Writer(unfinished, dtype) as writer:
            for kept in _tokenized(pairs, tokenizer, rules, report, threads):
                writer.add(kept)
        buckets = length_buckets(_chunks(unfinished, report.kept))
        with (unfinished / "by_length").open("wb") as file:
            write_order(_chunks(unfinished, report.kept), buckets, file)
        np.stack(buckets).tofile(unfinished / "buckets")
        described = {"format_version": FORMAT_VERSION, "dtype": dtype.name, "report": asdict(report), "facts": facts}
        (unfinished / "store.json").write_text(json.dumps(described, indent=1), encoding="utf-8")
    return Store(directory)


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


def _tokenized(
    pairs: Iterable[Pair], tokenizer: Tokenizer, rules: DataConfig, report: FilterReport, threads: int
) -> Iterator[list[_Kept]]:
    candidates = _candidates(pairs, rules, report)
    while chunk := list(islice(candidates, _CHUNK)):
        sources = tokenizer.encode_many([pair.source for _, pair in chunk], threads)
        targets = tokenizer.target.encode_many([pair.target for _, pair in chunk], threads)
        numbers = [line for line, _ in chunk]
        sentences = map(_Kept, numbers, ([*ids, EOS] for ids in sources), ([*ids, EOS] for ids in targets))
        kept = [sentence for sentence in sentences if _fits(sentence, rules, report)]
        report.kept += len(kept)
        yield kept


def _candidates(pairs: Iterable[Pair], rules: DataConfig, report: FilterReport) -> Iterator[tuple[int, Pair]]:
    """Yield line number and text of the pairs worth tokenizing, without lines that are far too long."""
    for line, pair in enumerate(pairs, start=1):
        report.read += 1
        cleaned = Pair(*(clean(text, rules.lowercase) for text in pair))
        if not (cleaned.source and cleaned.target):
            report.empty += 1
        elif max(map(len, cleaned)) > _MOST_CHARACTERS_PER_TOKEN * rules.max_length:
            report.too_long += 1
        else:
            yield line, cleaned


def _fits(sentence: _Kept, rules: DataConfig, report: FilterReport) -> bool:
    shorter, longer = sorted((len(sentence.source), len(sentence.target)))
    if longer > rules.max_length:
        report.too_long += 1
        return False
    if longer > rules.max_ratio * shorter:
        report.uneven += 1
        return False
    return True


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
