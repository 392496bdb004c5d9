"""Measure the effects of the deviations from the paper, and fill docs/explanation/deviations.md.

python benchmarks/deviations.py                      # what is missing; about 20 minutes on two free cores
python benchmarks/deviations.py --data-root DIR --subword-nmt PROGRAM   # Multi30k and subword-nmt too
python benchmarks/deviations.py --only embedding-init start --seeds 1 2 3
python benchmarks/deviations.py --steps 5 --seeds 1 --json try.json --page ''     # smoke test

A small model is trained on the built-in corpus with each alternative (deviation_variants.py), for the same number of
steps and with the same batches. Each result is written at once, so an interrupted measurement can be resumed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import deviations_without_training as facts
import torch
from deviation_page import filled, table
from deviation_variants import BASELINE, SEARCH, TRAINING, Variant, applied

from heedful.allocator import keep_memory
from heedful.atomic_files import write_durably
from heedful.config import DataConfig, DecodingConfig, ModelConfig, TrainingConfig
from heedful.data.batches import Batches
from heedful.data.store import Store, write_store
from heedful.decoding.translator import Translator
from heedful.evaluation.exact_match import exact_match
from heedful.evaluation.sacrebleu_scores import bleu
from heedful.model.transformer import Transformer
from heedful.storage.model_directory import Model, TextFacts
from heedful.text.builtin_corpus import BuiltinCorpus
from heedful.text.tokenizer import Tokenizer, learn
from heedful.training import loss
from heedful.training.trainer import Trainer

DOCS = Path(__file__).parents[1] / "docs" / "explanation"
JSON, PAGE = DOCS / "deviations.json", DOCS / "deviations.md"

DATA = DataConfig(builtin=True, builtin_pairs=30_000, vocab_size=1_000)
MODEL = ModelConfig(vocab_size=1_000, N=2, d_model=128, d_ff=512, h=4, dropout=0.1)
TRAINED = TrainingConfig(
    steps=500, batch_tokens=1_024, warmup_steps=100, learning_rate=0.4, non_finite="skip", precision="fp32"
)
VALIDATED, SEARCHED = 1_000, 500  # sentences
CORPORA = ("builtin", "multi30k")

Figures = dict[str, float]
Results = dict[str, Any]  # settings, facts, and for training and search: variant → seed → figures


def settings(steps: int) -> Results:
    """Return the settings that the figures depend on; figures of different settings are never mixed."""
    model = {key: getattr(MODEL, key) for key in ("N", "d_model", "d_ff", "h", "dropout")}
    training = {key: getattr(TRAINED, key) for key in ("batch_tokens", "warmup_steps", "learning_rate")}
    data = {"pairs": DATA.builtin_pairs, "vocab_size": DATA.vocab_size, "validated": VALIDATED, "searched": SEARCHED}
    return {"steps": steps, **data, **model, **training}


def prepare(directory: Path) -> None:
    """Create the tokenizer and token stores, once for all runs."""
    train = list(BuiltinCorpus("train", DATA.builtin_pairs).pairs())
    tokenizer = learn((text for pair in train for text in pair), DATA.vocab_size)
    (directory / "tokenizer.model").write_bytes(tokenizer.model)
    write_store(directory / "train", train, tokenizer, DATA, {})
    write_store(directory / "valid", BuiltinCorpus("valid", VALIDATED).pairs(), tokenizer, DATA, {})


def run(directory: Path, name: str, seed: int, steps: int) -> Results:
    """Train one variant with one seed; all search rules use the baseline's weights."""
    variant = next(variant for variant in TRAINING if variant.name == name)
    torch.set_num_threads(1)
    keep_memory()
    began = monotonic()
    with applied(variant.patches):
        model = trained(Store(directory / "train"), variant, seed, steps)
        tokenizer = Tokenizer.read(directory / "tokenizer.model")
        translator = Translator(Model(model, tokenizer, TextFacts.of(DATA), DecodingConfig()))
        found = validated(translator, Store(directory / "valid"))
    searches = searched(translator) if variant.name == BASELINE.name else {}
    return {"training": {**found, "seconds": round(monotonic() - began, 1)}, "search": searches}


def trained(store: Store, variant: Variant, seed: int, steps: int) -> Transformer:
    torch.manual_seed(seed)
    trainer = Trainer(Transformer(replace(MODEL, **variant.model)), replace(TRAINED, seed=seed))
    batches = Batches(store, TRAINED.batch_tokens, seed)
    for step in range(1, steps + 1):
        trainer.train_step([batches[step - 1]])
    return trainer.model.eval()


def validated(translator: Translator, store: Store) -> Figures:
    """Return perplexity, and BLEU and exact match (percent) of greedy search on held-out sentences."""
    pairs = list(BuiltinCorpus("valid", VALIDATED).pairs())
    hypotheses = [result.text for result in translator.translate([pair.source for pair in pairs], beam=1)]
    references = [pair.target for pair in pairs]
    return {
        "perplexity": loss.perplexity(nll(translator.model.transformer, store)),
        "bleu": bleu(hypotheses, references).value,
        "exact": 100 * exact_match(hypotheses, references).accuracy,
    }


@torch.inference_mode()
def nll(model: Transformer, store: Store) -> float:
    batches = Batches(store, 4_096, seed=1)
    epoch = [batches[number] for number in range(batches.per_epoch)]
    return sum(loss.batch_loss(model, batch, 0.0).nll.item() for batch in epoch) / sum(batch.tokens for batch in epoch)


def searched(translator: Translator) -> dict[str, Figures]:
    """Score the same weights and sentences with every search rule, beam 4."""
    pairs = list(BuiltinCorpus("test", SEARCHED).pairs())
    references = [pair.target for pair in pairs]
    found: dict[str, Figures] = {}
    ours: list[str] = []
    for variant in SEARCH:
        with applied(variant.patches):
            hypotheses = [result.text for result in translator.translate([pair.source for pair in pairs])]
        ours = ours or hypotheses
        found[variant.name] = {
            "bleu": bleu(hypotheses, references).value,
            "exact": 100 * exact_match(hypotheses, references).accuracy,
            "same": 100 * exact_match(hypotheses, ours).accuracy,
        }
    return found


def measure(results: Results, options: argparse.Namespace) -> Iterator[str]:
    """Train what is missing, one process per core, and yield a line as each finishes."""
    known = results["training"]
    names = options.only if options.only is not None else [variant.name for variant in TRAINING]
    jobs = [(name, seed) for seed in options.seeds for name in names if str(seed) not in known.get(name, {})]
    if not jobs:
        return
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory, ProcessPoolExecutor(options.processes, context) as pool:
        prepare(Path(directory))
        futures = {pool.submit(run, Path(directory), *job, options.steps): job for job in jobs}
        for future in as_completed(futures):
            name, seed = futures[future]
            done = future.result()
            known.setdefault(name, {})[str(seed)] = done["training"]
            for searching, figures in done["search"].items():
                results["search"].setdefault(searching, {})[str(seed)] = figures
            yield f"{name}, seed {seed}: " + ", ".join(f"{what} {n:.2f}" for what, n in done["training"].items())


def compute(results: Results, options: argparse.Namespace) -> Iterator[str]:
    """Compute everything that needs no training; keep old values if a corpus or program is missing."""
    results["facts"] |= facts.computed()
    program = facts.find_subword_nmt(options.subword_nmt)
    for corpus in CORPORA:
        before = results["facts"].get(corpus)
        if before and (len(before["tokens"]) > 1 or not program):
            continue
        found = facts.text_facts(corpus, options.data_root, program)
        if found is None:
            yield f"{corpus} was not found below --data-root; its counts are kept"
        else:
            results["facts"][corpus] = found
            yield f"{corpus}: {found}"


def begun(path: Path, steps: int) -> Results:
    results: Results = {"settings": settings(steps), "facts": {}, "training": {}, "search": {}}
    if path.is_file():
        before: Results = json.loads(path.read_text(encoding="utf-8"))
        if before["training"] and before["settings"] != results["settings"]:
            sys.exit(
                f"{path} has figures for other settings: {before['settings']}. Pass another --json, or remove the file."
            )
        results |= {key: before[key] for key in ("facts", "training", "search")}
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=TRAINED.steps)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    names = [variant.name for variant in TRAINING]
    parser.add_argument(
        "--only", nargs="*", choices=names, help="train only these variants; none: compute only what needs no training"
    )
    parser.add_argument("--processes", type=int, default=2, help="number of processes, one core each")
    parser.add_argument("--data-root", type=Path, help="directory with data/multi30k (docs/reference/data.md)")
    parser.add_argument("--subword-nmt", help="path of the program (default: search PATH)")
    parser.add_argument("--json", type=Path, default=JSON)
    parser.add_argument("--page", default=str(PAGE), help="page to fill; '' for none")
    options = parser.parse_args()
    results = begun(options.json, options.steps)
    for steps in (compute, measure):
        for line in steps(results, options):
            print(line, file=sys.stderr)
            save(results, options)
    save(results, options)
    print(table(results))


def save(results: Results, options: argparse.Namespace) -> None:
    write_durably(options.json, (json.dumps(results, indent=1, sort_keys=True) + "\n").encode())
    if options.page:
        page = Path(options.page)
        write_durably(page, filled(page.read_text(encoding="utf-8"), results).encode())


if __name__ == "__main__":
    main()
