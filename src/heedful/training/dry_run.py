"""`heedful train --dry-run`: estimate the cost of a run without starting it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from heedful import recipes
from heedful.config import ModelConfig, Recipe, TrainingConfig
from heedful.data.length_buckets import LengthBuckets, shapes
from heedful.data.token_budget import bucket_boundaries
from heedful.devices import cores, pick_device, preserved_torch_state
from heedful.errors import CorpusError
from heedful.recipes import Settings
from heedful.storage.model_directory import Model
from heedful.storage.prepared_directory import training_store
from heedful.storage.run_directory import RunDirectory
from heedful.storage.tokenizer_files import read_tokenizer
from heedful.text.tokenizer import Tokenizer
from heedful.training import autoconfig, hardware, prepared_corpus, run_setup
from heedful.training.autoconfig import CorpusSize
from heedful.training.display import print_status
from heedful.training.estimate import ASSUMED_LENGTH, BatchShape, BatchShapes, Estimate, estimate, smaller_batch
from heedful.training.run import completed, ignored_budget
from heedful.training.run_plan import run_seconds
from heedful.training.time_budget import parse_duration

# The keys that the estimate needs.
_NEEDED = {"vocab_size", "N", "d_model", "d_ff", "h", "dropout", "steps", "batch_tokens"}


@dataclass(frozen=True)
class Plan:
    """The settings and the data of the run that would be trained."""

    recipe: Recipe
    model: ModelConfig
    buckets: LengthBuckets | None  # lengths of the pairs, if the text was read
    chosen: tuple[str, ...] = ()  # keys, values and reasons
    missing: tuple[Path, ...] = ()  # files
    seconds: float | None = None  # duration, with a time budget

    def estimate(self, recipe: Recipe, gpu: bool) -> Estimate:
        """Estimate the cost of this recipe or of a variant of it."""
        if self.buckets is None:
            return estimate(recipe, self.model, None, gpu)
        return estimate(recipe, self.model, training_shapes(self.buckets, recipe.training), gpu)


@dataclass(frozen=True)
class Report:
    """The result of a dry run."""

    plan: Plan
    estimate: Estimate
    device: torch.device
    available: int | None  # bytes of memory; None if unknown
    refusal: str | None  # why it does not fit on this machine, and what to change
    speed: float | None  # FLOP/s measured on this machine; None if it does not fit


def dry_run(
    settings: Settings, out: Path | None, preset: str | None, init: str | None, device: str, time: str | None = None
) -> Report:
    chosen_device = pick_device(device)
    budget = None if time is None else parse_duration(time)
    planned = plan(completed(settings, preset, init), out, chosen_device, budget)
    cost = planned.estimate(planned.recipe, gpu=chosen_device.type == "cuda")
    available = hardware.available_memory(chosen_device)
    refusal = speed = None
    if available is not None and cost.memory.total > available:
        refusal = _refusal(planned, cost, available, chosen_device)
    else:
        speed = _speed(planned, chosen_device)
    return Report(planned, cost, chosen_device, available, refusal, speed)


def plan(settings: Settings, out: Path | None, device: torch.device, budget: float | None = None) -> Plan:
    """Plan a run from an existing run, from complete settings, or by reading the text."""
    if out is not None and RunDirectory(out).config.is_file():
        if budget is not None:
            print_status(ignored_budget(out))
        return _plan_of_run(RunDirectory(out.absolute()), settings)
    initial_model = run_setup.open_initial_model(settings)
    settings = run_setup.with_initial_model(settings, initial_model)
    settings = prepared_corpus.completed(settings, initial_model)
    some = autoconfig.choose(settings, CorpusSize(10_000, 200_000), gpu=device.type == "cuda")
    recipes.build(autoconfig.apply(settings, some))  # reports invalid values before any text is read
    left = [(choice.section, choice.key) for choice in some]
    data = settings.get("data", {})
    ready = "tokenizer" in data and Path(data["tokenizer"]).is_file()
    if not ready and "vocab_size" not in data:
        left.insert(0, ("data", "vocab_size"))
    missing = _missing(settings)
    if (left or budget is not None) and not missing:
        return _plan_of_text(settings, initial_model, device, budget)
    if budget is not None:
        raise CorpusError(f"File {missing[0]} does not exist. `--time` measures training on the text. Check the path.")
    if needed := [f"{section}.{key}" for section, key in left if key in _NEEDED]:
        raise CorpusError(
            f"File {missing[0]} does not exist. {', '.join(needed)} would be chosen from the text. "
            "Check the path, or set these keys."
        )
    choices = autoconfig.choose_precision(settings, device)
    return _plan_of_settings(autoconfig.apply(settings, choices), tuple(map(str, choices)), missing)


def _missing(settings: Settings) -> tuple[Path, ...]:
    files: list[Path] = []
    for corpus in run_setup.corpora(settings):
        files += corpus.files()
    tokenizer = settings.get("data", {}).get("tokenizer")
    files += [Path(tokenizer)] if tokenizer else []
    return tuple(path for path in files if not path.is_file())


def _plan_of_run(run: RunDirectory, settings: Settings) -> Plan:
    old = run.recipe()
    recipe = recipes.build(recipes.merged(recipes.as_settings(old), settings))
    run_setup.require_same(run, old, recipe)
    model = replace(recipe.model, vocab_size=read_tokenizer(run.path).vocab_size)
    return Plan(recipe, model, training_store(run.data, recipe.data).buckets)


def _plan_of_text(settings: Settings, initial_model: Model | None, device: torch.device, budget: float | None) -> Plan:
    """Prepare the run in a temporary directory."""
    with TemporaryDirectory(prefix="heedful-") as directory:
        run = RunDirectory(Path(directory) / "run")
        prepared = run_setup.begin(run, settings, device, print_status, initial_model=initial_model, seconds=budget)
        model = replace(prepared.recipe.model, vocab_size=prepared.tokenizer.vocab_size)
        seconds = None if prepared.speed is None else run_seconds(prepared.recipe, prepared.speed)
        return Plan(prepared.recipe, model, prepared.train.buckets, tuple(map(str, prepared.choices)), seconds=seconds)


def _plan_of_settings(settings: Settings, choices: tuple[str, ...], missing: tuple[Path, ...]) -> Plan:
    recipe = recipes.build(settings)
    tokenizer = Path(recipe.data.tokenizer)
    ready = recipe.data.tokenizer and tokenizer not in missing
    vocab_size = Tokenizer.read(tokenizer).vocab_size if ready else recipe.data.vocab_size
    return Plan(recipe, replace(recipe.model, vocab_size=vocab_size), None, choices, missing)


def training_shapes(buckets: LengthBuckets, training: TrainingConfig) -> BatchShapes:
    """Return the shapes of the batches, which are the same in every epoch (data/batches.py)."""
    starts = bucket_boundaries(buckets, training.batch_tokens)
    forward, backward = (
        [BatchShape(*map(int, row)) for row in zip(*shapes(direction, starts), strict=True)]
        for direction in (buckets, buckets.reversed)
    )
    return BatchShapes(forward, backward if training.bidirectional_steps else [])


def _speed(planned: Plan, device: torch.device) -> float:
    """Measure the speed with the number of threads that training uses."""
    print_status("measuring the speed of this machine")
    training = planned.recipe.training
    length = min(ASSUMED_LENGTH, planned.recipe.data.max_length)
    if planned.buckets is not None:
        length = round(planned.buckets.tokens / (2 * int(planned.buckets.count_G.sum())))
    with preserved_torch_state():
        torch.set_num_threads(training.threads or cores())
        return hardware.flops_per_second(planned.model, training, device, length)


def _refusal(planned: Plan, cost: Estimate, available: int, device: torch.device) -> str:
    """Return the error message: memory needed and available, and changes that would fit."""

    def total(recipe: Recipe) -> int:
        return planned.estimate(recipe, gpu=device.type == "cuda").memory.total

    ways = _ways(planned.recipe, lambda recipe: total(recipe) <= available)
    needed = f"{gigabytes(cost.memory.total)} needed, {gigabytes(available)} available ({device.type})"
    if not ways:
        fixed = cost.memory.weights + cost.memory.gradients + cost.memory.moments
        return (
            f"The run does not fit in memory: {needed}. Weights, gradients and Adam's moments alone take "
            f"{gigabytes(fixed)}, which leaves no room for a batch. Choose a smaller model (model.d_model, model.N, "
            "data.vocab_size), lower data.max_length, or use a machine with more memory."
        )
    listed = "; or ".join(f"{words} ({gigabytes(total(recipe))})" for words, recipe in ways)
    return f"The run does not fit in memory: {needed}. To make it fit, set {listed}."


def _ways(recipe: Recipe, fits: Callable[[Recipe], bool]) -> list[tuple[str, Recipe]]:
    """Return the changes that fit, each with its description."""
    training = recipe.training
    again = replace(recipe, training=replace(training, checkpoint_activations=True))
    half = replace(recipe, training=replace(training, precision="bf16"))
    checkpoints = "training.checkpoint_activations = true"
    ways = []
    if parts := smaller_batch(recipe, fits):
        ways.append((_parts(parts), parts))
    if not training.checkpoint_activations and fits(again):
        ways.append((checkpoints, again))
    if training.precision == "fp32" and fits(half):
        ways.append(('training.precision = "bf16"', half))
    if not ways and (parts := smaller_batch(again, fits)):
        ways.append((f"{checkpoints} and {_parts(parts)}", parts))
    return ways


def _parts(recipe: Recipe) -> str:
    training = recipe.training
    return (
        f"training.batch_tokens = {training.batch_tokens} with training.accumulate = {training.accumulate}, "
        "the same update in smaller batches"
    )


def gigabytes(size: float) -> str:
    """Return a size in GB, or in MB below a tenth of one."""
    return f"{size / 1e9:.2f} GB" if size >= 1e8 else f"{size / 1e6:.2f} MB"
