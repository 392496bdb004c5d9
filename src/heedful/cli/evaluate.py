"""`heedful evaluate`: translates and scores."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path

from heedful.cli.translate import output, translated
from heedful.decoding.load import load
from heedful.evaluation.scores import bleu, chrf, require_raw
from heedful.text.corpus import read_sides


def evaluate(arguments: argparse.Namespace) -> None:
    pairs = list(read_sides(Path(arguments.source), Path(arguments.reference)))
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    require_raw(references)
    translator = load(arguments.model, checkpoint=arguments.checkpoint, device=arguments.device)
    # Opened before the work: a name that cannot be written is said at once.
    with output(arguments.output) if arguments.output is not None else nullcontext() as stream:
        results = translated(translator, iter(sources), beam=arguments.beam, alpha=arguments.alpha)
        hypotheses = [result.text for _, _, result in results]
        if stream is not None:
            stream.writelines(f"{line}\n" for line in hypotheses)
    scores = (
        bleu(hypotheses, references, arguments.tokenize, arguments.lowercase),
        chrf(hypotheses, references, arguments.lowercase),
    )
    if arguments.json:
        content = {score.name: asdict(score) for score in scores}
        print(json.dumps({"sentences": len(pairs), **content}, indent=1))
    else:
        for score in scores:
            print(score)
