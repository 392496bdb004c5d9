"""`heedful prepare`: clean, deduplicate, tokenize and shard a corpus once.

Every step writes a directory atomically, and a directory that exists is not written again. The result depends on text
and settings alone, not on processes, jobs or kills.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heedful.atomic_files import clear_unfinished, discard, disk_errors, holds_only, is_empty, new_directory
from heedful.data.store import Store, write_index
from heedful.errors import ConfigError, CorpusError, UsageError
from heedful.formatting import plural
from heedful.manifest import MANIFEST, verify_manifest, write_manifest
from heedful.preparation.partition import partition_names, write_partition
from heedful.preparation.plan import SHARD_BYTES, Request, write_plan
from heedful.preparation.shards import merged_report, write_report, write_shard
from heedful.preparation.workers import run_in_processes
from heedful.storage.ownership import claim
from heedful.storage.prepared_directory import (
    PLAN_FILES,
    PREPARED,
    PREPARED_INDEX_FILES,
    REPORT,
    PreparedDirectory,
)
from heedful.training.data_checks import PrintStatus


@dataclass(frozen=True)
class Job:
    """Job `number` of `jobs` that share the work; 1 of 1 does all of it."""

    number: int = 1
    jobs: int = 1

    def owns(self, shard: int) -> bool:
        return shard % self.jobs == self.number - 1


ALL = Job()


def prepare(
    request: Request,
    out: Path,
    print_status: PrintStatus,
    processes: int = 1,
    job: Job = ALL,
    shard_bytes: int = SHARD_BYTES,
) -> PreparedDirectory:
    """Prepare a corpus in `out`, or continue. The last job to finish writes the index."""
    request.text.require_files()
    claim(out.absolute(), PREPARED)
    prepared = PreparedDirectory(out.absolute())
    with disk_errors(prepared.path):
        _clear(prepared)
        _plan(prepared, request, shard_bytes, print_status)
        shards = prepared.shard_paths()
        _require_undamaged(prepared, shards)
        left = [number for number, path in enumerate(shards) if job.owns(number) and not path.is_dir()]
        partition = prepared.work / f"text-{job.number}-of-{job.jobs}"
        if left:
            _write_shards(prepared, request, partition, job, left, processes, print_status)
        if holds_only(partition, partition_names(range(len(shards)))):
            discard(partition)
        if all(path.is_dir() for path in shards):
            with _or_another_job(prepared.index):
                _write_index(prepared, shards)
        if is_empty(prepared.work):
            prepared.work.rmdir()
    return prepared


def _clear(prepared: PreparedDirectory) -> None:
    for directory in (prepared.path, prepared.shards, prepared.work):
        if directory.is_symlink():
            raise UsageError(f"{directory} is a symbolic link, which heedful does not follow. Choose another `--out`.")
        clear_unfinished(directory)
    prepared.shards.mkdir(exist_ok=True)
    prepared.work.mkdir(exist_ok=True)


def _plan(prepared: PreparedDirectory, request: Request, shard_bytes: int, print_status: PrintStatus) -> None:
    if not prepared.plan.is_dir():
        with _or_another_job(prepared.plan):
            write_plan(prepared, request, shard_bytes, print_status)
    verify_manifest(prepared.plan, PLAN_FILES, CorpusError)
    was, now = prepared.read_plan()["request"], request.facts()
    if changed := [key for key in now if was.get(key) != now[key]]:
        raise ConfigError(
            f"{prepared.path} was prepared from other text or settings (changed: {', '.join(changed)}). "
            "Restore them, or choose another `--out`."
        )


@contextmanager
def _or_another_job(directory: Path) -> Iterator[None]:
    """Accept that another job is just writing the same directory."""
    try:
        yield
    except UsageError:
        for _ in range(20):
            if directory.is_dir():
                return
            time.sleep(0.1)
        raise


def _require_undamaged(prepared: PreparedDirectory, shards: list[Path]) -> None:
    for directory, names in prepared.parts():
        if directory.is_dir():
            try:
                verify_manifest(directory, names, CorpusError)
            except CorpusError as error:
                raise CorpusError(
                    f"{error} Or delete the directory {directory} and run the same `heedful prepare` command again."
                ) from None


def _write_shards(
    prepared: PreparedDirectory,
    request: Request,
    partition: Path,
    job: Job,
    left: list[int],
    processes: int,
    print_status: PrintStatus,
) -> None:
    shards = len(prepared.shard_paths())
    own = [number for number in range(shards) if job.owns(number)]
    kept = f", {len(own) - len(left)} of them finished before" if len(left) < len(own) else ""
    print_status(f"{plural(len(own), 'shard')} of {shards:,} to prepare{kept}")
    write_partition(partition, request.text, shards, left)
    run_in_processes(
        write_shard,
        [(prepared.path, partition, number) for number in left],
        processes,
        lambda done: print_status(f"shard {done[-1] + 1:,} of {shards:,} finished"),
    )


def _write_index(prepared: PreparedDirectory, shards: list[Path]) -> None:
    """Write the length order and the report of the whole corpus, unless another job has."""
    if prepared.index.is_dir():
        return
    plan = prepared.read_plan()
    facts = {"text": plan["request"]["text"], "tokenizer": plan["tokenizer"]}
    reports = [json.loads((shard / REPORT).read_text(encoding="utf-8")) for shard in shards]
    report = merged_report(reports)
    if not report["kept"]:
        raise CorpusError(
            f"No pairs are left: {report['read']:,} read, none kept. See the counts in {shards[0] / REPORT}. "
            "Check that the files belong together, or skip rules with `--skip` and choose another `--out`."
        )
    with new_directory(prepared.index, replaces=_is_index) as new:
        write_index(new, shards, facts)
        write_report(new, {**report, "lengths": _lengths(Store(new, shards))})
        write_manifest(new)


def _is_index(directory: Path) -> bool:
    return holds_only(directory, {*PREPARED_INDEX_FILES, MANIFEST})


def _lengths(store: Store) -> dict[str, list[int]]:
    """Return side → number of sentences of 0, 1, 2, … tokens."""
    sides = {"source": store.buckets.source_G, "target": store.buckets.target_G}
    return {side: np.bincount(lengths, store.buckets.count_G).astype(int).tolist() for side, lengths in sides.items()}
