"""Training of small models on the built-in corpus that differ in one setting."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

from heedful.engines.load import load
from heedful.evaluation.sacrebleu_scores import bleu
from heedful.lab.experiment import Curve, Curves, Finding, Setting
from heedful.text.builtin_corpus import BuiltinCorpus
from heedful.training.run import train

Settings = Mapping[str, Any]
Verdict = tuple[bool, str]  # whether the result agrees with the paper, and a summary

# About a minute each on two cores.
BASE: dict[str, Any] = {
    "data.builtin": True,
    "data.builtin_pairs": 20_000,
    "data.vocab_size": 1_000,
    "model.N": 2,
    "model.d_model": 64,
    "model.d_ff": 256,
    "model.h": 4,
    "model.dropout": 0.1,
    "training.steps": 1_000,
    "training.batch_tokens": 1_024,
    "training.warmup_steps": 100,
    "training.learning_rate": 0.32,
    "training.validate_every": 100,
    "training.save_every": 40,
    "training.average": 5,
    "training.patience": 0,
}
_QUICK: dict[str, Any] = {
    "data.builtin": False,
    "data.vocab_size": 400,
    "training.steps": 10,
    "training.batch_tokens": 256,
    "training.warmup_steps": 5,
    "training.validate_every": 5,
    "training.save_every": 2,
    "training.threads": 1,  # such small batches are slower with more threads
}
_TEST_PAIRS = 500


@dataclass(frozen=True)
class Trained:
    """The results of one variant."""

    name: str
    path: Path
    parameters: int
    training_nll: float  # mean over the last log lines, with dropout
    nll: float  # of the last validation
    bleu: float  # of the averaged model on test sentences, with its own decoding settings
    curve: Curve  # validation nll by step


Judge = Callable[[list[Trained]], Verdict]


def variants(setting: Setting, changes: Mapping[str, Settings]) -> list[Trained]:
    return [_trained(setting, name, change) for name, change in changes.items()]


def _trained(setting: Setting, name: str, change: Settings) -> Trained:
    settings = {**BASE, **change, **({**_QUICK, **_few_lines(setting.out)} if setting.quick else {})}
    run = train(out=setting.out / re.sub(r"[^\w.]+", "-", name), overrides=settings, device="cpu")
    log = run.log()
    valid = [line for line in log if line["kind"] == "valid"]
    last = [line["nll"] for line in log if line["kind"] == "train" and line["nll"] is not None][-10:]
    curve = Curve(name, [line["step"] for line in valid], [line["nll"] for line in valid])
    parameters = next(line["parameters"] for line in log if line["kind"] == "start")
    score = bleu_on_test(setting, run.path)
    return Trained(name, run.path, parameters, sum(last) / len(last), curve.y[-1], score, curve)


def _few_lines(directory: Path) -> Settings:
    """Write a small part of the built-in corpus to files; decoding all of it would be slow."""
    directory.mkdir(parents=True, exist_ok=True)
    keys = {}
    for key, corpus in (("", BuiltinCorpus("train", 300)), ("valid_", BuiltinCorpus("valid", 20))):
        for side in ("source", "target"):
            path = directory / f"{key}{side}.txt"
            path.write_text("".join(f"{getattr(pair, side)}\n" for pair in corpus.pairs()), encoding="utf-8")
            keys[f"data.{key}{side}"] = str(path)
    return keys


def bleu_on_test(setting: Setting, path: Path, checkpoint: str = "averaged", **search: Any) -> float:
    pairs = list(BuiltinCorpus("test", 20 if setting.quick else _TEST_PAIRS).pairs())
    found = load(path, checkpoint=checkpoint, device="cpu").translate([pair.source for pair in pairs], **search)
    return bleu([one.text for one in found], [pair.target for pair in pairs]).value


def compared(
    changes: Mapping[str, Settings], judge: Callable[[list[Trained]], Verdict]
) -> Callable[[Setting], Finding]:
    """Return an experiment that trains each variant once and judges the results."""

    def run(setting: Setting) -> Finding:
        found = variants(setting, changes)
        rows = []
        for one in found:
            losses = f"{one.training_nll:.3f}", f"{one.nll:.3f}", f"{exp(one.nll):.2f}"
            rows.append([one.name, f"{one.parameters:,}", *losses, f"{one.bleu:.1f}"])
        columns = ("", "parameters", "training NLL", "validation NLL", "validation perplexity", "test BLEU")
        figure = Curves([one.curve for one in found], "training steps", "validation NLL, nats per token")
        return Finding(columns, rows, *judged(setting, *judge(found)), figure)

    return run


def judged(setting: Setting, held: bool, verdict: str) -> tuple[bool | None, str]:
    return (None, "a quick run trains too little to judge.") if setting.quick else (held, verdict)
