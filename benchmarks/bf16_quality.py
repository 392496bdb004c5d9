"""Compare the quality of bf16 and float32 training: equal steps, several seeds, the demo and a short Multi30k recipe.

python benchmarks/bf16_quality.py --out runs/precision [--data-root DIR] [--seeds 1 2 3] [--threads 2]

Without --data-root only the demo is trained. Unfinished runs in --out are resumed, finished ones are kept, so the
script can be stopped at any time. It writes docs/results/performance-precision.json, which
benchmarks/performance_page.py shows.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

from benchmark_tables import DOCS, Table, measured, write
from decoding_speed import versions

import heedful
from heedful.demo import SETTINGS as DEMO

PRECISIONS = ("fp32", "bf16")
MULTI30K = {
    "data": {
        "source": "data/multi30k/train.en.gz",
        "target": "data/multi30k/train.de.gz",
        "valid_source": "data/multi30k/val.en.gz",
        "valid_target": "data/multi30k/val.de.gz",
        "vocab_size": 4_000,
    },
    "model": {"N": 2, "d_model": 128, "d_ff": 512, "h": 4, "dropout": 0.1},
    "training": {
        "steps": 1_000,
        "batch_tokens": 2_048,
        "warmup_steps": 200,
        "learning_rate": 0.5,
        "cooldown_steps": 300,
        "validate_every": 1_000,
        "save_every": 100,
        "average": 1,
        "patience": 0,
    },
}


def flat(settings: dict[str, dict[str, Any]], data_root: Path | None) -> dict[str, Any]:
    """Return the settings as overrides, with data files below `data_root`."""
    found = {f"{section}.{key}": value for section, keys in settings.items() for key, value in keys.items()}
    for key, value in found.items():
        if isinstance(value, str) and value.startswith("data/") and data_root is not None:
            found[key] = str((data_root / value).absolute())
    return found


def score(settings: dict[str, Any], out: Path) -> dict[str, float]:
    """Train to the end, and return the last validation's BLEU (greedy) and negative log-likelihood per token."""
    run = heedful.train(out=out, overrides=settings)
    last = [entry for entry in run.log() if entry["kind"] == "valid"][-1]
    return {"bleu": last["bleu"], "nll": last["nll"]}


def row(name: str, metric: str, found: dict[str, list[dict[str, float]]]) -> list[str]:
    values = {precision: [one[metric] for one in scores] for precision, scores in found.items()}
    means = {precision: statistics.mean(each) for precision, each in values.items()}
    spread = max(statistics.stdev(each) for each in values.values())
    difference = means["bf16"] - means["fp32"]
    cells = [", ".join(f"{value:.3f}" for value in values[precision]) for precision in PRECISIONS]
    verdict = "within" if abs(difference) < spread else "beyond"
    return [name, metric, *cells, f"{difference:+.3f}", f"{spread:.3f}", verdict]


def table(found: dict[str, dict[str, list[dict[str, float]]]], seeds: list[int], threads: int) -> Table:
    rows = [row(name, metric, scores) for name, scores in found.items() for metric in ("bleu", "nll")]
    return {
        "title": "Quality in bf16 and float32",
        "measured": measured(threads, "validation text", versions("torch")),
        "columns": ["", "metric", "float32, each seed", "bf16, each seed", "difference", "deviation", "verdict"],
        "rows": rows,
        "notes": [
            f"Equal steps; seeds {', '.join(map(str, seeds))}. BLEU of greedy search; nll per token.",
            "Difference of the means; the larger standard deviation of the two precisions.",
        ],
        "raw": found,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="directory of the runs")
    parser.add_argument("--data-root", type=Path, help="has data/multi30k")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=0, help="(all cores)")
    options = parser.parse_args()
    tasks = {"demo": flat(DEMO, None)}
    if options.data_root:
        tasks["Multi30k, 1,000 steps"] = flat(MULTI30K, options.data_root)
    found: dict[str, dict[str, list[dict[str, float]]]] = {name: {one: [] for one in PRECISIONS} for name in tasks}
    for seed in options.seeds:
        for name, settings in tasks.items():
            for precision in PRECISIONS:
                out = options.out / f"{name.split(',')[0]}-{precision}-{seed}"
                chosen = {"training.seed": seed, "training.precision": precision, "training.threads": options.threads}
                found[name][precision].append(score(settings | chosen, out))
    write([table(found, options.seeds, options.threads)], DOCS / "performance-precision.json")


if __name__ == "__main__":
    main()
