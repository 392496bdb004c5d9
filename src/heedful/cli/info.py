"""`heedful info`: what a model, run or preset is."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

import torch

from heedful import presets
from heedful.config import ModelConfig
from heedful.errors import ModelError, UsageError
from heedful.model.transformer import Transformer
from heedful.storage.manifest import verify_manifest
from heedful.storage.model_directory import CONFIG, TOKENIZER, WEIGHTS, read_model
from heedful.storage.run_directory import RunDirectory, is_run
from heedful.training.run_log import read_log
from heedful.views.run_page import write_run_page


def info(arguments: argparse.Namespace) -> None:
    if (arguments.path is None) == (arguments.preset is None):
        raise UsageError("Give either a PATH or --preset NAME.")
    if arguments.preset:
        preset = presets.named(arguments.preset)
        lines = describe_shape(preset.model(37_000))
        lines += [f"training.{key}: {value}" for key, value in preset.training.items()]
    else:
        lines = describe_path(Path(arguments.path))
    if arguments.out:
        _write_page(arguments, lines)
    else:
        print("\n".join(lines))


def _write_page(arguments: argparse.Namespace, lines: list[str]) -> None:
    if arguments.path is None or not is_run(Path(arguments.path)):
        raise UsageError("--out draws the curves of a run: give a RUN, a directory that heedful train wrote.")
    if Path(arguments.out).suffix != ".html":
        raise UsageError(f'--out writes a page: its name must end in .html, not "{arguments.out}".')
    entries = read_log(RunDirectory(Path(arguments.path)).log)
    title = f"Run {Path(arguments.path).absolute().name}"
    write_run_page(
        entries, title, [line for line in lines if not line.startswith("validation at")], Path(arguments.out)
    )
    print(arguments.out)


def describe_shape(config: ModelConfig) -> list[str]:
    """Keys of the shape, and the number of parameters that it gives."""
    with torch.device("meta"):
        parameters = Transformer(config).parameter_count()
    return [*(f"{key}: {value}" for key, value in asdict(config).items()), f"parameters: {parameters:,}"]


def describe_path(path: Path) -> list[str]:
    if is_run(path):
        run = RunDirectory(path)
        lines = [f"run: {path}", *_history(run)]
        models = [place for place in (run.model, run.best) if place.is_dir()]
        return lines + (describe_model(models[0]) if models else [])
    return describe_model(path)


def describe_model(path: Path) -> list[str]:
    model = read_model(path)
    digests = verify_manifest(path, (CONFIG, TOKENIZER, WEIGHTS), ModelError)
    return [
        f"model: {path}",
        *describe_shape(model.transformer.config),
        *(f"{key}: {value}" for key, value in asdict(model.text).items()),
        *(f"decoding.{key}: {value}" for key, value in asdict(model.decoding).items()),
        *(f"{key}: {value}" for key, value in model.history.items()),
        *(f"sha256 of {name}: {digest}" for name, digest in digests.items()),
    ]


def _history(run: RunDirectory) -> list[str]:
    entries = read_log(run.log) if run.log.is_file() else []
    steps = run.recipe().training.steps
    lines = [f"steps: {max((entry['step'] for entry in entries), default=0):,} of {steps:,}"]
    lines += [f"checkpoints: {', '.join(map(str, run.steps()))}"]
    for entry in (entry for entry in entries if entry["kind"] == "valid"):
        lines.append(
            f"validation at step {entry['step']:,}: loss {entry['loss']:.3f}, "
            f"perplexity {entry['perplexity']:.2f}, BLEU {entry['bleu']:.2f}"
        )
    return lines
