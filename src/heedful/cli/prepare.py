"""heedful prepare: clean, deduplicate, tokenize and shard a corpus."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from heedful import recipes
from heedful.cli.output_file import require_page
from heedful.devices import cores
from heedful.errors import ConfigError, UsageError, nearest
from heedful.formatting import plural, shell_command
from heedful.preparation.plan import KEYS, Request
from heedful.preparation.prepare import ALL, Job
from heedful.preparation.prepare import prepare as write_prepared
from heedful.recipes import Settings
from heedful.text.cleaning import REQUIRED, RULES
from heedful.training.data_checks import with_checked_codes
from heedful.training.display import print_status
from heedful.views.preparation_page import write_preparation_page

_FILES = ("source", "target", "valid_source", "valid_target")


def prepare(arguments: argparse.Namespace) -> None:
    if arguments.report:
        files = chain(*(getattr(arguments, name) for name in _FILES), arguments.exclude)
        require_page(Path(arguments.report), "--report", files)
    job, processes, request = _job(arguments.shard), _processes(arguments.processes), _request(arguments)
    prepared = write_prepared(request, Path(arguments.out), print_status, processes, job)
    print(prepared.path)
    report = prepared.read_report()
    if report is None:
        left = sum(not path.is_dir() for path in prepared.shard_paths())
        print_status(f"{plural(left, 'shard')} still to prepare. The job that finishes last completes the corpus.")
        return
    if arguments.report:
        write_preparation_page(report, prepared.path.name, Path(arguments.report))
        print_status(f"report: {arguments.report}")
    for line in _summary(report):
        print_status(line)
    print_status(f"next:\n  {shell_command('train', '--source', prepared.path, '--out', 'runs/mine')}")


def _job(text: str | None) -> Job:
    if text is None:
        return ALL
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    number, jobs = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= jobs:
        raise UsageError(f'`--shard` must be I/N with I from 1 to N, for example 1/8 for the first of 8, not "{text}".')
    return Job(number, jobs)


def _processes(given: int | None) -> int:
    if given is not None and given < 1:
        raise UsageError(f"`--processes` must be at least 1, not {given}.")
    return given or cores()


def _request(arguments: argparse.Namespace) -> Request:
    optional = [rule for rule in RULES if rule not in REQUIRED]
    for rule in arguments.skip:
        if rule not in optional:
            raise UsageError(f'`--skip`: "{rule}" is not a rule that can be skipped.{nearest(rule, optional)}')
    files = {name: tuple(getattr(arguments, name)) for name in _FILES if getattr(arguments, name)}
    settings = recipes.merged({"data": files}, _overrides(arguments.set))
    settings = with_checked_codes(recipes.with_absolute_paths(settings, Path.cwd()))
    return Request(settings, tuple(arguments.exclude), tuple(arguments.skip))


def _overrides(assignments: list[str]) -> Settings:
    settings = recipes.overrides(assignments)
    allowed = [f"data.{key}" for key in (*KEYS, "tokenizer")]
    for section, entries in settings.items():
        for key in entries:
            if f"{section}.{key}" not in allowed:
                raise ConfigError(
                    f"`--set {section}.{key}` does not apply to preparation. Allowed: {', '.join(allowed)}."
                )
    return settings


def _summary(report: dict[str, Any]) -> Iterator[str]:
    yield f"{report['kept']:,} of {plural(report['read'], 'pair')} kept"
    for rule, found in report["rules"].items():
        if found["count"]:
            yield f"  {rule:15} {found['count']:>12,} dropped"
