"""`heedful info`: describe a model, run or preset, on one screen or as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import chain, repeat
from math import nan
from pathlib import Path
from textwrap import wrap
from typing import Any

import torch

from heedful import presets, recipes
from heedful.cli.output_file import require_page
from heedful.config import ModelConfig, Recipe
from heedful.errors import ModelError, UsageError
from heedful.formatting import format_duration, next_commands, plural, shell_command
from heedful.manifest import verify_manifest
from heedful.model.transformer import Transformer
from heedful.storage.file_names import CONFIG, WEIGHTS
from heedful.storage.model_directory import read_model, required_files
from heedful.storage.run_directory import RunDirectory, is_run
from heedful.storage.tokenizer_files import read_tokenizer
from heedful.training.diagnosis import diagnose
from heedful.training.progress import Progress
from heedful.training.run_log import read_log
from heedful.views.run_page import write_run_page

Facts = dict[str, Any]
Line = tuple[str, str]  # name and text

_WIDTH = 13  # columns of the names
_SCREEN = 79  # columns of the screen
_PRESET_VOCABULARY = 37_000  # tokens, section 5.1


def info(arguments: argparse.Namespace) -> None:
    if (arguments.path is None) == (arguments.preset is None):
        raise UsageError("Pass either a model or run directory, or `--preset NAME`, not both.")
    if arguments.out and (arguments.path is None or not is_run(Path(arguments.path))):
        raise UsageError(
            "`--out` requires a run, because it plots training curves. Pass a directory written by `heedful train`."
        )
    if arguments.out:
        require_page(Path(arguments.out))
    facts = preset_facts(arguments.preset) if arguments.preset else path_facts(Path(arguments.path))
    if arguments.out:
        _write_page(facts, Path(arguments.out))
    elif arguments.json:
        print(json.dumps(facts, indent=1, ensure_ascii=False))
    else:
        print("\n".join(f"{name:{_WIDTH}} {text}".rstrip() for name, text in summary(facts)))


def _write_page(facts: Facts, page: Path) -> None:
    run = Path(facts["run"]["path"])
    entries = read_log(RunDirectory(run).log) if RunDirectory(run).log.is_file() else []
    lines = [(name, text) for name, text in summary(facts) if name not in ("next", "diagnosis", "")]
    lines.append(("diagnosis", facts["run"]["diagnosis"]))
    write_run_page(entries, f"Run {run.absolute().name}", lines, page)
    print(page)


def preset_facts(name: str) -> Facts:
    preset = presets.named(name)
    return {"preset": name, **shape_facts(preset.model(_PRESET_VOCABULARY)), "training": dict(preset.training)}


def path_facts(path: Path) -> Facts:
    if not path.is_dir():
        problem = "is a file" if path.exists() else "does not exist"
        raise ModelError(f"{path} {problem}. Pass a model or run directory written by heedful.")
    if not is_run(path):
        if not (path / CONFIG).is_file():
            raise ModelError(
                f"{path} is neither a model nor a run: it has no config.json and no config.toml. "
                "Pass a directory written by heedful."
            )
        return model_facts(path)
    run = RunDirectory(path)
    model = next((place for place in (run.model, run.best) if place.is_dir()), None)
    return {"run": run_facts(run), **(model_facts(model) if model else _planned(run))}


def shape_facts(config: ModelConfig) -> Facts:
    with torch.device("meta"):
        parameters = Transformer(config).parameter_count()
    return {"shape": asdict(config), "parameters": parameters}


def model_facts(path: Path) -> Facts:
    model = read_model(path)
    return {
        "model": str(path),
        **shape_facts(model.transformer.config),
        "text": asdict(model.text),
        "decoding": asdict(model.decoding),
        "history": dict(model.history),
        "sha256": verify_manifest(path, required_files(path), ModelError),
    }


def run_facts(run: RunDirectory) -> Facts:
    """Return the progress of a run, which may have no log and no checkpoint yet."""
    entries = read_log(run.log) if run.log.is_file() else []
    recipe = run.recipe()
    validations = [entry for entry in entries if entry["kind"] == "valid"]
    step = max((entry["step"] for entry in entries), default=0)
    finished = _is_finished(step, validations, recipe)
    return {
        "path": str(run.path),
        "step": step,
        "steps": recipe.training.steps,
        "tokens": max((entry.get("tokens") or 0 for entry in entries), default=0),
        "seconds": max((entry.get("seconds") or 0.0 for entry in entries if entry["kind"] == "train"), default=0.0),
        "finished": finished,
        "checkpoints": run.steps(),
        "validations": validations,
        "recipe": recipes.as_settings(recipe),
        "diagnosis": diagnose(entries, recipe, finished),
    }


def _is_finished(step: int, validations: list[Facts], recipe: Recipe) -> bool:
    """Return whether the run has reached its last step or stopped early."""
    progress = Progress()
    for entry in validations:
        bleu, nll = (nan if entry.get(key) is None else entry[key] for key in ("bleu", "nll"))
        progress.record_validation(bleu, nll)
    progress.step = step
    return progress.is_finished(recipe.training)


def _planned(run: RunDirectory) -> Facts:
    """Return the model facts that are known before a model is written."""
    recipe = run.recipe()
    started = any(path.is_file() for path in run.tokenizer_files)
    size = read_tokenizer(run.path).vocab_size if started else recipe.data.vocab_size
    text = {key: getattr(recipe.data, key) for key in ("source_language", "target_language", "lowercase", "max_length")}
    shape = shape_facts(replace(recipe.model, vocab_size=size))
    return {"model": None, **shape, "text": text, "decoding": asdict(recipe.decoding)}


def summary(facts: Facts) -> Iterator[Line]:
    """Yield a one-screen summary as (name, text); `--json` prints everything."""
    run, text = facts.get("run"), facts.get("text")
    if "preset" in facts:
        yield "preset", facts["preset"]
    if run:
        yield "run", run["path"]
        yield from _progress(run)
    if "model" in facts:
        yield "model", _model(facts)
    if text:
        yield "languages", _languages(text)
    yield from _size(facts)
    if text:
        yield "tokenizer", _tokenizer(facts["shape"]["vocab_size"], text)
        yield (
            "decoding",
            "beam {beam}, alpha {alpha}, at most {max_extra} tokens longer than the source".format(**facts["decoding"]),
        )
    if "preset" in facts:
        settings = ", ".join(f"{key} {_number(value)}" for key, value in facts["training"].items())
        yield from _lines("training", wrap(settings or "chosen by heedful train for your corpus", _SCREEN - _WIDTH))
    if facts.get("sha256"):
        yield "sha256", facts["sha256"][WEIGHTS]
    yield from _lines("next", _next(facts))
    if run:
        yield from _lines("diagnosis", wrap(run["diagnosis"], _SCREEN - _WIDTH, break_on_hyphens=False))


def _lines(name: str, texts: Iterable[str]) -> Iterator[Line]:
    """Yield the text line by line, with the name on the first."""
    yield from zip(chain([name], repeat("")), texts, strict=False)


def _progress(run: Facts) -> Iterator[Line]:
    early = ", stopped early" * (run["step"] < run["steps"])
    state = f"finished{early}" if run["finished"] else "unfinished"
    spent = [plural(run["tokens"], "target token")] * bool(run["tokens"])
    spent += [f"{format_duration(run['seconds'])} of training"] * bool(run["seconds"])
    yield "training", " · ".join([f"{state}: step {run['step']:,} of {run['steps']:,}", *spent])
    if validations := run["validations"]:
        yield "best", _validation(max(validations, key=lambda one: (one.get("bleu") or 0.0, -(one.get("nll") or 1e9))))
        yield "last", _validation(validations[-1])
    else:
        yield "validation", f"none yet; every {plural(run['recipe']['training']['validate_every'], 'step')}"
    steps = run["checkpoints"]
    shown = [f"{step:,}" for step in steps]
    places = ", ".join(shown) if len(shown) < 7 else f"{shown[0]}, {shown[1]}, … {shown[-1]}"
    yield "checkpoints", f"{len(steps)} (step {places})" if steps else "none yet"


def _validation(entry: Mapping[str, Any]) -> str:
    keys = (("BLEU", "bleu", 2), ("perplexity", "perplexity", 2), ("loss", "loss", 3))
    figures = [
        f"{name} {entry[key]:.{digits}f}" if entry.get(key) is not None else f"{name} not finite"
        for name, key, digits in keys
    ]
    return f"step {entry['step']:,}: {', '.join(figures)}"


def _model(facts: Facts) -> str:
    if facts["model"] is None:
        return "none yet: no validation or checkpoint"
    steps = [f"{step:,}" for step in facts["history"].get("averaged_steps", [])]
    if len(steps) > 1:
        return f"{facts['model']} (average of {len(steps)} checkpoints, steps {steps[0]} to {steps[-1]})"
    last = facts["history"].get("steps")
    return f"{facts['model']}{f' (step {last:,})' if isinstance(last, int) else ''}"


def _languages(text: Facts) -> str:
    names = [text[key] or "not named" for key in ("source_language", "target_language")]
    return f"{' → '.join(names)}{', lowercased' * text['lowercase']}"


def _size(facts: Facts) -> Iterator[Line]:
    shape = facts["shape"]
    size = f"{4 * facts['parameters'] / 1e6:,.1f} MB in float32"
    vocabulary = f"; with a vocabulary of {plural(shape['vocab_size'], 'token')}" * ("preset" in facts)
    yield "parameters", f"{facts['parameters']:,} ({size}{vocabulary})"
    keys = ("N", *("N_decoder",) * bool(shape["N_decoder"]), "d_model", "d_ff", "h", "d_k", "d_v")
    widths = " · ".join(f"{key} {shape[key]:,}" for key in keys)
    yield "shape", f"{widths} · {shape['positions']} positions"
    rates = (f", {key} {shape[key]:g}" for key in ("attention_dropout", "word_dropout") if shape.get(key))
    yield "dropout", f"{shape['dropout']:g}{''.join(rates)}"


def _tokenizer(size: int, text: Facts) -> str:
    return f"SentencePiece, {plural(size, 'token')}; sentences of up to {plural(text['max_length'], 'token')}"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _next(facts: Facts) -> Iterator[str]:
    if "preset" in facts:
        yield f"{shell_command('train', '--preset', facts['preset'])} --source FILE --target FILE --out RUN"
    elif "run" not in facts:
        yield from next_commands(Path(facts["model"]))
    else:
        run = Path(facts["run"]["path"])
        if not facts["run"]["finished"]:
            yield f"{shell_command('train', run / 'config.toml', '--out', run)}  # resumes the run"
        if facts["model"]:
            yield from next_commands(run)
        yield f"{shell_command('info', run)} --out page.html  # curves"
