"""`heedful score`: log-probabilities of existing translations."""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path

from heedful.engines.load import load
from heedful.formatting import plural
from heedful.text.corpus import read_sides
from heedful.training.loss import perplexity

_TOGETHER = 1_000


def score(arguments: argparse.Namespace) -> None:
    sides = Path(arguments.source), Path(arguments.target)
    pairs = iter(list(read_sides(*sides)))  # report bad files before printing anything; a pipe can be read only once
    translator = load(arguments.model, checkpoint=arguments.checkpoint, device=arguments.device)
    total, tokens, done = 0.0, 0, 0
    while chunk := list(islice(pairs, _TOGETHER)):
        texts = [pair.source for pair in chunk], [pair.target for pair in chunk]
        for result in translator.score(*texts, first_line=done + 1):
            print(f"{result.log_probability:.6f}\t{result.tokens}")
            total += result.log_probability
            tokens += result.tokens
        done += len(chunk)
    print(f"perplexity {perplexity(-total / tokens):.4f} over {plural(tokens, 'token')}", file=sys.stderr)
