"""Files that have both sides: .tsv, .jsonl and .tmx, each also compressed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from heedful.errors import CorpusError
from heedful.text.text_files import read_lines
from heedful.text.tmx_files import read_units

KINDS = (".tsv", ".jsonl", ".tmx")
_COMPRESSED = (".gz", ".zst")


class Pair(NamedTuple):
    source: str
    target: str


def kind_of(name: str) -> str:
    """Return ".tsv", ".jsonl" or ".tmx" for a file with both sides, and "" for any other."""
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return next((kind for kind in KINDS if name.endswith(kind)), "")


def read_pairs(path: Path) -> Iterator[Pair]:
    """Yield the pairs of a file with both sides. Raise if it has none."""
    readers = {".tsv": _tab_separated, ".jsonl": _json_lines, ".tmx": _translation_units}
    pair = None
    for pair in readers[kind_of(str(path))](path):
        yield pair
    if pair is None:
        raise CorpusError(f"{path} is empty. Pass a file with at least one pair.")


def _tab_separated(path: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise CorpusError(
                f"{path}:{number}: expected 2 columns, found {len(columns)}. "
                "Each line of a .tsv file is source, tab, target."
            )
        yield Pair(columns[0], columns[1])


def _json_lines(path: Path) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path), start=1):
        try:
            content = json.loads(line)
            pair = Pair(content["source"], content["target"])
            if not all(isinstance(side, str) for side in pair):
                raise TypeError
            "".join(pair).encode()  # JSON can contain lone surrogates, which are not text
        except (ValueError, TypeError, KeyError, RecursionError):
            raise CorpusError(
                f'{path}:{number}: not a JSON object with the strings "source" and "target". '
                'Each line of a .jsonl file is {"source": "…", "target": "…"}.'
            ) from None
        yield Pair(*map(_one_line, pair))


def _translation_units(path: Path) -> Iterator[Pair]:
    for source, target in read_units(path):
        yield Pair(_one_line(source), _one_line(target))


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")
