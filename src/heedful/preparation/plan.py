"""Plan a prepared corpus: its languages, validation text, tokenizer and number of shards.

The plan depends on text and settings alone. Jobs that start at the same time make the same plan, and one of them
writes it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from heedful.atomic_files import new_directory
from heedful.config import DataConfig
from heedful.devices import cores
from heedful.errors import CorpusError
from heedful.formatting import plural
from heedful.manifest import write_manifest
from heedful.recipes import Settings
from heedful.storage.file_names import TOKENIZER
from heedful.storage.prepared_directory import EXCLUDED, PLAN, VALID_FILES, PreparedDirectory
from heedful.storage.tokenizer_files import tokenizer_digest
from heedful.text.cleaning import Cleaning, CommonWords, digest
from heedful.text.corpus import Corpus, Pair
from heedful.text.held_out import FEWEST_IN_ALL, MOST, normalized, size_for, smallest_pairs
from heedful.text.text_files import read_lines
from heedful.text.tokenizer import Tokenizer
from heedful.training.data_checks import PrintStatus, check_text
from heedful.training.run_setup import choose_tokenizer

SHARD_BYTES = 64_000_000  # of the files; a process needs about ten times as much memory for the text of a shard
_MOST_SHARDS = 500  # a process opens one file per shard
KEYS = ("lowercase", "max_length", "max_ratio", "vocab_size", "source_language", "target_language")
_CANDIDATES = 4  # pairs considered for validation per pair wanted, because some break a rule


@dataclass(frozen=True)
class Request:
    """What the user asked for."""

    settings: Settings  # [data]: files, languages, tokenizer and limits
    exclude: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    @property
    def data(self) -> DataConfig:
        return DataConfig(**self.settings.get("data", {}))

    @property
    def text(self) -> Corpus:
        return Corpus.of(self.data.source, self.data.target, "training")

    @property
    def validation(self) -> Corpus | None:
        given = self.data.valid_source or self.data.valid_target
        return Corpus.of(self.data.valid_source, self.data.valid_target, "validation") if given else None

    def facts(self) -> dict[str, Any]:
        """Return what must not change when preparation continues."""
        given = self.settings.get("data", {})
        return {
            "text": self.text.digest(),
            "validation": self.validation.digest() if self.validation else "",
            "excluded": Corpus(tuple(map(Path, self.exclude)), ()).digest(),
            "tokenizer": tokenizer_digest(Tokenizer.read(Path(self.data.tokenizer))) if self.data.tokenizer else "",
            "skip": sorted(self.skip),
            "data": {key: given[key] for key in KEYS if key in given},
        }


@dataclass(frozen=True)
class _CleanText(Corpus):
    """The pairs that the tokenizer may learn from."""

    cleaning: Cleaning = field(default_factory=Cleaning)
    known: int = 0

    def count(self) -> int:
        return self.known

    def pairs(self) -> Iterator[Pair]:
        return (pair for pair in super().pairs() if not self.cleaning.broken_rule(pair))


def write_plan(prepared: PreparedDirectory, request: Request, shard_bytes: int, print_status: PrintStatus) -> None:
    facts = request.facts()
    text = request.text
    candidates, pairs = smallest_pairs(text.pairs(), _CANDIDATES * MOST)
    settings = check_text(request.settings, text, request.validation or text, print_status)
    languages = tuple(settings["data"].get(f"{side}_language", "") for side in ("source", "target"))
    cleaning = Cleaning(frozenset(request.skip), (languages[0], languages[1]), CommonWords.of(text.pairs()))
    if request.validation is None:
        valid = _held_out([pair for pair in candidates if _fits(pair, request.data)], pairs, cleaning)
        print_status(f"No validation files given: {plural(len(valid), 'pair')} of the training text held out.")
    else:
        valid = list(request.validation.pairs())
    excluded = _excluded(valid, request.exclude)
    cleaning = replace(cleaning, excluded=excluded)
    clean_text = _CleanText(text.source, text.target, cleaning, pairs)
    tokenizer, _ = choose_tokenizer(settings, None, clean_text, cores(), print_status)
    data = {**{key: getattr(request.data, key) for key in KEYS}, "vocab_size": tokenizer.vocab_size}
    data |= {"source_language": languages[0], "target_language": languages[1]}
    plan = {
        "format_version": 1,
        "request": facts,
        "pairs": pairs,
        "shards": _shards(text, shard_bytes),
        "tokenizer": tokenizer_digest(tokenizer),
        "data": data,
        "common_words": [sorted(words) for words in (cleaning.common.source, cleaning.common.target)],
    }
    with new_directory(prepared.plan) as new:
        (new / PLAN).write_text(json.dumps(plan, indent=1, ensure_ascii=False), encoding="utf-8")
        (new / TOKENIZER).write_bytes(tokenizer.model)
        np.array(sorted(excluded), np.uint64).tofile(new / EXCLUDED)
        for side, name in enumerate(VALID_FILES):
            lines = "".join(f"{pair[side].strip()}\n" for pair in valid)
            (new / name).write_bytes(lines.encode())
        write_manifest(new)


def _shards(text: Corpus, shard_bytes: int) -> int:
    """Return the number of shards, from the files alone, so that every array job agrees."""
    size = sum(path.stat().st_size for path in text.files())
    return max(1, min(_MOST_SHARDS, round(size / shard_bytes)))


def _held_out(candidates: list[Pair], pairs: int, cleaning: Cleaning) -> list[Pair]:
    """Return the clean pairs with the smallest hashes, like text/held_out.py."""
    clean = [pair for pair in candidates if not (cleaning.broken_rule(pair) or cleaning.is_other_language(pair))]
    wanted = size_for(pairs)
    if len(clean) < wanted or pairs < FEWEST_IN_ALL:
        raise CorpusError(
            f"The training text has {plural(pairs, 'pair')}, of which the rules keep {len(clean):,}: too few to hold "
            f"out {wanted} for validation. Provide at least {FEWEST_IN_ALL} clean pairs, or validation files "
            "(`--valid-source`, `--valid-target`)."
        )
    return clean[:wanted]


def _fits(pair: Pair, data: DataConfig) -> bool:
    """Return whether a pair will fit the limits of [data], judged without a tokenizer."""
    shorter, longer = sorted(map(len, pair))
    words = max(len(side.split()) for side in pair)
    return words < data.max_length and longer <= data.max_ratio * shorter


def _excluded(valid: list[Pair], files: tuple[str, ...]) -> frozenset[int]:
    """Return the digests of all sides that must not be trained on."""
    sides = {normalized(side) for pair in valid for side in pair}
    for file in files:
        sides.update(map(normalized, read_lines(Path(file))))
    return frozenset(digest(side) for side in sides - {""})
