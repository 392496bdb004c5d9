"""`heedful score`: how likely the model finds given translations."""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

from heedful.decoding.load import load
from heedful.text.corpus import read_sides
from heedful.training.loss import perplexity

_TOGETHER = 1_000


def score(arguments: argparse.Namespace) -> None:
    pairs = read_sides(Path(arguments.source), Path(arguments.target))
    first = next(pairs)
    translator = load(arguments.model, checkpoint=arguments.checkpoint, device=arguments.device)
    total, pieces, done = 0.0, 0, 0
    chunk = [first, *islice(pairs, _TOGETHER - 1)]
    while chunk:
        sides = [pair.source for pair in chunk], [pair.target for pair in chunk]
        for result in translator.score(*sides, first_line=done + 1):
            print(f"{result.log_probability:.6f}\t{result.pieces}")
            total += result.log_probability
            pieces += result.pieces
        done += len(chunk)
        chunk = list(islice(pairs, _TOGETHER))
    print(f"perplexity {perplexity(-total / pieces):.4f} over {pieces:,} pieces", file=sys.stderr)
