"""A PREPARED directory: a corpus that `heedful prepare` cleaned, tokenized and sharded.

plan/ (plan.json · tokenizer.model · valid.source · valid.target) · shards/00000/ … · index/ (written last)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from heedful.atomic_files import read_at_most
from heedful.config import DataConfig
from heedful.data.store import INDEX_FILES, STORE_FILES, Store
from heedful.errors import CorpusError, cause
from heedful.manifest import MANIFEST, MOST_JSON, verify_manifest
from heedful.storage.file_names import TOKENIZER, TRAINING
from heedful.storage.ownership import is_ours
from heedful.text.corpus import Pair
from heedful.text.tokenizer import Tokenizer

PREPARED = "prepared"  # kind of directory, in its marker
PLAN, REPORT = "plan.json", "report.json"
VALID_FILES = ("valid.source", "valid.target")
EXCLUDED = "excluded"  # sorted digests of the sides that must not occur in the training text
PLAN_FILES = (PLAN, TOKENIZER, EXCLUDED, *VALID_FILES)
SHARD_FILES = (*STORE_FILES, REPORT)
PREPARED_INDEX_FILES = (*INDEX_FILES, REPORT)


@dataclass(frozen=True)
class PreparedDirectory:
    """The paths of a prepared corpus, and its text for training."""

    path: Path

    @property
    def plan(self) -> Path:
        return self.path / "plan"

    @property
    def index(self) -> Path:
        return self.path / "index"

    @property
    def shards(self) -> Path:
        return self.path / "shards"

    @property
    def work(self) -> Path:
        """Return the directory of temporary files."""
        return self.path / "work"

    @property
    def tokenizer(self) -> Path:
        return self.plan / TOKENIZER

    @property
    def valid(self) -> tuple[Path, Path]:
        return self.plan / VALID_FILES[0], self.plan / VALID_FILES[1]

    def shard(self, number: int) -> Path:
        return self.shards / f"{number:05d}"

    def shard_paths(self) -> list[Path]:
        return [self.shard(number) for number in range(int(self.read_plan()["shards"]))]

    def read_plan(self) -> dict[str, Any]:
        try:
            plan = json.loads(read_at_most(self.plan / PLAN, MOST_JSON))
            return dict(plan)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise CorpusError(
                f"Cannot read {self.plan / PLAN}: {cause(error)}. Run the same `heedful prepare` command again."
            ) from None

    def read_report(self) -> dict[str, Any] | None:
        """Return the counts of the cleaning rules; None until all shards are finished."""
        path = self.index / REPORT
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None

    @cached_property
    def store(self) -> Store:
        return Store(self.index, self.shard_paths())

    # As training text (text/corpus.py: ParallelText)

    def files(self) -> tuple[Path, ...]:
        return (self.index / MANIFEST,)

    def require_files(self) -> None:
        """Raise CorpusError if the corpus is not complete, or if a byte of it has changed."""
        if not (self.index / MANIFEST).is_file():
            missing = [path.name for path in self.shard_paths() if not path.is_dir()]
            which = f": shard {missing[0]} of {len(self.shard_paths())} is missing" if missing else ""
            raise CorpusError(
                f"{self.path} is not completely prepared{which}. Run the same `heedful prepare` command again; "
                "finished shards are kept."
            )
        for directory, names in self.parts():
            verify_manifest(directory, names, CorpusError)

    def parts(self) -> Iterator[tuple[Path, tuple[str, ...]]]:
        """Yield every directory that has a manifest, with the names of its files."""
        yield self.plan, PLAN_FILES
        yield self.index, PREPARED_INDEX_FILES
        yield from ((path, SHARD_FILES) for path in self.shard_paths())

    def count(self) -> int:
        return len(self.store)

    def pairs(self) -> Iterator[Pair]:
        """Yield the text that the tokens stand for."""
        tokenizer = Tokenizer.read(self.tokenizer)
        for index in range(len(self.store)):
            source, target = self.store.source(index), self.store.target(index)
            yield Pair(tokenizer.decode(source[:-1].tolist()), tokenizer.decode(target[:-1].tolist()))

    def stamp(self) -> str:
        return ""  # the digest is cheap

    def digest(self) -> str:
        """Return the SHA-256 of all manifests, which have the digests of all files."""
        total = hashlib.sha256()
        for directory, _ in self.parts():
            try:
                total.update(hashlib.sha256((directory / MANIFEST).read_bytes()).digest())
            except OSError as error:
                raise CorpusError(
                    f"Cannot read {directory / MANIFEST}: {cause(error)}. Run the same `heedful prepare` command again."
                ) from None
        return total.hexdigest()


def prepared_text(data: DataConfig) -> PreparedDirectory | None:
    """Return the prepared corpus that `data.source` names; None if it names text files."""
    directories = [Path(name) for name in data.source if Path(name).is_dir()]
    if not directories:
        return None
    if len(data.source) > 1 or data.target:
        raise CorpusError(
            f"{directories[0]} is a directory. Pass a prepared corpus alone as the source, without target files, "
            "or pass text files."
        )
    if not is_ours(directories[0], PREPARED):
        raise CorpusError(
            f"{directories[0]} is a directory, but `heedful prepare` did not write it. Pass text files, or a directory "
            "that `heedful prepare --out` wrote."
        )
    return PreparedDirectory(directories[0])


def training_store(data_directory: Path, data: DataConfig) -> Store:
    """Return a run's training tokens: its own store, or the prepared corpus that it reads."""
    prepared = prepared_text(data)
    return Store(data_directory / TRAINING) if prepared is None else prepared.store
