"""`heedful treebank`: bracketed trees become text to train a parser on."""

from __future__ import annotations

import argparse
from pathlib import Path

from heedful.files import new_directory, require_replaceable
from heedful.parsing.treebank import file_names, split, treebank_files, write_parts
from heedful.storage.manifest import write_manifest
from heedful.storage.ownership import may_replace


def treebank(arguments: argparse.Namespace) -> None:
    out = Path(arguments.out)
    require_replaceable(out, _is_ours)
    parts = split(treebank_files(Path(arguments.treebank)))
    with new_directory(out, replaces=_is_ours) as directory:
        written = write_parts(parts, directory)
        write_manifest(directory)
    for part in written:
        print(part)


def _is_ours(directory: Path) -> bool:
    return may_replace(directory, file_names())
