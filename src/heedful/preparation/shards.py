"""Clean and tokenize one shard."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from heedful.atomic_files import holds_only, new_directory
from heedful.config import DataConfig
from heedful.data.store import fill_store
from heedful.manifest import MANIFEST, write_manifest
from heedful.preparation.partition import partition_file, read_partition
from heedful.storage.prepared_directory import EXCLUDED, REPORT, SHARD_FILES, PreparedDirectory
from heedful.text.cleaning import RULES, Cleaning, CommonWords
from heedful.text.corpus import Pair
from heedful.text.tokenizer import Tokenizer

EXAMPLES = 5  # per rule
_LONGEST = 300  # characters of an example


class Drops:
    """How many pairs each rule dropped, with the first few of them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[tuple[int, str, str]]] = {rule: [] for rule in RULES}

    def __call__(self, rule: str, line: int, pair: Pair) -> None:
        self.counts[rule] += 1
        if len(self.examples[rule]) < EXAMPLES:
            self.examples[rule].append((line, pair.source[:_LONGEST], pair.target[:_LONGEST]))

    def report(self, kept: int) -> dict[str, Any]:
        rules = {rule: {"count": self.counts[rule], "examples": self.examples[rule]} for rule in RULES}
        return {"read": kept + self.counts.total(), "kept": kept, "rules": rules}


def write_shard(path: Path, partition: Path, number: int) -> None:
    """Write shard `number` of the prepared corpus at `path` from its part of the text."""
    prepared = PreparedDirectory(path)
    plan, tokenizer = prepared.read_plan(), Tokenizer.read(prepared.tokenizer)
    cleaning, drops = read_cleaning(prepared), Drops()
    facts = {"text": plan["request"]["text"], "tokenizer": plan["tokenizer"], "shard": f"{number} of {plan['shards']}"}
    with new_directory(prepared.shard(number), replaces=lambda old: holds_only(old, {*SHARD_FILES, MANIFEST})) as new:
        numbered = cleaning.through(read_partition(partition_file(partition, number)), drops)
        report = fill_store(new, numbered, tokenizer, DataConfig(**plan["data"]), facts, dropped=drops)
        write_report(new, drops.report(report.kept))
        write_manifest(new)


def read_cleaning(prepared: PreparedDirectory) -> Cleaning:
    """Return the cleaning rules as they were planned."""
    plan = prepared.read_plan()
    excluded = np.fromfile(prepared.plan / EXCLUDED, np.uint64).tolist()
    common = CommonWords(*(frozenset(words) for words in plan["common_words"]))
    languages = (plan["data"]["source_language"], plan["data"]["target_language"])
    return Cleaning(frozenset(plan["request"]["skip"]), languages, common, frozenset(excluded))


def write_report(directory: Path, report: dict[str, Any]) -> None:
    (directory / REPORT).write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")


def merged_report(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the report of all shards: the sums, and the earliest examples of the text."""
    rules = {
        rule: {
            "count": sum(report["rules"][rule]["count"] for report in reports),
            "examples": sorted(one for report in reports for one in report["rules"][rule]["examples"])[:EXAMPLES],
        }
        for rule in RULES
    }
    return {**{key: sum(report[key] for report in reports) for key in ("read", "kept")}, "rules": rules}
