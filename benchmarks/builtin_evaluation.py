"""Score a model on the test and unseen splits of the built-in corpus.

python benchmarks/builtin_evaluation.py RUN [SENTENCES]
"""

from __future__ import annotations

import sys

import heedful
from heedful import grammar
from heedful.demo import report


def main(run: str, sentences: int = 2_000) -> None:
    translator = heedful.load(run)
    for split in ("test", "unseen"):
        pairs = list(grammar.pairs(split, sentences))
        hypotheses = [result.text for result in translator.translate([pair.english for pair in pairs])]
        print(f"\n{split}: {len(pairs):,} sentences")
        print("\n".join(report(hypotheses, pairs)))


if __name__ == "__main__":
    main(sys.argv[1], *(int(argument) for argument in sys.argv[2:3]))
