"""`heedful treebank`: convert bracketed trees to training text for a parser."""

from __future__ import annotations

import argparse
from pathlib import Path

from heedful.atomic_files import new_directory, require_replaceable
from heedful.cli.output_file import require_not_in_a_model
from heedful.manifest import write_manifest
from heedful.parsing.treebank import output_file_names, split_files, treebank_files, write_splits
from heedful.storage.ownership import may_replace


def treebank(arguments: argparse.Namespace) -> None:
    out = Path(arguments.out)
    require_not_in_a_model(out, "--out")
    require_replaceable(out, _is_ours)
    splits = split_files(treebank_files(Path(arguments.treebank)))
    with new_directory(out, replaces=_is_ours) as directory:
        written = write_splits(splits, directory)
        write_manifest(directory)
    for part in written:
        print(part)


def _is_ours(directory: Path) -> bool:
    return may_replace(directory, output_file_names())
