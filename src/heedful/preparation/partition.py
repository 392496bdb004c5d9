"""Split a corpus by text hash: duplicates share a shard, and shards are independent."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from heedful.atomic_files import holds_only, new_directory
from heedful.errors import CorpusError
from heedful.manifest import MANIFEST, verify_manifest, write_manifest
from heedful.text.cleaning import NumberedPair, near_digest
from heedful.text.corpus import Pair, ParallelText

_HEAD = struct.Struct("<QII")  # line number, bytes of the source, bytes of the target


def partition_file(directory: Path, shard: int) -> Path:
    return directory / f"{shard:05d}"


def partition_names(shards: Iterable[int]) -> set[str]:
    """Return the names of all files of a partition."""
    return {partition_file(Path(), shard).name for shard in shards} | {MANIFEST}


def write_partition(directory: Path, text: ParallelText, shards: int, wanted: Collection[int]) -> None:
    """Write the pairs of the wanted shards in text order; keep a complete partition."""
    names = partition_names(wanted)
    if _is_complete(directory, names - {MANIFEST}):
        return
    with new_directory(directory, replaces=lambda old: holds_only(old, names)) as unfinished:
        with ExitStack() as stack:
            files = {n: stack.enter_context(partition_file(unfinished, n).open("wb")) for n in wanted}
            for line, pair in enumerate(text.pairs(), start=1):
                file = files.get(near_digest(pair) % shards)
                if file is not None:
                    source, target = (side.encode() for side in pair)
                    file.write(_HEAD.pack(line, len(source), len(target)) + source + target)
        write_manifest(unfinished)


def _is_complete(directory: Path, names: Collection[str]) -> bool:
    if not directory.is_dir():
        return False
    try:
        verify_manifest(directory, tuple(names), CorpusError)
    except CorpusError:
        return False
    return True


def read_partition(path: Path) -> Iterator[NumberedPair]:
    with path.open("rb") as file:
        while head := file.read(_HEAD.size):
            line, source, target = _HEAD.unpack(head)
            yield line, Pair(file.read(source).decode(), file.read(target).decode())
