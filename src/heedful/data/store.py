"""A tokenized corpus on disk, memory-mapped: training reads what it needs, whatever the corpus's size.

A store is a directory: the tokens of one side after the other (`source.ids`, `target.ids`, each sentence with its end
symbol), where each sentence begins (`*.offsets`), the number of its line in the text (`lines`), the pairs in order of
length (`by_length`) and the buckets of that order (`buckets`), and `store.json`.
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

from heedful.config import EOS, DataConfig
from heedful.data.lengths import Chunk, LengthBuckets, Lengths, length_buckets, write_order
from heedful.errors import CorpusError
from heedful.files import new_directory
from heedful.text.corpus import Pair, clean
from heedful.text.tokenizer import Tokenizer
from heedful.wording import plural

Ids = npt.NDArray[np.integer[Any]]

_CHUNK = 10_000  # pairs tokenized together
_STRETCH = 500_000  # pairs put in order of length together
# A line of more characters than this many a token is too long whatever its tokens: it is not even tokenized.
_MOST_CHARACTERS_PER_TOKEN = 64


@dataclass
class FilterReport:
    """What became of the pairs that were read."""

    read: int = 0
    kept: int = 0
    empty: int = 0  # a side with nothing but white space
    too_long: int = 0  # a side of more than max_length tokens
    uneven: int = 0  # one side more than max_ratio times as long as the other

    def __str__(self) -> str:
        dropped = f"{self.empty:,} empty, {self.too_long:,} too long, {self.uneven:,} too uneven"
        return f"{self.kept:,} of {plural(self.read, 'pair')} kept ({dropped})"


class Store:
    """A corpus of `len(store)` pairs, read from a directory that `write_store` made."""

    def __init__(self, directory: Path) -> None:
        try:
            described = json.loads((directory / "store.json").read_text(encoding="utf-8"))
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
                f"{directory} is not a readable token store ({error}). "
                "It was made when the run began: put it back, or train into another --out."
            ) from None

    def __len__(self) -> int:
        return self.report.kept

    def source(self, index: int) -> Ids:
        """Ids of the pair's source, the end symbol included."""
        return self._sentence("source", index)

    def target(self, index: int) -> Ids:
        return self._sentence("target", index)

    def lengths(self, side: str) -> Lengths:
        """Tokens of every sentence of a side, the end symbol included."""
        return np.diff(self._offsets[side]).astype(np.int32)

    def _check_sizes(self) -> None:
        """A file that was cut short would be read as shorter sentences."""
        for side, ids in self._ids.items():
            offsets = self._offsets[side]
            if len(offsets) != len(self) + 1 or offsets[-1] != len(ids):
                raise ValueError(f"{side} side incomplete")
        if len(self.lines) != len(self):
            raise ValueError("line numbers incomplete")
        if not len(self.by_length) == self.buckets.count_G.sum() == len(self):
            raise ValueError("order of length incomplete")
        if self.buckets.tokens != sum(map(len, self._ids.values())) or any((side < 1).any() for side in self.buckets):
            raise ValueError("lengths damaged")

    def _sentence(self, side: str, index: int) -> Ids:
        offsets = self._offsets[side]
        return self._ids[side][offsets[index] : offsets[index + 1]]


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
    """Tokenizes pairs into a new store, in memory that does not grow with it. `facts`: digests and the like."""
    dtype = np.dtype(np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32)
    report = FilterReport()
    with new_directory(directory) as unfinished:
        with _Writer(unfinished, dtype) as writer:
            for kept in _tokenized(pairs, tokenizer, rules, report, threads):
                writer.add(kept)
        buckets = length_buckets(_chunks(unfinished, report.kept))
        with (unfinished / "by_length").open("wb") as file:
            write_order(_chunks(unfinished, report.kept), buckets, file)
        np.stack(buckets).tofile(unfinished / "buckets")
        described = {"dtype": dtype.name, "report": asdict(report), "facts": facts}
        (unfinished / "store.json").write_text(json.dumps(described, indent=1), encoding="utf-8")
    return Store(directory)


def _chunks(directory: Path, pairs: int) -> Iterator[Chunk]:
    """Lengths of both sides, some pairs at a time. The files are read, not mapped: pages of a map would stay."""
    for begin in range(0, pairs, _STRETCH):
        count = min(_STRETCH, pairs - begin) + 1  # offsets: one more than sentences
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
        targets = tokenizer.encode_many([pair.target for _, pair in chunk], threads)
        numbers = [line for line, _ in chunk]
        sentences = map(_Kept, numbers, ([*ids, EOS] for ids in sources), ([*ids, EOS] for ids in targets))
        kept = [sentence for sentence in sentences if _fits(sentence, rules, report)]
        report.kept += len(kept)
        yield kept


def _candidates(pairs: Iterable[Pair], rules: DataConfig, report: FilterReport) -> Iterator[tuple[int, Pair]]:
    """Line number and text of the pairs worth tokenizing; a chunk never holds the lines that are far too long."""
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
    """The open files of a store being written."""

    def __init__(self, directory: Path, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype
        self.ends = {"source": 0, "target": 0}
        names = ("source.ids", "target.ids", "source.offsets", "target.offsets", "lines")
        self.files: dict[str, IO[bytes]] = {name: (directory / name).open("wb") for name in names}

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
