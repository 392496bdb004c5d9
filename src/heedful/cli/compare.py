"""`heedful compare`: two models, or two files of translations, on one test set."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from heedful.cli.output_file import require_page
from heedful.errors import UsageError
from heedful.evaluation.comparison import Comparison, SentencePair
from heedful.evaluation.comparison import compare as compare_systems
from heedful.views.comparison_page import (
    BUCKET_HEAD,
    SCORE_HEAD,
    bucket_row,
    score_row,
    sentence_count,
    write_comparison_page,
)


def compare(arguments: argparse.Namespace) -> None:
    out = Path(arguments.out) if arguments.out else None
    if out is not None:
        _require_page(out, arguments)
    found = compare_systems(
        arguments.a,
        arguments.b,
        reference=arguments.reference,
        source=arguments.source,
        tokenize=arguments.tokenize,
        lowercase=arguments.lowercase,
        report=lambda message: print(message, file=sys.stderr),
    )
    if out is not None:
        write_comparison_page(found, out)
        print(out)
    elif arguments.json:
        print(json.dumps(asdict(found), indent=1, ensure_ascii=False))
    else:
        print("\n".join(_text(found)))


def _require_page(out: Path, arguments: argparse.Namespace) -> None:
    """Raise UsageError for an invalid --out before any model is loaded."""
    if arguments.json:
        raise UsageError("`--out` and `--json` cannot be combined. Pass only one of them.")
    files = (arguments.a, arguments.b, arguments.reference, arguments.source)
    require_page(out, inputs=(file for file in files if file))


def _text(found: Comparison) -> Iterator[str]:
    yield f"A  {found.a}"
    yield f"B  {found.b}"
    yield ""
    yield from _table(SCORE_HEAD, [score_row(score) for score in found.scores])
    yield from ("", *(score.verdict for score in found.scores), sentence_count(found), "")
    yield "by length of the reference"
    yield from _table(BUCKET_HEAD, [bucket_row(bucket) for bucket in found.by_length])
    if found.most_different:
        yield from ("", "sentences that differ most, by chrF")
    for pair in found.most_different:
        yield from _sentence(pair)
    yield from ("", "signatures")
    for score in found.scores:
        yield f"  {score.name}  {score.bootstrap_signature}"
        yield f"  {score.name}  {score.randomization_signature}"


def _sentence(pair: SentencePair) -> Iterator[str]:
    yield ""
    yield f"  line {pair.line:,}: {pair.difference:+.1f} chrF"
    if pair.source is not None:
        yield f"     source  {pair.source}"
    yield f"  reference  {pair.reference}"
    yield f"    A {pair.chrf_a:5.1f}  {pair.a}"
    yield f"    B {pair.chrf_b:5.1f}  {pair.b}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align the columns: the first one left, numbers right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for first, *rest in (head, *rows):
        cells = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield "  ".join(["", first.ljust(widths[0]), *cells])
