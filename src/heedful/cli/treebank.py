"""`heedful treebank`: bracketed trees become text to train a parser on."""

from __future__ import annotations

import argparse
from pathlib import Path

from heedful.errors import UsageError
from heedful.files import new_directory
from heedful.parsing.treebank import output_file_names, split_files, treebank_files, write_splits


def treebank(arguments: argparse.Namespace) -> None:
    out = Path(arguments.out)
    _require_own(out)
    splits = split_files(treebank_files(Path(arguments.treebank)))
    with new_directory(out.absolute()) as directory:
        written = write_splits(splits, directory)
    for split in written:
        print(split)


def _require_own(out: Path) -> None:
    """What is replaced is nothing, or what this command wrote before."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out {out} is a file; the texts go into a directory.")
    if out.is_dir() and not {path.name for path in out.iterdir()} <= output_file_names():
        raise UsageError(f"--out {out} has other files than a prepared treebank's. Choose another name.")
